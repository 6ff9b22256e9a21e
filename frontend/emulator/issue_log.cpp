#include "frontend/emulator/issue_log.h"

#include <fmt/format.h>

namespace heddle::emulator {

void IssueLog::Report(const char* kind, uint32_t index, std::string_view detail) {
  Entry& entry = entries_[{kind, index}];
  if (entry.count++ == 0) entry.detail = detail;
}

void IssueLog::Merge(const IssueLog& other) {
  for (const auto& [key, theirs] : other.entries_) {
    Entry& entry = entries_[key];
    if (entry.count == 0) entry.detail = theirs.detail;
    entry.count += theirs.count;
  }
}

std::vector<isa::StreamIssue> IssueLog::Issues(const isa::KernelCode& code) const {
  std::vector<isa::StreamIssue> issues;
  for (const auto& [key, entry] : entries_) {
    const auto& [kind, index] = key;
    std::string detail =
        index < code.instructions.size()
            ? fmt::format("{:#06x} {}", index * isa::kInstructionBytes, ToString(code.instructions[index]))
            : fmt::format("instruction {} is beyond the end of the code", index);
    if (!entry.detail.empty()) detail += ": " + entry.detail;
    issues.push_back({kind, std::move(detail), entry.count});
  }
  return issues;
}

}  // namespace heddle::emulator
