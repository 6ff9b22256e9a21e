#include <fmt/format.h>

#include <string>
#include <vector>

#include "heddle_version.h"
#include "sim/base/large_pages.h"
#include "tools/heddle/command.h"

int main(int argc, char** argv) {
  heddle::UseLargePages();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments.front() == "--version") {
    fmt::print("heddle {} ({}, {})\n", HEDDLE_VERSION, HEDDLE_BUILD_TYPE, HEDDLE_COMPILER);
    return 0;
  }
  try {
    return static_cast<int>(heddle::tools::Dispatch(arguments));
  } catch (const std::exception& error) {
    fmt::print(stderr,
               "heddle: internal error: {}\n  This is a bug in heddle; please report it with the command.\n",
               error.what());
    return static_cast<int>(heddle::ExitCode::kInternal);
  }
}
