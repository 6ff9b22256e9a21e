// The bulk-copy unit (TMA): cuts bulk instructions into requests and says when each leaves.
//
// Loads are taken in order; a request waits for its turn and for one of `requests_in_flight` places, which an answer
// frees. Stores read shared memory in order at the rate at which the SM's port sends; prefetches ask for no data and hold
// no place. A tensor map that is not among the last few used is read from L2 first.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"
#include "sim/isa/warp_stream.h"
#include "sim/memory/memory_request.h"
#include "sim/sm/units/dependence_counters.h"

namespace heddle::sm {

inline constexpr uint32_t kNoBulkGroup = ~0u;

struct BulkRequest {
  Cycle cycle = 0;
  uint64_t line_address = 0;
  uint8_t sectors = 0;
  uint16_t bytes = 0;
  uint32_t operation = 0;  // of the unit
  uint32_t piece = 0;
  uint32_t offset = 0;  // in the piece
};

// One bulk instruction on its way.
struct BulkWork {
  isa::BulkOperation* bulk =
      nullptr;  // the stream's: gone when all of it has been performed, answers may still come
  isa::BulkKind kind = isa::BulkKind::kLoad;
  uint32_t launch = 0;
  uint32_t warp = 0;  // slot
  uint32_t cta = 0;
  uint32_t slot = 0;         // of the CTA in the stream
  uint32_t rank = 0;         // of the CTA in its cluster
  uint32_t instruction = 0;  // index
  uint32_t group = kNoBulkGroup;
  Cycle issued = 0;
  Cycle earliest = 0;     // of its first request; kUnknown while its tensor map is on its way
  Cycle done = 0;         // latest answer, or end of reading
  uint32_t requests = 0;  // in all
  uint32_t unanswered = 0;
  uint32_t decided = 0;  // of a load: requests whose cycle is known
  uint32_t piece = 0;    // next to cut
  uint32_t offset = 0;
  uint32_t pieces_read = 0;  // of a store: taken from shared memory
  bool begun = false;
  bool in_use = false;
  bool source_read = true;      // of a store: the last row has left shared memory
  memory::BulkContext context;  // of its requests
};

class TmaUnit {
 public:
  // `store_bytes_per_cycle`: what the SM's port sends.
  TmaUnit(const config::Tma& config, double store_bytes_per_cycle);

  // From when another instruction may issue: at most queue_entries have not sent their last request. kUnknown while that
  // depends on answers.
  Cycle FreeAt() const { return departures_[next_ticket_ % departures_.size()]; }

  // Takes an instruction. Loads wait in line; call ScheduleLoads. Others: ScheduleNow. Returns its number.
  uint32_t Add(const BulkWork& work);
  BulkWork& work(uint32_t id) { return works_[id]; }
  const std::deque<BulkWork>& works() const { return works_; }
  void Free(uint32_t id);

  // Whether the tensor map is at hand, and from when; kUnknown: on its way. Sets *ask when it must be read.
  Cycle Descriptor(uint64_t address, Cycle at, bool* ask);
  // Its answer. Works that waited have their `earliest` set; those that are not loads are listed for ScheduleNow.
  void AnswerDescriptor(uint64_t address, Cycle arrival, std::vector<uint32_t>* ready);

  // Decides the requests of loads as far as places allow. Lists loads that ask for nothing (a box outside its tensor).
  // Nothing leaves before `now`.
  void ScheduleLoads(Cycle now, std::vector<uint32_t>* empty);
  // Decides all requests of a store or a prefetch. `read(at, bytes)` reserves the way out of shared memory and returns
  // its end. Returns the end of reading.
  Cycle ScheduleNow(uint32_t id, const std::function<Cycle(Cycle at, uint32_t bytes)>& read);
  void Answered() { --asked_; }  // a load's request: its place is free

  // Requests in the order of their decision, rising in each of the two lists.
  Cycle NextRequest() const;
  bool PopRequest(Cycle before, BulkRequest* request);

 private:
  struct Descriptor_ {
    uint64_t address = 0;
    Cycle ready = 0;  // kUnknown: asked for
    uint64_t used = 0;
  };
  bool Cut(BulkWork* work, BulkRequest* request) const;  // the next request, without its cycle
  void Begin(BulkWork* work);
  uint32_t RequestsOf(const isa::BulkOperation& bulk) const;

  uint64_t box_quarters_;
  uint64_t request_quarters_;
  double store_bytes_per_cycle_;
  uint32_t request_bytes_;
  uint32_t places_;
  uint32_t descriptor_entries_;
  uint64_t next_box_ = 0;   // quarter cycles
  uint64_t next_load_ = 0;  // likewise
  double next_store_ = 0;   // cycles
  uint32_t asked_ = 0;      // places taken
  std::deque<BulkWork> works_;
  std::vector<uint32_t> free_works_;
  std::deque<uint32_t> loads_;  // with requests that are not decided
  std::deque<BulkRequest> load_requests_;
  std::deque<BulkRequest> other_requests_;
  std::vector<Cycle> departures_;  // ring, by ticket
  std::vector<uint32_t> tickets_;  // by work
  uint32_t next_ticket_ = 0;
  std::vector<Descriptor_> descriptors_;
  uint64_t use_ = 0;
};

}  // namespace heddle::sm
