#include "frontend/import/warp_encoder.h"

#include <bit>
#include <functional>

namespace heddle::importer {
namespace {

Shape ShapeOf(const TracegInstruction& line) {
  Shape shape;
  const auto first = static_cast<size_t>(std::countr_zero(line.mask));
  for (uint32_t left = line.mask; left != 0; left &= left - 1)
    shape.offset[shape.lanes++] =
        line.address[static_cast<size_t>(std::countr_zero(left))] - line.address[first];
  return shape;
}

}  // namespace

void WarpEncoder::Begin() {
  out_ = {};
  records_.clear();
  ++warp_;
  count_ = expected_place_ = variant_ = 0;
  mask_ = ~0u;
  open_barrier_.reset();
}

void WarpEncoder::Add(const StaticCode::Found& found, const TracegInstruction& line) {
  if (count_ == 0 || line.mask != run_mask_ || found.key != start_ + count_) {
    FlushRun();
    start_ = found.key;
    run_mask_ = line.mask;
  }
  ++count_;
  if (line.mask == 0) return;
  if (found.record == RecordKind::kAccess) PutAccess(found, line);
  if (found.record == RecordKind::kBarrier) PutBarrier(line);
}

void WarpEncoder::FlushRun() {
  if (count_ == 0) return;
  const bool jump = PlaceOf(start_) != expected_place_, mask = run_mask_ != mask_,
             variant = VariantOf(start_) != variant_;
  PutNumber(uint64_t{count_} << 3 | (variant ? 4 : 0) | (mask ? 2 : 0) | (jump ? 1 : 0), &out_.tokens);
  if (jump) PutNumber(Zigzag(uint64_t{PlaceOf(start_)} - expected_place_), &out_.tokens);
  if (variant) PutNumber(VariantOf(start_), &out_.tokens);
  if (mask) PutNumber(run_mask_ ^ mask_, &out_.tokens);
  if (open_barrier_ && open_in_records_) {
    *open_barrier_ += out_.tokens.size();
    open_in_records_ = false;
  }
  out_.tokens += records_;
  records_.clear();
  expected_place_ = PlaceOf(start_) + count_;
  variant_ = VariantOf(start_);
  mask_ = run_mask_;
  count_ = 0;
}

void WarpEncoder::PutAccess(const StaticCode::Found& found, const TracegInstruction& line) {
  const Shape shape = ShapeOf(line);
  const uint64_t base = line.address[static_cast<size_t>(std::countr_zero(line.mask))];
  const uint32_t number = shapes_->Find(shape);
  if (found.id >= accesses_.size()) accesses_.resize(found.id + 1);
  Access& last = accesses_[found.id];
  if (last.warp != warp_) {
    out_.firsts.push_back({found.id, found.key, {base, number}});
    last = {warp_, number, base, 0};
    if (number == 0) PutDeltas(shape, shape.lanes, &records_);
    return;
  }
  const bool stated = number == 0 || number != last.shape;
  PutResidual(base - last.base - last.step, 2, stated ? 1 : 0, &records_);
  if (stated) PutNumber(number, &records_);
  if (number == 0) PutDeltas(shape, shape.lanes, &records_);
  if (number != 0) last.shape = number;
  last.step = base - last.base;
  last.base = base;
}

// Lanes that went different ways arrive one after the other: only the last ones of them make the warp wait.
void WarpEncoder::PutBarrier(const TracegInstruction& line) {
  const uint64_t barrier = std::hash<std::string_view>()(line.opcode) ^ static_cast<uint64_t>(line.immediate);
  if (open_barrier_) {
    const bool same = barrier == barrier_ && (arrived_ & line.mask) == 0;
    std::string& where = open_in_records_ ? records_ : out_.tokens;
    where[*open_barrier_] = static_cast<char>(same ? 0 : 1);
    arrived_ = same ? arrived_ : 0;
  } else {
    arrived_ = 0;
  }
  arrived_ |= line.mask;
  barrier_ = barrier;
  open_barrier_ = records_.size();
  open_in_records_ = true;
  records_.push_back(1);
}

EncodedWarp WarpEncoder::End() {
  FlushRun();
  return std::move(out_);
}

}  // namespace heddle::importer
