// The table of measured errors at the head of a machine description: comments between two markers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "tools/validate/evaluate.h"
#include "tools/validate/suite.h"

namespace heddle::validate {

// `text` of a description with its table, which stands behind the first paragraph of comments, replaced by `table` or put
// there. Everything else stays as it is.
std::string WithTable(const std::string& text, const std::string& table);

// The table's comment lines for the machine `arch`. Without rows of its GPUs it says "no rows here: held out".
std::string HeaderTable(const Report& report, const Recipes& recipes, const std::string& arch);

// Whether the table of `arch` is to be written: some of its rows were simulated, or `suite` has none for it. Otherwise a
// run of other rows would call a board held out that is not.
bool WritesHeader(const Report& report, const Recipes& recipes, const std::vector<Row>& suite,
                  const std::string& arch);

// Writes the tables of the machines that `recipes` name into their files, where WritesHeader says so.
Status WriteHeaders(const Report& report, const Recipes& recipes, const std::vector<Row>& suite);

}  // namespace heddle::validate
