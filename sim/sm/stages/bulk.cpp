// Bulk copies: from the instruction through the TMA unit to the outbox, and what their answers complete.
#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {

using isa::BulkKind;

void Sm::Machine::IssueBulk(uint32_t id, const InstructionTiming& timing, Cycle at) {
  ReleaseSources(id, timing, at + timing.source_release_cycles);
  Result(id, timing, at + timing.result_cycles);
  if (step.kind != isa::StepKind::kBulk || step.bulk == nullptr) return;
  isa::BulkOperation& bulk = *step.bulk;
  Warp& warp = warps[id];
  const AsyncCta& cta = async->ctas[warp.cta];
  BulkWork work;
  work.bulk = &bulk;
  work.kind = bulk.kind;
  work.launch = warp.launch;
  work.warp = id;
  work.cta = warp.cta;
  work.slot = ctas[warp.cta].slot;
  work.rank = cta.rank;
  work.instruction = step.index;
  work.issued = at + async->issue_to_bulk_request;
  work.earliest = work.issued;
  stats::Counters& counters = launches[warp.launch].counters;
  ++counters.tma_inst_executed;
  if (bulk.is_tensor) {
    bool ask = false;
    work.earliest = async->tma.Descriptor(bulk.tensor_map_address, work.issued, &ask);
    port.CountFor(warp.launch);
    if (ask)
      port.ReadLine(bulk.tensor_map_address & ~uint64_t{memory::kLineBytes - 1},
                    at + config.l1.miss_latency_cycles, RequestPort::kTensorMap);
  }
  ++warp.loads_unanswered;  // the CTA keeps its shared memory
  if (bulk.kind != BulkKind::kLoad && bulk.kind != BulkKind::kPrefetch) {
    work.group = OpenBulkGroup(id);
    ++async->groups[work.group].undecided;
  }
  work.source_read = bulk.kind == BulkKind::kLoad;
  const uint32_t number = async->tma.Add(work);
  PrepareContext(number);
  if (bulk.kind == BulkKind::kLoad) {
    ScheduleLoads();
  } else if (work.earliest != kUnknown) {
    DecideStore(number);
  }
  FreeBulkPorts();
}

// Requests of a load for several SMs share where these are; those of a store name the rows that the slice performs.
void Sm::Machine::PrepareContext(uint32_t number) {
  BulkWork& work = async->tma.work(number);
  memory::BulkContext& context = work.context;
  context.operation = work.bulk;
  context.owner_sm = id;
  context.owner_work = number;
  if (work.bulk->kind != BulkKind::kLoad) return;
  const uint16_t own = static_cast<uint16_t>(1u << work.rank);
  if (work.bulk->destination_ranks == own) return;
  const Cluster* cluster = async->ctas[work.cta].cluster;
  HEDDLE_CHECK(cluster != nullptr && work.bulk->destination_ranks >> cluster->size == 0, Path(), now,
               "a bulk load for a CTA that its cluster does not have");
  context.destinations = work.bulk->destination_ranks;
  for (uint32_t rank = 0; rank < cluster->size; ++rank) context.sm[rank] = cluster->members[rank].sm;
}

void Sm::Machine::ScheduleLoads() {
  async->tma.ScheduleLoads(now, &async->empty_works);
  for (const uint32_t number : async->empty_works) FinishEmptyLoad(number);
  async->empty_works.clear();
  if (async->tma.FreeAt() != sub_cores[0].ready.PortFree(IssuePort::kTma)) FreeBulkPorts();
}

// A box outside its tensor asks for nothing.
void Sm::Machine::FinishEmptyLoad(uint32_t number) {
  BulkWork& work = async->tma.work(number);
  if (work.context.destinations == 0) {
    FinishLoad(number);
    return;
  }
  const Cycle at = std::max(work.done, now);  // its turn may have come long after its tensor map did
  for (uint32_t left = work.context.destinations; left != 0; left &= left - 1)
    SendBulk(work, static_cast<uint32_t>(std::countr_zero(left)), at);
  ReleaseHold(work.warp, at);
  async->tma.Free(number);
}

// The whole way of a store's or prefetch's requests is known.
void Sm::Machine::DecideStore(uint32_t number) {
  BulkWork& work = async->tma.work(number);
  const Cycle done = async->tma.ScheduleNow(number, [this](Cycle at, uint32_t bytes) {
    return lsu.Reserve(at, CeilDiv(bytes, shared_bytes_per_cycle));
  });
  if (work.group != kNoBulkGroup) DecideBulkGroup(work.group, done);
  PushArrival({.cycle = std::max(done, now + 1),
               .kind = Arrival::Kind::kBulkRead,
               .launch = work.launch,
               .index = number});
}

// ---- Groups of bulk stores

uint32_t Sm::Machine::OpenBulkGroup(uint32_t id) {
  AsyncWarp& state = async->warps[id];
  if (state.open_bulk_group != kNoBulkGroup) return state.open_bulk_group;
  if (async->free_groups.empty()) {
    async->free_groups.push_back(static_cast<uint32_t>(async->groups.size()));
    async->groups.emplace_back();
  }
  state.open_bulk_group = async->free_groups.back();
  async->free_groups.pop_back();
  async->groups[state.open_bulk_group] = BulkGroup{};
  async->groups[state.open_bulk_group].warp = id;
  return state.open_bulk_group;
}

// UTMACMDFLUSH: its read barrier counts until the sources of the group may be overwritten.
void Sm::Machine::CloseBulkGroup(uint32_t id, const InstructionTiming& timing, Cycle at) {
  AsyncWarp& state = async->warps[id];
  const Cycle earliest = at + timing.source_release_cycles;
  Result(id, timing, at + timing.result_cycles);
  const uint32_t number = state.open_bulk_group;
  state.open_bulk_group = kNoBulkGroup;
  if (number == kNoBulkGroup) {
    ReleaseSources(id, timing, earliest);
    return;
  }
  BulkGroup& group = async->groups[number];
  group.done = std::max(group.done, earliest);
  if (group.undecided == 0 || timing.read_barrier == isa::kNoBarrier) {
    ReleaseSources(id, timing, group.done);
    if (group.undecided == 0) async->free_groups.push_back(number);
    group.closed = true;
    return;
  }
  group.closed = true;
  group.barrier = timing.read_barrier;
  warps[id].counters.IncrementUnanswered(group.barrier, stats::Stall::k_long_scoreboard);
  if (IsCounted(id, group.barrier))
    group.ticket = counted[id * kBarriers + group.barrier].Push(kUnknown, now);
}

void Sm::Machine::DecideBulkGroup(uint32_t number, Cycle done) {
  BulkGroup& group = async->groups[number];
  group.done = std::max(group.done, done);
  if (--group.undecided > 0 || !group.closed) return;
  async->free_groups.push_back(number);
  if (group.barrier == isa::kNoBarrier) return;
  warps[group.warp].counters.Answer(group.barrier, group.done);
  if (IsCounted(group.warp, group.barrier))
    counted[group.warp * kBarriers + group.barrier].Answer(group.ticket, group.done);
  if (warps[group.warp].live) Touch(group.warp);
}

// ---- Requests and answers

// At the end of a window: what the unit sends before `end`.
void Sm::Machine::SendBulkRequests(Cycle end) {
  BulkRequest request;
  while (async->tma.PopRequest(end, &request)) {
    BulkWork& work = async->tma.work(request.operation);
    const BulkKind kind = work.kind;
    port.CountFor(work.launch);
    ++launches[work.launch].counters.tma_requests;
    if (launches[work.launch].per_pc != nullptr && kind != BulkKind::kExchange) {
      const auto sectors = static_cast<uint64_t>(std::popcount(request.sectors));
      launches[work.launch].per_pc[work.instruction].memory +=
          {.requests = 1, .sectors = sectors, .ideal_sectors = sectors};
    }
    if (kind == BulkKind::kLoad) {
      memory::MemoryRequest& sent =
          port.Send(memory::RequestKind::kRead, request.line_address, request.sectors, request.cycle,
                    RequestPort::kBulk, request.operation);
      if (work.context.destinations != 0) sent.bulk = &work.context;
      launches[work.launch].counters.l1tex_m_read_bytes +=
          static_cast<uint64_t>(std::popcount(request.sectors)) * memory::kSectorBytes;
      continue;
    }
    if (kind == BulkKind::kPrefetch) {
      port.Send(memory::RequestKind::kPrefetch, request.line_address, request.sectors, request.cycle,
                RequestPort::kBulk, request.operation);
      continue;
    }
    ReadSource(&work, request.piece + 1, request.cycle);
    if (kind == BulkKind::kExchange) continue;
    memory::MemoryRequest& sent = port.Send(
        kind == BulkKind::kReduce ? memory::RequestKind::kReduction : memory::RequestKind::kWrite,
        request.line_address, request.sectors, request.cycle, RequestPort::kBulk, request.operation);
    sent.payload_bytes = request.bytes;
    sent.stream = launches[work.launch].stream;
    sent.bulk = &work.context;
    sent.token = request.piece;
    sent.lanes = request.offset;
    launches[work.launch].counters.l1tex_m_write_bytes += request.bytes;
  }
}

void Sm::Machine::ReadSource(BulkWork* work, uint32_t pieces, Cycle at) {
  if (pieces <= work->pieces_read) return;
  launches[work->launch].stream->ReadBulkSource(*work->bulk, work->pieces_read, pieces - work->pieces_read,
                                                at);
  work->pieces_read = pieces;
}

// The last row of a store has left shared memory, the last request of a prefetch the SM.
void Sm::Machine::BulkSourceRead(uint32_t number, Cycle at) {
  BulkWork& work = async->tma.work(number);
  // Once all of a store has been performed, the stream has taken it back; a prefetch lasts until it is read here.
  if (work.kind == BulkKind::kPrefetch || work.unanswered != 0 || work.requests == 0)
    ReadSource(&work, static_cast<uint32_t>(work.bulk->pieces.size()), at);
  ReleaseHold(work.warp, at);
  if (work.kind == BulkKind::kExchange) {
    for (uint32_t left = work.bulk->destination_ranks; left != 0; left &= left - 1)
      SendBulk(work, static_cast<uint32_t>(std::countr_zero(left)), at);
  }
  work.source_read = true;
  if (work.kind == BulkKind::kExchange || work.unanswered == 0) async->tma.Free(number);
}

void Sm::Machine::AnswerBulk(uint32_t number, Cycle at) {
  BulkWork& work = async->tma.work(number);
  const bool load = work.kind == BulkKind::kLoad;
  --work.unanswered;
  if (load) {
    async->tma.Answered();
    work.done = std::max(work.done, at + config.l1.fill_latency_cycles);
    // Writing shared memory takes its data path; a request is a line at most.
    if (work.context.destinations == 0) work.done = std::max(work.done, lsu.Reserve(at, 1));
  }
  if (work.unanswered == 0) {
    if (load && work.context.destinations == 0) {
      FinishLoad(number);
    } else {
      if (load) ReleaseHold(work.warp, work.done);
      if (work.source_read) async->tma.Free(number);
    }
  }
  if (load) ScheduleLoads();
}

void Sm::Machine::AnswerTensorMap(uint64_t address, Cycle at) {
  async->tma.AnswerDescriptor(address, at, &async->ready_works);
  for (const uint32_t number : async->ready_works) DecideStore(number);
  async->ready_works.clear();
  ScheduleLoads();
}

void Sm::Machine::FinishLoad(uint32_t number) {
  const BulkWork& work = async->tma.work(number);
  PushArrival({.cycle = std::max(work.done, now + 1),
               .kind = Arrival::Kind::kBulkLoaded,
               .launch = work.launch,
               .index = number});
}

// All rows of a load are in the shared memory of the CTA that asked for them.
void Sm::Machine::BulkLoaded(uint32_t number, Cycle at) {
  const BulkWork work = async->tma.work(number);
  async->tma.Free(number);
  isa::WarpStream* stream = launches[work.launch].stream;
  stream->CompleteBulk(*work.bulk, work.slot, work.rank, 0, static_cast<uint32_t>(work.bulk->pieces.size()),
                       at);
  ReleaseHold(work.warp, at);
  Wake(work.launch, work.instruction, at);
}

// A copy of the warp no longer needs the CTA's resources.
void Sm::Machine::ReleaseHold(uint32_t id, Cycle at) {
  Warp& warp = warps[id];
  warp.loads_done = std::max(warp.loads_done, at);
  if (--warp.loads_unanswered == 0 && !warp.live)
    PushArrival({.cycle = std::max(warp.loads_done, now), .kind = Arrival::Kind::kDrain, .index = id});
}

// The unit can take another instruction from a cycle that may have become known.
void Sm::Machine::FreeBulkPorts() {
  const Cycle free = async->tma.FreeAt();
  for (uint32_t i = 0; i < sub_core_count; ++i) {
    if (sub_cores[i].ready.PortFree(IssuePort::kTma) == free) continue;
    sub_cores[i].ready.SetPortFree(IssuePort::kTma, free == kNever ? kNever : std::max(free, now));
    Select(i);
  }
}

}  // namespace heddle::sm
