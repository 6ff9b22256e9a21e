#include "sim/sm/units/instruction_fetch.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace heddle::sm {

// Lines are those of L0; L1's and the memory's are the same or larger.
InstructionFetch::InstructionFetch(const config::InstructionCaches& config, uint32_t sub_cores)
    : config_(config),
      line_bytes_(std::min(config.l0.line_bytes, memory::kLineBytes)),
      line_shift_(static_cast<uint32_t>(std::countr_zero(line_bytes_))),
      fronts_(sub_cores, Front(config)),
      l1_(config.l1, memory::kLineBytes),
      l1_port_(config.l1_lines_per_cycle, 1),
      line_cycles_(static_cast<uint32_t>(std::ceil(1 / config.l1_lines_per_cycle))) {}

Cycle InstructionFetch::Fetch(uint32_t sub_core, uint64_t address, Cycle now, RequestPort* port) {
  Front& front = fronts_[sub_core];
  const uint64_t line = address >> line_shift_;
  if (line == front.Resident(line)) return now;
  if (const Cycle* arrival = front.l0.Find(line); arrival != nullptr) {
    if (*arrival == TagArray::kOnItsWay) return *arrival;
    if (*arrival <= now) front.Resident(line) = line;
    return std::max(now, *arrival);
  }
  for (Stream& stream : front.streams) {
    for (uint32_t i = 0; i < stream.count; ++i) {
      const Streamed& streamed = stream.At(i);
      if (streamed.line != line) continue;
      const Cycle arrival = streamed.arrival;
      stream.first = static_cast<uint32_t>((stream.first + i + 1) % stream.lines.size());
      stream.count -= i + 1;
      stream.used = ++front.uses;
      front.Insert(line, arrival);
      FillStream(&stream, now, port);
      return arrival == TagArray::kOnItsWay ? arrival : std::max(now, arrival);
    }
  }
  const Cycle arrival = FromL1(line, now, port);
  front.Insert(line, arrival);
  Stream& oldest = *std::min_element(front.streams.begin(), front.streams.end(),
                                     [](const Stream& a, const Stream& b) { return a.used < b.used; });
  oldest.count = 0;
  oldest.next_line = line + 1;
  oldest.used = ++front.uses;
  FillStream(&oldest, now, port);
  return arrival;
}

void InstructionFetch::Front::Insert(uint64_t line, Cycle arrival) {
  const uint64_t replaced = l0.Insert(line, arrival);
  if (Resident(replaced) == replaced) Resident(replaced) = TagArray::kNoLine;
}

void InstructionFetch::FillStream(Stream* stream, Cycle now, RequestPort* port) {
  while (stream->count < stream->lines.size()) {
    const uint64_t line = stream->next_line++;
    stream->At(stream->count++) = {line, FromL1(line, now, port)};
  }
}

Cycle InstructionFetch::FromL1(uint64_t line, Cycle now, RequestPort* port) {
  ++requests_;
  const Cycle granted = l1_port_.Reserve(now, 1) - line_cycles_;
  const uint64_t memory_line = line * line_bytes_ / memory::kLineBytes;
  Cycle* found = l1_.Find(memory_line);
  if (found == nullptr) {
    ++misses_;
    l1_.Insert(memory_line, TagArray::kOnItsWay);
    port->ReadLine(memory_line * memory::kLineBytes, granted + config_.l1.miss_latency_cycles,
                   RequestPort::kInstruction);
    return TagArray::kOnItsWay;
  }
  if (*found == TagArray::kOnItsWay) return *found;
  return std::max(granted, *found) + config_.l0.miss_latency_cycles;
}

Cycle InstructionFetch::Answer(uint64_t line_address, Cycle arrival) {
  if (Cycle* line = l1_.Find(line_address / memory::kLineBytes); line != nullptr) *line = arrival;
  const Cycle in_l0 = arrival + config_.l0.miss_latency_cycles;
  const uint64_t first = line_address / line_bytes_;
  for (Front& front : fronts_) {
    for (uint64_t line = first; line < first + memory::kLineBytes / line_bytes_; ++line) {
      if (Cycle* waiting = front.l0.Find(line); waiting != nullptr && *waiting == TagArray::kOnItsWay)
        *waiting = in_l0;
      for (Stream& stream : front.streams) {
        for (uint32_t i = 0; i < stream.count; ++i) {
          Streamed& streamed = stream.At(i);
          if (streamed.line == line && streamed.arrival == TagArray::kOnItsWay) streamed.arrival = in_l0;
        }
      }
    }
  }
  return in_l0;
}

void InstructionFetch::Warm(uint64_t address, uint64_t bytes) {
  for (uint64_t line = address / memory::kLineBytes; line * memory::kLineBytes < address + bytes; ++line)
    if (l1_.Find(line) == nullptr) l1_.Insert(line, 0);
}

void InstructionFetch::Clear() {
  for (Front& front : fronts_) {
    front.l0.Clear();
    for (Stream& stream : front.streams) stream.first = stream.count = 0;
    front.resident.fill(TagArray::kNoLine);
  }
  l1_.Clear();
}

}  // namespace heddle::sm
