// Reads the table of live ranges that `nvdisasm -c -lrm wide` prints beside the instructions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::sass {

struct LiveMark {
  std::string file;  // "R", "P", "UR", "UP"
  uint32_t index = 0;
  bool read = false;     // v or x
  bool written = false;  // ^ or x
};

// By section (".text.<kernel>") and pc: the registers that the instruction reads or writes. Registers that
// are merely live (:) are left out.
std::map<std::string, std::map<uint32_t, std::vector<LiveMark>>> ParseLiveRanges(std::string_view listing);

}  // namespace heddle::sass
