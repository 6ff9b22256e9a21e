#include "tools/batch/frozen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "frontend/trace/expression.h"

namespace heddle::batch {
namespace {

constexpr int64_t kMostCtasPerSm = 32;
constexpr size_t kMostInCommand = 4;

// "0-3,7"
std::string Ranges(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (end - i > 1) text += fmt::format("-{}", numbers[end - 1]);
    i = end;
  }
  return text;
}

bool Moves(const std::map<trace::Symbols, trace::ResolvedTrace>& resolved, uint32_t launch) {
  const trace::ResolvedLaunch& first = resolved.begin()->second.launches[launch];
  return std::any_of(resolved.begin(), resolved.end(), [&](const auto& entry) {
    const trace::ResolvedLaunch& other = entry.second.launches[launch];
    return !(other.grid == first.grid) || other.parameters != first.parameters;
  });
}

bool IsConstant(const std::array<trace::Expr, 3>& grid) {
  return std::all_of(grid.begin(), grid.end(), [](const trace::Expr& extent) {
    return extent.text.empty() || trace::NamesIn(extent.text).empty();
  });
}

std::string RebuildCommand(const std::string& path, const trace::ResolvedTrace& trace,
                           const std::vector<uint32_t>& launches, int64_t sm_count) {
  std::string command = "heddle trace rebuild " + path;
  for (size_t i = 0; i < std::min(kMostInCommand, launches.size()); ++i) {
    const FrozenSigns signs = SignsOf(trace.launches[launches[i]], sm_count);
    command += fmt::format(" --grid '{}={}'", launches[i], signs.grid);
    for (const uint32_t offset : signs.parameters)
      command += fmt::format(" --parameter {}:{}=sm_count", launches[i], offset);
  }
  return command + (launches.size() > kMostInCommand ? " ..." : "") + " -o NEW.htrace";
}

}  // namespace

FrozenSigns SignsOf(const trace::ResolvedLaunch& launch, int64_t sm_count) {
  FrozenSigns signs;
  if (sm_count <= 1 || launch.grid.x % sm_count != 0) return signs;
  if (static_cast<int64_t>(launch.grid.Count()) / sm_count > kMostCtasPerSm) return signs;
  const int64_t factor = launch.grid.x / sm_count;
  signs.grid = factor == 1 ? "sm_count" : fmt::format("{}*sm_count", factor);
  for (uint32_t at = 0; at + sizeof(uint32_t) <= launch.parameters.size(); at += sizeof(uint32_t)) {
    uint32_t value = 0;
    std::memcpy(&value, launch.parameters.data() + at, sizeof value);
    if (value == sm_count) signs.parameters.push_back(at);
  }
  return signs;
}

std::vector<std::string> FrozenNotes(const std::string& path, const trace::Trace& trace,
                                     const std::map<trace::Symbols, trace::ResolvedTrace>& resolved,
                                     int64_t base_sms) {
  const auto recorded = trace.device.attributes.find("sm_count");
  const int64_t sms = recorded == trace.device.attributes.end() ? base_sms : recorded->second;
  const bool others = std::any_of(resolved.begin(), resolved.end(),
                                  [&](const auto& entry) { return entry.first.at("sm_count") != sms; });
  std::vector<uint32_t> rebuilt, suspects, captured;
  const trace::ResolvedTrace& first = resolved.begin()->second;
  for (uint32_t i = 0; i < first.launches.size(); ++i) {
    if (Moves(resolved, i))
      rebuilt.push_back(i);
    else if (others && IsConstant(trace.launches[i].grid) && SignsOf(first.launches[i], sms).any())
      suspects.push_back(i);
    else if (others && first.launches[i].frozen_grid)
      captured.push_back(i);
  }
  std::vector<std::string> notes;
  if (!rebuilt.empty())
    notes.push_back(fmt::format("{}: launches {} follow the machine by expressions", path, Ranges(rebuilt)));
  if (!suspects.empty()) {
    notes.push_back(fmt::format(
        "{}: launches {} look computed for {} SMs ({}) and have no expression: they stay so on every design; "
        "to let "
        "them "
        "follow: {}",
        path, Ranges(suspects), sms,
        recorded == trace.device.attributes.end() ? "as many as the base has" : "the device of the capture",
        RebuildCommand(path, first, suspects, sms)));
  }
  if (!captured.empty()) {
    notes.push_back(
        fmt::format("{}: launches {} keep the grid of their capture, which does not look computed from {} "
                    "SMs (`heddle trace "
                    "rebuild` gives it an expression)",
                    path, Ranges(captured), sms));
  }
  return notes;
}

}  // namespace heddle::batch
