// Each subcommand's file defines one of these; commands.cpp puts them into the tree.
#pragma once

#include "tools/heddle/command.h"

namespace heddle::tools {

Command ArchCommand();
Command CaptureCommand();
Command CompletionCommand();
Command SassCommand();
Command TraceCommand();
Command DbCommand();
Command CompareCommand();
Command HwCommand();
Command RunCommand();
Command SweepCommand();
Command BatchCommand();
Command TimelineCommand();
Command TopCommand();
Command ValidateCommand();
Command SensitivityCommand();

}  // namespace heddle::tools
