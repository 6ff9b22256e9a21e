#include "tools/heddle/commands.h"

namespace heddle::tools {

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      TraceCommand(),
      CaptureCommand(),
      SassCommand(),
      RunCommand(),
      ValidateCommand(),
      DbCommand(),
      ArchCommand(),
      CompletionCommand(),
  };
  return commands;
}

}  // namespace heddle::tools
