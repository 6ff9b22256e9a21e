// The commands that look at results databases through tools/analysis.
#pragma once

#include "tools/heddle/command.h"

namespace heddle::tools {

Command ExplainCommand();
Command ReportCommand();
Command RooflineCommand();

}  // namespace heddle::tools
