#include "frontend/import/faults.h"

#include <fmt/format.h>

namespace heddle::importer {

void FaultLog::Add(std::string_view file, uint64_t line, std::string_view kind, std::string_view detail) {
  ++total_;
  const auto found = by_kind_.find(kind);
  if (found != by_kind_.end())
    ++found->second;
  else
    by_kind_.emplace(kind, 1);
  if (placed_.size() == kMostPlaced) return;
  placed_.push_back({line == 0
                         ? std::string(file)
                         : fmt::format("{}{}{}", file, file.ends_with(".tracez") ? " at byte " : ":", line),
                     detail.empty() ? std::string(kind) : fmt::format("{}: {}", kind, detail)});
}

Error FaultLog::ToError() const {
  std::string text = fmt::format("{} fault{} in the trace", total_, total_ == 1 ? "" : "s");
  for (const Placed& each : placed_) text += fmt::format("\n  {}: {}", each.place, each.what);
  if (total_ > placed_.size()) {
    text += "\n  in all:";
    for (const auto& [kind, count] : by_kind_) text += fmt::format("\n  {} x {}", count, kind);
  }
  return {ExitCode::kTrace, placed_.front().place, std::move(text),
          "record the trace again, or import with --lenient to leave out what cannot be read"};
}

}  // namespace heddle::importer
