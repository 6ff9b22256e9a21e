#include "tools/heddle/commands.h"

#include "tools/heddle/desk_commands.h"

namespace heddle::tools {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      // clang-format off: one a line
      TraceCommand(),
      CaptureCommand(),
      SassCommand(),
      RunCommand(),
      SweepCommand(),
      BatchCommand(),
      RooflineCommand(),
      ExplainCommand(),
      ReportCommand(),
      ValidateCommand(),
      SensitivityCommand(),
      HwCommand(),
      CompareCommand(),
      DbCommand(),
      TopCommand(),
      TimelineCommand(),
      ArchCommand(),
      CompletionCommand(),
      // clang-format on
  };
  return commands;
}

}  // namespace heddle::tools
