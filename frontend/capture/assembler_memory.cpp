// What copies, fills and snapshots make of a captured process's memory.
#include <algorithm>

#include "frontend/capture/assembler.h"

namespace heddle::capture {
namespace {

constexpr uint64_t kMostRows = 4096;        // of one copy or fill
constexpr uint64_t kMostUnknownRows = 256;  // more of them are unknown with what lies between

// The rows of a range of up to three dimensions.
struct Box {
  uint64_t width = 0;
  uint64_t rows = 1;
  uint64_t layers = 1;

  bool IsSmall(uint64_t most) const { return rows <= most && layers <= most && rows * layers <= most; }
};

// From the first byte to the last; as long as memory may be where that overflows.
uint64_t Extent(const Box& box, uint64_t pitch, uint64_t layer_bytes) {
  uint64_t rows = 0, layers = 0, sum = 0;
  if (__builtin_mul_overflow(box.rows - 1, pitch, &rows) ||
      __builtin_mul_overflow(box.layers - 1, layer_bytes, &layers) ||
      __builtin_add_overflow(rows, layers, &sum) || __builtin_add_overflow(sum, box.width, &sum))
    return uint64_t{1} << 49;
  return sum;
}

template <typename Function>
void ForEachRow(const Box& box, Function use) {
  for (uint64_t layer = 0; layer < box.layers; ++layer)
    for (uint64_t row = 0; row < box.rows; ++row) use(layer, row);
}

}  // namespace

void Assembler::TakeCopy(const pb::Copy& copy) {
  if (copy.node() != 0) return SetAction(copy.node(), copy);
  if (copy.destination() == 0) return;
  Place(copy, {0, order_.Transfer({copy.context(), copy.stream()}, copy.synchronous())});
}

void Assembler::TakeFill(const pb::Fill& fill) {
  if (fill.node() != 0) return SetAction(fill.node(), fill);
  Place(fill, {0, order_.Transfer({fill.context(), fill.stream()}, fill.synchronous())});
}

void Assembler::Place(const pb::Copy& copy, Moment when) {
  if (copy.destination() == 0) return;
  if (!copy.data().empty()) return memory_.Write(copy.destination(), copy.data(), when);
  if (!memory_.IsAllocated(copy.destination())) return;  // the host's
  const Box box{copy.size_bytes(), std::max<uint64_t>(copy.rows(), 1), std::max<uint64_t>(copy.layers(), 1)};
  const bool is_known = copy.source() != 0 && memory_.IsAllocated(copy.source());
  const bool is_small = box.IsSmall(is_known ? kMostRows : kMostUnknownRows);
  if (!is_known) {
    ++unkept_copies_;
    unkept_bytes_ += box.width * box.rows * box.layers;
  } else if (!is_small) {
    ++many_rows_;
  }
  if (!is_small)
    return memory_.Forget(copy.destination(),
                          Extent(box, copy.destination_pitch(), copy.destination_layer_bytes()), when);
  ForEachRow(box, [&](uint64_t layer, uint64_t row) {
    const uint64_t to =
        copy.destination() + layer * copy.destination_layer_bytes() + row * copy.destination_pitch();
    const uint64_t from = copy.source() + layer * copy.source_layer_bytes() + row * copy.source_pitch();
    if (is_known)
      memory_.Copy(to, from, box.width, when);
    else
      memory_.Forget(to, box.width, when);
  });
}

void Assembler::Place(const pb::Fill& fill, Moment when) {
  const Box box{fill.count() * fill.element_bytes(), std::max<uint64_t>(fill.rows(), 1), 1};
  if (!box.IsSmall(kMostRows)) {
    ++many_rows_;
    return memory_.Forget(fill.address(), Extent(box, fill.pitch(), 0), when);
  }
  ForEachRow(box, [&](uint64_t, uint64_t row) {
    memory_.Fill(fill.address() + row * fill.pitch(), fill.value(), fill.element_bytes(), fill.count(), when);
  });
}

void Assembler::TakeSnapshot(const pb::Snapshot& snapshot) {
  snapshots_[snapshot.thread()].push_back(snapshot);
}

void Assembler::PlaceSnapshots(uint32_t thread, uint32_t launch) {
  const auto found = snapshots_.find(thread);
  if (found == snapshots_.end()) return;
  for (pb::Snapshot& each : found->second)
    memory_.Write(each.address(), std::move(*each.mutable_data()), {launch});
  snapshots_.erase(found);
}

}  // namespace heddle::capture
