#include "frontend/emulator/async_port.h"

#include "frontend/emulator/memory_port.h"

namespace heddle::emulator {

void BulkRecord::AddPiece(const isa::BulkPiece& piece, uint32_t lead_bytes) {
  row_offset.push_back(static_cast<uint32_t>(total_shared_bytes));
  lead.push_back(lead_bytes);
  pieces.push_back(piece);
  total_shared_bytes += piece.shared_bytes;
}

BulkRecord& AsyncPort::NewBulk(uint32_t instruction) {
  if (free_bulks_.empty()) {
    BulkRecord& made = bulks_.emplace_back();
    made.token = static_cast<uint32_t>(bulks_.size() - 1);
    made.owner = this;
    free_bulks_.push_back(&made);
  }
  BulkRecord& record = *free_bulks_.back();
  free_bulks_.pop_back();
  ++outstanding_;
  record.in_use = true;
  record.instruction = instruction;
  record.is_tensor = record.swizzled = record.skips_data = record.fills_nan = false;
  record.combines = record.combines_halves = false;
  record.dimensions = 0;
  record.destination_ranks = 0;
  record.mbarrier = 0;
  record.total_shared_bytes = 0;
  record.tensor_map_address = 0;
  record.element_bytes = 1;
  record.swizzle = isa::TensorSwizzle::kNone;
  record.source = nullptr;
  record.source_shift = 0;
  record.pieces.clear();
  record.lead.clear();
  record.row_offset.clear();
  return record;
}

RemoteRecord& AsyncPort::NewRemote(uint32_t instruction) {
  if (free_remotes_.empty()) {
    RemoteRecord& made = remotes_.emplace_back();
    made.token = static_cast<uint32_t>(remotes_.size() - 1);
    made.owner = this;
    free_remotes_.push_back(&made);
  }
  RemoteRecord& record = *free_remotes_.back();
  free_remotes_.pop_back();
  ++outstanding_;
  record.in_use = true;
  record.instruction = instruction;
  record.returns = record.is_arrival = record.skips_data = record.sign_extend = false;
  record.completes_transactions = false;
  record.scoreboards = 0;
  record.ranks = 0;
  record.lanes = 0;
  record.warp = nullptr;
  record.destination = nullptr;
  return record;
}

void AsyncPort::Performed(BulkRecord& record, uint64_t bytes) {
  if (record.remaining.fetch_sub(bytes, std::memory_order_acq_rel) != bytes) return;
  const std::lock_guard lock(done_mutex_);
  done_bulks_.push_back(&record);
  has_done_.store(true, std::memory_order_release);
}

void AsyncPort::Performed(RemoteRecord& record, uint32_t rank) {
  const uint32_t bit = 1u << rank;
  if ((record.ranks_left.fetch_and(~bit, std::memory_order_acq_rel) & ~bit) != 0 || record.returns) return;
  const std::lock_guard lock(done_mutex_);
  done_remotes_.push_back(&record);
  has_done_.store(true, std::memory_order_release);
}

void AsyncPort::Recycle(RemoteRecord& record) {
  record.in_use = false;
  free_remotes_.push_back(&record);
  --outstanding_;
}

void AsyncPort::TakeBack() {
  const std::lock_guard lock(done_mutex_);
  for (BulkRecord* record : done_bulks_) {
    record->in_use = false;
    free_bulks_.push_back(record);
  }
  outstanding_ -= static_cast<uint32_t>(done_bulks_.size());
  for (RemoteRecord* record : done_remotes_) Recycle(*record);
  done_bulks_.clear();
  done_remotes_.clear();
  has_done_.store(false, std::memory_order_relaxed);
}

void AsyncPort::Forget(const CtaState* cta) {
  if (outstanding_ == 0) return;
  Drain();
  for (BulkRecord& record : bulks_)
    if (record.in_use && record.source == cta) record.source = nullptr;
  for (RemoteRecord& record : remotes_)
    if (record.in_use && record.warp != nullptr && record.warp->cta == cta) record.warp = nullptr;
}

}  // namespace heddle::emulator
