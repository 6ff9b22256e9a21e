#include "frontend/capture/relocate.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace heddle::capture {
namespace {

constexpr uint64_t kPage = uint64_t{2} << 20;
// Free memory is looked for between these: above what small traces use, below where unified addressing puts a process's own.
constexpr uint64_t kFirstFree = uint64_t{1} << 40, kLastFree = uint64_t{1} << 46;

struct Move {
  uint64_t end = 0;
  uint64_t to = 0;
};
using Moves = std::map<uint64_t, Move>;  // by start

Moves PlanMoves(const trace::Trace& trace, const TakenRanges& taken) {
  uint64_t cursor = kFirstFree;
  for (const auto& [start, end] : taken)
    if (start < kLastFree) cursor = std::max(cursor, end);
  std::vector<const trace::Buffer*> buffers;
  for (const trace::Buffer& buffer : trace.buffers) buffers.push_back(&buffer);
  std::sort(buffers.begin(), buffers.end(), [](auto* a, auto* b) { return a->address < b->address; });
  Moves moves;
  for (const trace::Buffer* buffer : buffers) {
    cursor = (cursor + kPage - 1) / kPage * kPage + buffer->address % kPage;
    moves[buffer->address] = {EndOf(*buffer), cursor};
    cursor += EndOf(*buffer) - buffer->address;
  }
  return moves;
}

uint64_t MoveWords(const Moves& moves, std::vector<std::byte>* bytes) {
  uint64_t changed = 0;
  for (size_t at = 0; at + 8 <= bytes->size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes->data() + at, 8);
    auto found = moves.upper_bound(word);
    if (found == moves.begin()) continue;
    --found;
    if (word >= found->second.end) continue;
    word += found->second.to - found->first;
    std::memcpy(bytes->data() + at, &word, 8);
    ++changed;
  }
  return changed;
}

}  // namespace

uint64_t EndOf(const trace::Buffer& buffer) {
  uint64_t bytes = trace::SizeOf(buffer.type);
  for (const trace::Expr& extent : buffer.shape) bytes *= static_cast<uint64_t>(extent.value);
  return buffer.address + bytes;
}

bool Overlaps(const trace::Trace& trace, const TakenRanges& taken) {
  return std::any_of(trace.buffers.begin(), trace.buffers.end(), [&](const trace::Buffer& buffer) {
    auto after = taken.lower_bound(EndOf(buffer));
    return after != taken.begin() && (--after)->second > buffer.address;
  });
}

void Take(const trace::Trace& trace, TakenRanges* taken) {
  for (const trace::Buffer& buffer : trace.buffers) {
    uint64_t& end = (*taken)[buffer.address];
    end = std::max(end, EndOf(buffer));
  }
}

uint64_t Relocate(trace::Trace* trace, const TakenRanges& taken) {
  const Moves moves = PlanMoves(*trace, taken);
  uint64_t changed = 0;
  for (trace::Launch& launch : trace->launches) changed += MoveWords(moves, &launch.parameters);
  for (trace::Content& content : trace->contents)
    if (content.rule.kind == trace::RuleKind::kBytes && content.offset_bytes.value % 8 == 0)
      changed += MoveWords(moves, &content.rule.bytes);
  for (trace::Buffer& buffer : trace->buffers) buffer.address = moves.at(buffer.address).to;
  return changed;
}

}  // namespace heddle::capture
