// The shape of the tree: which folder may include which, which third-party library stays behind which wall, and how long
// a file may be. The lists below are the ones that docs/design.md speaks of; change them together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace heddle {
namespace {

namespace fs = std::filesystem;

// A folder may include itself and these. Data flows from left to right and nothing points back.
const std::map<std::string, std::set<std::string>>& MayInclude() {
  static const std::map<std::string, std::set<std::string>> list = {
      {"sim/base", {}},
      {"sim/sqlite", {"sim/base"}},
      {"sim/isa", {"sim/base"}},
      {"sim/config", {"sim/base"}},
      {"sim/engine", {"sim/base", "sim/config"}},
      {"sim/stats", {"sim/base"}},
      {"sim/memory", {"sim/base", "sim/isa", "sim/config", "sim/engine", "sim/stats"}},
      {"sim/interconnect", {"sim/base", "sim/config", "sim/engine", "sim/stats", "sim/memory"}},
      {"sim/sm", {"sim/base", "sim/isa", "sim/config", "sim/engine", "sim/stats", "sim/memory"}},
      {"sim/gpu",
       {"sim/base", "sim/isa", "sim/config", "sim/engine", "sim/stats", "sim/memory", "sim/interconnect",
        "sim/sm"}},
      {"sim/results", {"sim/base", "sim/isa", "sim/config", "sim/sqlite", "sim/stats", "sim/gpu"}},
      {"frontend/trace", {"sim/base", "sim/isa", "sim/sqlite"}},
      {"frontend/sass", {"sim/base", "sim/isa"}},
      {"frontend/emulator", {"sim/base", "sim/isa", "frontend/trace", "frontend/sass"}},
      {"frontend/import", {"sim/base", "sim/isa", "sim/sqlite", "frontend/trace", "frontend/sass"}},
      {"frontend/capture", {"sim/base", "sim/isa", "frontend/trace"}},
      {"frontend/profile", {"sim/base", "sim/sqlite"}},
  };
  return list;
}

// Headers that start so may be included by these folders alone; "tools" stands for all folders under it.
struct Wall {
  std::string header;
  std::set<std::string> folders;
};
const std::vector<Wall>& Walls() {
  static const std::vector<Wall> walls = {
      {"sqlite3", {"sim/sqlite"}},
      {"google/protobuf", {"sim/config", "frontend/trace"}},
      {"zstd", {"frontend/trace", "frontend/import"}},
      {"boost/program_options", {"tools"}},
      {"boost/graph", {"sim/interconnect", "sim/gpu"}},
      {"lzma", {"frontend/import"}},
      {"zlib", {"frontend/import", "frontend/profile"}},
      {"cupti", {"frontend/capture"}},
      {"openssl", {"sim/base"}},
  };
  return walls;
}

constexpr size_t kMostLines = 500;

// "sim/sm/units/lsu.cpp" -> "sim/sm"; "tools" for everything under it.
std::string FolderOf(const std::string& path) {
  if (path.starts_with("tools/")) return "tools";
  const size_t first = path.find('/');
  const size_t second = first == std::string::npos ? first : path.find('/', first + 1);
  return second == std::string::npos ? path.substr(0, first) : path.substr(0, second);
}

// What is wrong with one source file, a line for each fault.
std::vector<std::string> Faults(const std::string& path, const std::string& text) {
  static const std::regex include("^\\s*#\\s*include\\s*([\"<])([^\">]+)[\">]");
  const std::string folder = FolderOf(path);
  std::vector<std::string> faults;
  std::istringstream lines(text);
  std::string line;
  size_t count = 0;
  while (std::getline(lines, line)) {
    ++count;
    std::smatch match;
    if (!std::regex_search(line, match, include)) continue;
    const std::string header = match[2], target = FolderOf(header);
    const std::string place = path + ":" + std::to_string(count) + ": ";
    const bool ours =
        header.starts_with("sim/") || header.starts_with("frontend/") || header.starts_with("tools/");
    if (ours && folder != "tools" && target != folder) {
      const auto allowed = MayInclude().find(folder);
      if (allowed == MayInclude().end()) {
        faults.push_back(place + folder + " is not in the list of folders");
      } else if (!allowed->second.contains(target)) {
        faults.push_back(place + folder + " may not include " + header);
      }
    }
    if (header.ends_with(".pb.h") && target != folder) faults.push_back(place + "messages stay in " + target);
    for (const Wall& wall : Walls()) {
      if (header.starts_with(wall.header) && !wall.folders.contains(folder)) {
        faults.push_back(place + folder + " may not include " + header);
      }
    }
  }
  if (path != "sim/base/prefetch.h" && text.find("__builtin_"
                                                 "prefetch") != std::string::npos)
    faults.push_back(path +
                     ": use Prefetch of sim/base/prefetch.h: compilers drop calls of what only prefetches");
  if (count > kMostLines) faults.push_back(path + ": " + std::to_string(count) + " lines");
  return faults;
}

TEST(Structure, ScannerFindsWhatItLooksFor) {
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(Faults("sim/sm/a.cpp", "#include \"sim/memory/memory_request.h\"\n#include <vector>\n"),
              IsEmpty());
  EXPECT_THAT(Faults("sim/memory/a.cpp", "\n#include \"sim/sm/sm.h\"\n"),
              ElementsAre("sim/memory/a.cpp:2: sim/memory may not include sim/sm/sm.h"));
  EXPECT_THAT(Faults("sim/gpu/a.h", "#include \"frontend/sass/cubin.h\""),
              ElementsAre("sim/gpu/a.h:1: sim/gpu may not include frontend/sass/cubin.h"));
  EXPECT_THAT(Faults("sim/gpu/a.h", "# include <sqlite3.h>"),
              ElementsAre("sim/gpu/a.h:1: sim/gpu may not include sqlite3.h"));
  EXPECT_THAT(Faults("sim/isa/a.h", "#include <boost/program_options.hpp>"),
              ElementsAre("sim/isa/a.h:1: sim/isa may not include boost/program_options.hpp"));
  EXPECT_THAT(
      Faults("tools/heddle/a.cpp", "#include <boost/program_options.hpp>\n#include \"sim/gpu/gpu.h\""),
      IsEmpty());
  EXPECT_THAT(Faults("tools/heddle/a.cpp", "#include \"sim/config/gpu.pb.h\""),
              ElementsAre("tools/heddle/a.cpp:1: messages stay in sim/config"));
  EXPECT_THAT(Faults("sim/new/a.cpp", "#include \"sim/base/check.h\""),
              ElementsAre("sim/new/a.cpp:1: sim/new is not in the list of folders"));
  EXPECT_THAT(Faults("sim/sm/a.cpp", "__builtin_prefetch(x);"), testing::SizeIs(1));
  EXPECT_THAT(Faults("sim/sm/a.cpp", std::string(501, '\n')), ElementsAre("sim/sm/a.cpp: 501 lines"));
}

std::vector<fs::path> Sources(const std::vector<std::string>& folders) {
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(HEDDLE_SOURCE_DIR) / folder)) {
      const std::string extension = entry.path().extension();
      if (extension == ".cpp" || extension == ".h") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Structure, FoldersIncludeOnlyWhatLiesToTheirLeft) {
  const std::vector<fs::path> files = Sources({"sim", "frontend", "tools"});
  EXPECT_GT(files.size(), 50u);
  std::vector<std::string> faults;
  for (const fs::path& file : files) {
    const std::string path = fs::relative(file, HEDDLE_SOURCE_DIR).string();
    for (std::string& fault : Faults(path, ReadFile(file))) faults.push_back(std::move(fault));
  }
  EXPECT_THAT(faults, testing::IsEmpty());
}

TEST(Structure, TestsAreNoLongerThanOtherFiles) {
  for (const fs::path& file : Sources({"tests"})) {
    const std::string text = ReadFile(file);
    EXPECT_LE(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')), kMostLines) << file;
  }
}

TEST(Structure, ReadingOrderNamesFilesThatExist) {
  const std::string text = ReadFile(fs::path(HEDDLE_SOURCE_DIR) / "docs/reading_order.md");
  static const std::regex name("`([A-Za-z_0-9]+/[A-Za-z_0-9/.]+)`");
  int names = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    ++names;
    EXPECT_TRUE(fs::exists(fs::path(HEDDLE_SOURCE_DIR) / (*it)[1].str())) << (*it)[1];
  }
  EXPECT_GT(names, 30);
}

// The list itself points one way only: no folder may reach itself through others.
TEST(Structure, ListHasNoCycle) {
  for (const auto& [folder, direct] : MayInclude()) {
    std::set<std::string> reached(direct);
    for (bool grown = true; grown;) {
      grown = false;
      for (const std::string& next : std::set<std::string>(reached)) {
        ASSERT_TRUE(MayInclude().contains(next)) << next;
        for (const std::string& more : MayInclude().at(next)) grown |= reached.insert(more).second;
      }
    }
    EXPECT_FALSE(reached.contains(folder)) << folder;
  }
}

}  // namespace
}  // namespace heddle
