#include "tests/validation/live_ranges.h"

#include <algorithm>
#include <charconv>

namespace heddle::sass {
namespace {

struct Column {
  std::string file;
  uint32_t index = 0;
  size_t position = 0;  // of its first character in the line
};

// "// | # GPR names |": which file each group between bars is, in order.
std::vector<std::string> ReadGroups(std::string_view line) {
  std::vector<std::string> files;
  for (size_t bar = line.find('|'); bar != std::string_view::npos;) {
    const size_t next = line.find('|', bar + 1);
    if (next == std::string_view::npos) break;
    const std::string_view title = line.substr(bar, next - bar);
    if (title.find("UGPR") != std::string_view::npos)
      files.emplace_back("UR");
    else if (title.find("GPR") != std::string_view::npos)
      files.emplace_back("R");
    else if (title.find("UPRED") != std::string_view::npos)
      files.emplace_back("UP");
    else
      files.emplace_back("P");
    bar = next;
  }
  return files;
}

std::vector<Column> ReadColumns(std::string_view line, const std::vector<std::string>& files) {
  std::vector<Column> columns;
  size_t group = 0;
  for (size_t at = line.find('|') + 1; at < line.size() && group < files.size();) {
    if (line[at] == '|') {
      ++group;
      ++at;
    } else if (line[at] >= '0' && line[at] <= '9') {
      uint32_t index = 0;
      const auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), index);
      columns.push_back({files[group], index, at});
      at = static_cast<size_t>(end - line.data());
    } else {
      ++at;
    }
  }
  return columns;
}

std::vector<LiveMark> ReadMarks(std::string_view line, const std::vector<Column>& columns) {
  std::vector<LiveMark> marks;
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t width = std::to_string(columns[i].index).size();
    for (size_t at = columns[i].position; at < columns[i].position + width && at < line.size(); ++at) {
      if (line[at] == 'v' || line[at] == '^' || line[at] == 'x')
        marks.push_back({columns[i].file, columns[i].index, line[at] != '^', line[at] != 'v'});
    }
  }
  return marks;
}

}  // namespace

std::map<std::string, std::map<uint32_t, std::vector<LiveMark>>> ParseLiveRanges(std::string_view listing) {
  std::map<std::string, std::map<uint32_t, std::vector<LiveMark>>> out;
  std::vector<std::string> groups;
  std::vector<Column> columns;
  std::map<uint32_t, std::vector<LiveMark>>* section = nullptr;
  while (!listing.empty()) {
    const size_t end = std::min(listing.find('\n'), listing.size());
    const std::string_view line = listing.substr(0, end);
    listing.remove_prefix(std::min(end + 1, listing.size()));
    const size_t comment = line.rfind("// |");
    if (const size_t start = line.find(".section\t"); start != std::string_view::npos) {
      const size_t name = start + 9;
      section = &out[std::string(line.substr(name, line.find(',', name) - name))];
      columns.clear();
      groups.clear();
    } else if (comment != std::string_view::npos && groups.empty()) {
      groups = ReadGroups(line.substr(comment));
    } else if (comment != std::string_view::npos && columns.empty()) {
      columns = ReadColumns(line.substr(comment), groups);
    } else if (const size_t pc_text = line.find("/*");
               comment != std::string_view::npos && pc_text < comment && section != nullptr) {
      uint32_t pc = 0;
      const char* begin = line.data() + pc_text + 2;
      const auto [stop, error] = std::from_chars(begin, line.data() + line.size(), pc, 16);
      if (error == std::errc() && *stop == '*') (*section)[pc] = ReadMarks(line.substr(comment), columns);
    }
  }
  return out;
}

}  // namespace heddle::sass
