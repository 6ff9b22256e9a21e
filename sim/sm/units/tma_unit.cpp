#include "sim/sm/units/tma_unit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace heddle::sm {
namespace {

uint64_t Quarters(double cycles) { return static_cast<uint64_t>(std::lround(4 * cycles)); }

uint8_t SectorMask(uint32_t first_byte, uint32_t bytes) {
  const uint32_t first = first_byte / memory::kSectorBytes;
  const uint32_t last = (first_byte + bytes - 1) / memory::kSectorBytes;
  return static_cast<uint8_t>(((1u << (last - first + 1)) - 1) << first);
}

// The bytes of a row that requests cover: in global memory, or in shared memory between CTAs.
struct Span {
  uint64_t address = 0;
  uint32_t bytes = 0;
};
Span SpanOf(const isa::BulkOperation& bulk, const isa::BulkPiece& piece) {
  if (bulk.kind == isa::BulkKind::kExchange) return {piece.shared_address, piece.shared_bytes};
  return {piece.global_address, piece.global_bytes};
}

}  // namespace

TmaUnit::TmaUnit(const config::Tma& config, double store_bytes_per_cycle)
    : box_quarters_(Quarters(config.box_interval_cycles)),
      request_quarters_(Quarters(config.request_interval_cycles)),
      store_bytes_per_cycle_(store_bytes_per_cycle),
      request_bytes_(config.request_bytes),
      places_(config.requests_in_flight),
      descriptor_entries_(config.descriptor_cache_entries),
      departures_(config.queue_entries, 0) {}

uint32_t TmaUnit::RequestsOf(const isa::BulkOperation& bulk) const {
  uint64_t requests = 0;
  for (const isa::BulkPiece& piece : bulk.pieces) {
    const Span span = SpanOf(bulk, piece);
    if (span.bytes == 0) continue;
    requests += (span.address + span.bytes - 1) / request_bytes_ - span.address / request_bytes_ + 1;
  }
  return static_cast<uint32_t>(requests);
}

uint32_t TmaUnit::Add(const BulkWork& work) {
  if (free_works_.empty()) {
    free_works_.push_back(static_cast<uint32_t>(works_.size()));
    works_.emplace_back();
    tickets_.push_back(0);
  }
  const uint32_t id = free_works_.back();
  free_works_.pop_back();
  works_[id] = work;
  works_[id].in_use = true;
  works_[id].requests = works_[id].unanswered = RequestsOf(*work.bulk);
  works_[id].context.unanswered = works_[id].requests;
  tickets_[id] = next_ticket_++;
  departures_[tickets_[id] % departures_.size()] = kUnknown;
  if (work.bulk->kind == isa::BulkKind::kLoad) loads_.push_back(id);
  return id;
}

void TmaUnit::Free(uint32_t id) {
  works_[id].in_use = false;
  works_[id].bulk = nullptr;
  free_works_.push_back(id);
}

Cycle TmaUnit::Descriptor(uint64_t address, Cycle at, bool* ask) {
  *ask = false;
  address &= ~uint64_t{memory::kLineBytes - 1};
  for (Descriptor_& each : descriptors_) {
    if (each.address != address) continue;
    each.used = ++use_;
    return each.ready == kUnknown ? kUnknown : std::max(at, each.ready);
  }
  *ask = true;
  Descriptor_* entry = nullptr;
  if (descriptors_.size() < descriptor_entries_) {
    entry = &descriptors_.emplace_back();
  } else {
    entry = &*std::min_element(descriptors_.begin(), descriptors_.end(),
                               [](const auto& a, const auto& b) { return a.used < b.used; });
  }
  *entry = {address, kUnknown, ++use_};
  return kUnknown;
}

void TmaUnit::AnswerDescriptor(uint64_t address, Cycle arrival, std::vector<uint32_t>* ready) {
  for (Descriptor_& each : descriptors_)
    if (each.address == address) each.ready = arrival;
  for (uint32_t id = 0; id < works_.size(); ++id) {
    BulkWork& work = works_[id];
    if (!work.in_use || work.earliest != kUnknown) continue;
    if ((work.bulk->tensor_map_address & ~uint64_t{memory::kLineBytes - 1}) != address) continue;
    work.earliest = std::max(work.issued, arrival);
    if (work.bulk->kind != isa::BulkKind::kLoad) ready->push_back(id);
  }
}

// The next request of the work: within a piece, up to the end of a request's span.
bool TmaUnit::Cut(BulkWork* work, BulkRequest* request) const {
  const auto& pieces = work->bulk->pieces;
  while (work->piece < pieces.size() && work->offset >= SpanOf(*work->bulk, pieces[work->piece]).bytes)
    ++work->piece, work->offset = 0;
  if (work->piece == pieces.size()) return false;
  const Span span = SpanOf(*work->bulk, pieces[work->piece]);
  const uint64_t address = span.address + work->offset;
  const uint64_t span_end = (address / request_bytes_ + 1) * request_bytes_;
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(span_end - address, span.bytes - work->offset));
  request->line_address = address & ~uint64_t{memory::kLineBytes - 1};
  request->sectors = SectorMask(static_cast<uint32_t>(address - request->line_address), bytes);
  request->bytes = static_cast<uint16_t>(bytes);
  request->piece = work->piece;
  request->offset = work->offset;
  work->offset += bytes;
  return true;
}

void TmaUnit::Begin(BulkWork* work) {
  work->begun = true;
  const uint64_t at = std::max(4 * work->earliest, next_box_);
  next_box_ = at + box_quarters_;
  work->earliest = (at + 3) / 4;
}

void TmaUnit::ScheduleLoads(Cycle now, std::vector<uint32_t>* empty) {
  while (!loads_.empty()) {
    const uint32_t id = loads_.front();
    BulkWork& work = works_[id];
    if (work.earliest == kUnknown) return;
    if (!work.begun) {
      Begin(&work);
      next_load_ = std::max(next_load_, 4 * work.earliest);
      work.done = work.earliest;
    }
    for (;;) {
      if (asked_ == places_ && work.decided < work.requests) return;
      BulkRequest request;
      if (!Cut(&work, &request)) break;
      ++asked_;
      ++work.decided;
      next_load_ = std::max(next_load_, 4 * now);
      request.cycle = (next_load_ + 3) / 4;
      next_load_ += request_quarters_;
      request.operation = id;
      load_requests_.push_back(request);
    }
    departures_[tickets_[id] % departures_.size()] = next_load_ / 4;
    if (work.requests == 0) empty->push_back(id);
    loads_.pop_front();
  }
}

Cycle TmaUnit::ScheduleNow(uint32_t id, const std::function<Cycle(Cycle at, uint32_t bytes)>& read) {
  BulkWork& work = works_[id];
  Begin(&work);
  next_store_ = std::max(next_store_, static_cast<double>(work.earliest));
  work.done = work.earliest;
  BulkRequest request;
  while (Cut(&work, &request)) {
    const auto at = static_cast<Cycle>(std::ceil(next_store_));
    request.cycle = at;
    double interval = static_cast<double>(request_quarters_) / 4;
    if (work.bulk->kind != isa::BulkKind::kPrefetch) {
      request.cycle = read(at, request.bytes);
      interval = std::max(interval, request.bytes / store_bytes_per_cycle_);
    }
    next_store_ = std::max(next_store_, static_cast<double>(request.cycle) - 1) + interval;
    request.operation = id;
    other_requests_.push_back(request);
    work.done = std::max(work.done, request.cycle);
  }
  departures_[tickets_[id] % departures_.size()] = static_cast<Cycle>(next_store_);
  return work.done;
}

Cycle TmaUnit::NextRequest() const {
  Cycle next = kUnknown;
  if (!load_requests_.empty()) next = load_requests_.front().cycle;
  if (!other_requests_.empty()) next = std::min(next, other_requests_.front().cycle);
  return next;
}

bool TmaUnit::PopRequest(Cycle before, BulkRequest* request) {
  if (NextRequest() >= before) return false;
  const bool load = !load_requests_.empty() && (other_requests_.empty() || load_requests_.front().cycle <=
                                                                               other_requests_.front().cycle);
  std::deque<BulkRequest>& from = load ? load_requests_ : other_requests_;
  *request = from.front();
  from.pop_front();
  return true;
}

}  // namespace heddle::sm
