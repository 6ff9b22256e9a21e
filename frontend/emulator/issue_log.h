// What one stream met that the results must state. Used on rare paths only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

class IssueLog {
 public:
  // Counts one more issue of `kind` (a string literal) at instruction `index`; the first detail is kept.
  void Report(const char* kind, uint32_t index, std::string_view detail = {});
  void Merge(const IssueLog& other);
  bool empty() const { return entries_.empty(); }
  // Ordered by kind and instruction; each detail is preceded by the instruction's text and pc.
  std::vector<isa::StreamIssue> Issues(const isa::KernelCode& code) const;

 private:
  struct Entry {
    std::string detail;
    uint64_t count = 0;
  };
  std::map<std::pair<std::string, uint32_t>, Entry> entries_;
};

}  // namespace heddle::emulator
