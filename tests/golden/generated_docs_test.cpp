// Pages that are generated must be what the program prints today.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/results/results.h"

namespace heddle {
namespace {

std::string ReadDocs(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/docs/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(GeneratedDocs, DatabaseSchemaIsCurrent) {
  EXPECT_EQ(ReadDocs("db_schema.md"), results::SchemaMarkdown())
      << "run: build/tools/heddle/heddle db schema > docs/db_schema.md";
}

}  // namespace
}  // namespace heddle
