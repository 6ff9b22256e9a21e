// Every command that README.md and docs/ show in a ```console block works as it stands there: it runs in the root of
// the sources, with the built program first on PATH and $TMPDIR naming an empty folder.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/shell.h"

namespace heddle {
namespace {

struct Page {
  std::string name;  // from the root of the sources
  std::vector<std::string> commands;
};

// Lines that begin with "$ " within blocks marked ```console; a backslash at the end joins the next line.
std::vector<std::string> CommandsOf(const std::string& markdown) {
  std::vector<std::string> commands;
  std::istringstream lines(markdown);
  bool inside = false;
  bool goes_on = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```console";
      goes_on = false;
      continue;
    }
    if (!inside) continue;
    if (goes_on) {
      commands.back() += "\n" + line;
    } else if (line.starts_with("$ ")) {
      commands.push_back(line.substr(2));
    } else {
      continue;  // what the command prints
    }
    goes_on = line.ends_with('\\');
  }
  return commands;
}

std::vector<Page> Pages() {
  const std::filesystem::path root = HEDDLE_SOURCE_DIR;
  std::vector<std::string> names = {"README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") names.push_back("docs/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  std::vector<Page> pages;
  for (const std::string& name : names) {
    std::vector<std::string> commands = CommandsOf(testing_support::ReadFile(root / name));
    if (!commands.empty()) pages.push_back({name, std::move(commands)});
  }
  return pages;
}

TEST(DocsCommands, BlocksAreFound) {
  const std::string page =
      "    $ indented\n```\n$ no console\n```\n```console\n$ first --a \\\n    --b\nprinted\n$ "
      "second\n```\n$ outside\n";
  EXPECT_EQ(CommandsOf(page), (std::vector<std::string>{"first --a \\\n    --b", "second"}));
}

TEST(DocsCommands, EachRunsAsItIsWritten) {
  const std::vector<Page> pages = Pages();
  ASSERT_TRUE(
      std::any_of(pages.begin(), pages.end(), [](const Page& page) { return page.name == "README.md"; }));
  for (const Page& page : pages) {
    // The commands of a page build on each other.
    const testing_support::TemporaryFolder folder;
    const std::string set_up = "cd '" HEDDLE_SOURCE_DIR "' && PATH='" HEDDLE_BINARY_DIR
                               "/tools/heddle':\"$PATH\" && unset HEDDLE_ARCH_DIR && export PATH TMPDIR='" +
                               folder.path() + "'\n";
    for (const std::string& command : page.commands) {
      const testing_support::Outcome outcome = testing_support::Shell(set_up + command);
      EXPECT_EQ(outcome.exit_code, 0) << page.name << ": " << command << "\n" << outcome.err;
    }
  }
}

}  // namespace
}  // namespace heddle
