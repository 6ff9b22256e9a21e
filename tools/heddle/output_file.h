// Files that commands write beside a database.
#pragma once

#include <string>

#include "sim/base/result.h"

namespace heddle::tools {

// Written to a temporary name beside `path` and renamed into place.
Status WriteFile(const std::string& path, const std::string& text);

}  // namespace heddle::tools
