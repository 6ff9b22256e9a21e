// Clusters: what instructions do to the shared memory of other CTAs, and the barrier between the CTAs of a cluster.
#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

constexpr uint32_t kMbarrierBytes = 8;

// Payload of the lanes that touch the CTA of this rank.
uint32_t BytesTo(const isa::RemoteOperation& operation, uint32_t rank) {
  uint32_t lanes = 0;
  for (uint32_t left = operation.lanes; left != 0; left &= left - 1)
    lanes += operation.rank[static_cast<size_t>(std::countr_zero(left))] == rank;
  return lanes * (operation.is_arrival ? kMbarrierBytes : operation.bytes_per_lane);
}

}  // namespace

// Sends an operation to every CTA that it touches. `transaction`: where values come back, else kNoIndex.
void Sm::Machine::SendRemote(uint32_t id, isa::RemoteOperation& operation, uint32_t instruction, Cycle at,
                             uint32_t transaction) {
  Warp& warp = warps[id];
  const AsyncCta& cta = async->ctas[warp.cta];
  HEDDLE_CHECK(cta.cluster != nullptr && uint32_t{operation.ranks} >> cta.cluster->size == 0, Path(), at,
               "an access to a CTA that the cluster does not have");
  const bool loads = operation.kind == isa::AccessKind::kLoad;
  for (uint32_t left = operation.ranks; left != 0; left &= left - 1) {
    ClusterMessage& message = NewMessage(ClusterMessage::Kind::kRemote, *cta.cluster, at);
    message.rank = static_cast<uint8_t>(std::countr_zero(left));
    message.to_sm = cta.cluster->members[message.rank].sm;
    message.bytes = loads ? 0 : BytesTo(operation, message.rank);
    message.remote = &operation;
    message.cause = instruction;
    message.returns = transaction != kNoIndex;
    message.acknowledged = !message.returns;
    message.index = message.returns ? transaction : id;
    if (message.acknowledged) ++warp.stores_unanswered;
    launches[warp.launch].counters.cluster_bytes += message.bytes;
  }
}

ClusterMessage& Sm::Machine::NewMessage(ClusterMessage::Kind kind, Cluster& cluster, Cycle at) {
  ClusterMessage& message = async->outbox.emplace_back();
  message.kind = kind;
  message.cluster = &cluster;
  message.cycle = at;
  message.from_sm = this->id;
  return message;
}

// Loads, stores and atomics of a warp on other CTAs' shared memory.
void Sm::Machine::IssueRemote(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  isa::RemoteOperation& operation = *step.memory.remote;
  const Cycle late = PushMio(sub_core, at, 1);
  const Cycle sent = at + late + config.mio.issue_to_lsu_cycles;
  ReleaseSources(id, timing, at + late + timing.source_release_cycles);
  if (!operation.returns) {
    Result(id, timing, at + late + timing.source_release_cycles);
    SendRemote(id, operation, warps[id].next, sent, kNoIndex);
    return;
  }
  const uint32_t transaction = NewTransaction(id);
  transactions[transaction].unanswered = static_cast<uint32_t>(std::popcount(operation.ranks));
  transactions[transaction].bytes =
      static_cast<uint16_t>(std::popcount(operation.lanes) * operation.bytes_per_lane);
  transactions[transaction].is_remote = true;
  ++warps[id].loads_unanswered;
  ResultLater(transaction, timing);
  SendRemote(id, operation, warps[id].next, sent, transaction);
}

// All rows of a bulk copy are at the CTA of that rank at `at`, or leave for it then.
void Sm::Machine::SendBulk(const BulkWork& work, uint32_t rank, Cycle at) {
  Cluster* cluster = async->ctas[work.cta].cluster;
  HEDDLE_CHECK(cluster != nullptr && rank < cluster->size, Path(), at,
               "a bulk copy to a CTA that the cluster does not have");
  ClusterMessage& message = NewMessage(ClusterMessage::Kind::kBulk, *cluster, at);
  message.rank = static_cast<uint8_t>(rank);
  message.to_sm = cluster->members[rank].sm;
  message.bytes = static_cast<uint32_t>(work.bulk->total_shared_bytes);
  message.bulk = work.bulk;
  message.cause = work.instruction;
  launches[work.launch].counters.cluster_bytes += message.bytes;
}

// The engine hands in what another SM (or this one) sent; its arrival lies in a later window.
void Sm::Machine::Deliver(const ClusterMessage& message) {
  if (async->free_inbox.empty()) {
    async->free_inbox.push_back(static_cast<uint32_t>(async->inbox.size()));
    async->inbox.emplace_back();
  }
  const uint32_t slot = async->free_inbox.back();
  async->free_inbox.pop_back();
  async->inbox[slot] = message;
  PushArrival({.cycle = message.arrival, .kind = Arrival::Kind::kMessage, .index = slot});
}

void Sm::Machine::Arrived(uint32_t slot, Cycle at) {
  const ClusterMessage message = async->inbox[slot];
  async->free_inbox.push_back(slot);
  if (message.kind == ClusterMessage::Kind::kReply) {
    RemoteReply(message, at);
    return;
  }
  const Cluster::Member& member = message.cluster->members[message.rank];
  const AsyncCta& state = async->ctas[member.cta];
  const bool ended = state.generation != member.generation || !ctas[member.cta].resident;
  const uint32_t slot_of_cta = ended ? isa::kEndedCta : ctas[member.cta].slot;
  Launch& launch = launches[member.launch];
  // The last CTA has ended meanwhile, and with it whoever could wait for this.
  if (!launch.open || launch.order != member.launch_order) return;
  isa::WarpStream* stream = launch.stream;
  switch (message.kind) {
    case ClusterMessage::Kind::kRemote: {
      const uint32_t lanes = std::max(1u, BytesTo(*message.remote, message.rank) / 4);
      const Cycle access = lsu.Reserve(at, CeilDiv(lanes, kWarpLanes));
      stream->PerformRemote(*message.remote, slot_of_cta, message.rank, at);
      Wake(member.launch, message.cause, at);
      if (!message.returns) return;
      ClusterMessage& reply = NewMessage(ClusterMessage::Kind::kReply, *message.cluster,
                                         access - 1 + async->shared_access_cycles);
      reply.to_sm = message.from_sm;
      reply.bytes = BytesTo(*message.remote, message.rank);
      reply.index = message.index;
      reply.remote = message.remote;
      launch.counters.cluster_bytes += reply.bytes;
      return;
    }
    case ClusterMessage::Kind::kBulk:
      TakeDataPath(message.bytes, at);
      stream->CompleteBulk(*message.bulk, slot_of_cta, message.rank, 0,
                           static_cast<uint32_t>(message.bulk->pieces.size()), at);
      Wake(member.launch, message.cause, at);
      return;
    case ClusterMessage::Kind::kRelease:
      if (!ended) ReleaseCluster(member.cta, at);
      return;
    default:
      return;
  }
}

// Rows of a bulk copy from elsewhere are written to shared memory as they come, in at most half of the data path's cycles.
// That is charged when the last is here, which is not late by it.
void Sm::Machine::TakeDataPath(uint32_t bytes, Cycle at) {
  constexpr uint32_t kPieceCycles = 8;
  uint32_t cycles = CeilDiv(bytes, shared_bytes_per_cycle);
  for (Cycle from = at; cycles > 0; from += 2 * kPieceCycles) {
    const uint32_t piece = std::min(cycles, kPieceCycles);
    lsu.Reserve(from, piece);
    cycles -= piece;
  }
}

void Sm::Machine::RemoteReply(const ClusterMessage& message, Cycle at) {
  Transaction& transaction = transactions[message.index];
  transaction.arrived = std::max(transaction.arrived, at);
  if (--transaction.unanswered > 0) return;
  launches[warps[transaction.warp].launch].stream->CompleteRemote(*message.remote, at);
  const uint32_t warp = transaction.warp;
  FinishTransaction(message.index);
  if (!warps[warp].live) return;
  Refresh(warp);
  Select(SubCoreOf(warp));
}

// What this SM sent has been carried: fences hear of their stores.
void Sm::Machine::TakeAcknowledgements() {
  size_t kept = 0;
  async->next_departure = kNever;
  for (const ClusterMessage& message : async->outbox) {
    if (message.arrival == 0) {
      async->next_departure = std::min(async->next_departure, message.cycle);
      async->outbox[kept++] = message;
    } else if (message.acknowledged) {
      Acknowledge(message.index, message.arrival + async->cluster_latency_cycles);
    }
  }
  async->outbox.resize(kept);
}

// ---- The cluster barrier

void Sm::Machine::ArriveAtCluster(uint32_t id, Cycle at) {
  AsyncCta& state = async->ctas[warps[id].cta];
  state.arrived_warps |= uint64_t{1} << warps[id].in_cta;
  ReportClusterArrival(warps[id].cta, at);
}

// Once every warp has arrived or exited, and at least one has arrived.
void Sm::Machine::ReportClusterArrival(uint32_t cta_id, Cycle at) {
  AsyncCta& state = async->ctas[cta_id];
  const size_t count = ctas[cta_id].warps.size();
  const uint64_t all = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  if (state.arrived_warps == 0 || (state.arrived_warps | state.exited_warps) != all) return;
  state.arrived_warps = 0;
  if (state.cluster != nullptr) {
    NewMessage(ClusterMessage::Kind::kArrive, *state.cluster, at).rank = static_cast<uint8_t>(state.rank);
    return;
  }
  PushArrival(
      {.cycle = at + async->cluster_barrier_cycles, .kind = Arrival::Kind::kClusterRelease, .index = cta_id});
}

void Sm::Machine::ReleaseCluster(uint32_t cta_id, Cycle at) {
  const Cta& cta = ctas[cta_id];
  launches[cta.launch].stream->ReleaseClusterBarrier(cta.slot);
  launches[cta.launch].stream->woken().clear();
  for (const uint32_t id : cta.warps) {
    if (!warps[id].live || !warps[id].blocked || async->warps[id].wait != AsyncWarp::Wait::kCluster) continue;
    WakeWarp(id, stats::kUnknownCause, at);
  }
}

// ---- Ends, and dependent launches

void Sm::Machine::AsyncExit(uint32_t id, Cycle at) {
  AsyncCta& state = async->ctas[warps[id].cta];
  state.exited_warps |= uint64_t{1} << warps[id].in_cta;
  ReportClusterArrival(warps[id].cta, at);
  if (state.triggered_warps != 0) ReportTrigger(warps[id].cta, at);
}

void Sm::Machine::LeaveCluster(uint32_t cta_id, Cycle at) {
  const AsyncCta& state = async->ctas[cta_id];
  if (state.cluster != nullptr)
    NewMessage(ClusterMessage::Kind::kEnded, *state.cluster, at).rank = static_cast<uint8_t>(state.rank);
}

void Sm::Machine::Trigger(uint32_t id, Cycle at) {
  async->ctas[warps[id].cta].triggered_warps |= uint64_t{1} << warps[id].in_cta;
  ReportTrigger(warps[id].cta, at);
}

void Sm::Machine::ReportTrigger(uint32_t cta_id, Cycle at) {
  AsyncCta& state = async->ctas[cta_id];
  const size_t count = ctas[cta_id].warps.size();
  const uint64_t all = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
  if (state.reported_trigger || (state.triggered_warps | state.exited_warps) != all) return;
  state.reported_trigger = true;
  triggered.push_back({static_cast<LaunchHandle>(ctas[cta_id].launch), at});
}

void Sm::Machine::SetGridReady(LaunchHandle launch, Cycle at) {
  launches[launch].grid_ready = at;
  for (uint32_t id = 0; id < warps.size(); ++id) {
    if (!warps[id].live || warps[id].launch != launch) continue;
    Refresh(id);
    Select(SubCoreOf(id));
  }
}

}  // namespace heddle::sm
