// Pages that are generated must be what the program prints today.
#include <gtest/gtest.h>

#include <cstdlib>
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

TEST(GeneratedDocs, KernelsPageIsCurrent) {
  if (std::system("python3 -c 'import tomllib' 2>/dev/null") != 0) GTEST_SKIP() << "no Python with tomllib";
  EXPECT_EQ(std::system(HEDDLE_SOURCE_DIR "/tools/update_kernels_doc --check"), 0)
      << "run: tools/update_kernels_doc";
}

}  // namespace
}  // namespace heddle
