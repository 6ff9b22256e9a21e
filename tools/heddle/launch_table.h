// The table of launches that `heddle run`, `heddle db show` and tools/quickstart print.
#pragma once

#include <string>

#include "sim/sqlite/sqlite.h"

namespace heddle::tools {

// `where` restricts the launches: an SQL condition on v_launch's columns, without user input in it; "" for all.
Status PrintLaunchTable(sqlite::Database* database, const std::string& where);
// The same as one JSON document, with every column unrounded: {"schema_version": 1, "launches": [...]}.
Status PrintLaunchJson(sqlite::Database* database, const std::string& where);

}  // namespace heddle::tools
