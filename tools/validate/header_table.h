// The table of measured errors at the head of a machine description: comments between two markers.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/result.h"
#include "tools/validate/evaluate.h"

namespace heddle::validate {

// `text` of a description with its table, which stands behind the first paragraph of comments, replaced by `table` or put
// there. Everything else stays as it is.
std::string WithTable(const std::string& text, const std::string& table);

// The table's comment lines for the machine `arch`. Without rows of its GPUs it says "no rows here: held out".
std::string HeaderTable(const Report& report, const Recipes& recipes, const std::string& arch);

// Writes the table of every machine that `recipes` name into its file.
Status WriteHeaders(const Report& report, const Recipes& recipes);

}  // namespace heddle::validate
