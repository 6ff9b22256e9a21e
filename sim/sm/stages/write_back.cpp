// Write-back: results that come at a known cycle, and answers of the memory system.
#include <algorithm>
#include <bit>
#include <functional>

#include "sim/base/check.h"
#include "sim/base/prefetch.h"
#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

stats::Stall WaitOf(const InstructionTiming& timing) {
  return (timing.flags & kLongScoreboard) != 0 ? stats::Stall::k_long_scoreboard
                                               : stats::Stall::k_short_scoreboard;
}

}  // namespace

void Sm::Machine::ReleaseSources(uint32_t id, const InstructionTiming& timing, Cycle at) {
  if ((timing.flags & kOnScoreboard) != 0) NoteRelease(id, warps[id].next, at);
  if (timing.read_barrier == isa::kNoBarrier) return;
  warps[id].counters.Increment(timing.read_barrier, at, stats::Stall::k_short_scoreboard);
  if (IsCounted(id, timing.read_barrier)) counted[id * kBarriers + timing.read_barrier].Push(at, now);
}

void Sm::Machine::Result(uint32_t id, const InstructionTiming& timing, Cycle at) {
  if ((timing.flags & kOnScoreboard) != 0) NoteResult(id, warps[id].next, at, false);
  if (timing.write_barrier == isa::kNoBarrier) return;
  warps[id].counters.Increment(timing.write_barrier, at, WaitOf(timing));
  if (IsCounted(id, timing.write_barrier)) counted[id * kBarriers + timing.write_barrier].Push(at, now);
}

// The barrier of a transaction counts until FinishTransaction.
void Sm::Machine::ResultLater(uint32_t transaction_id, const InstructionTiming& timing) {
  Transaction& transaction = transactions[transaction_id];
  transaction.barrier = timing.write_barrier;
  if ((timing.flags & kOnScoreboard) != 0) {
    transaction.scoreboard = warps[transaction.warp].next;
    NoteResult(transaction.warp, transaction.scoreboard, kUnknown, false);
  }
  if (transaction.barrier == isa::kNoBarrier) return;
  warps[transaction.warp].counters.IncrementUnanswered(transaction.barrier, WaitOf(timing));
  if (IsCounted(transaction.warp, transaction.barrier))
    transaction.ticket = counted[transaction.warp * kBarriers + transaction.barrier].Push(kUnknown, now);
}

uint32_t Sm::Machine::NewTransaction(uint32_t warp) {
  if (free_transactions.empty()) {
    free_transactions.push_back(static_cast<uint32_t>(transactions.size()));
    transactions.emplace_back();
  }
  const uint32_t id = free_transactions.back();
  free_transactions.pop_back();
  transactions[id] = Transaction{};
  transactions[id].warp = warp;
  return id;
}

void Sm::Machine::AnswerTransaction(uint32_t id, Cycle arrival) {
  Transaction& transaction = transactions[id];
  transaction.arrived = std::max(transaction.arrived, arrival);
  if (--transaction.unanswered == 0) FinishTransaction(id);
}

// The registers of a sub-core take a few bytes a cycle: the cycle in which the last of `bytes` is written,
// `done` if nothing else returns then.
Cycle Sm::Machine::ReturnData(SubCore& sub_core, Cycle done, uint32_t bytes) {
  const Cycle transfer = CeilDiv(bytes, config.mio.return_bytes_per_cycle);
  return std::max(done, sub_core.returns.Reserve(done - std::min(done - now, transfer), bytes));
}

// All answers are known: when the registers are written, or the bytes of a copy stand in shared memory.
void Sm::Machine::FinishTransaction(uint32_t id) {
  const Transaction transaction = transactions[id];
  free_transactions.push_back(id);
  Warp& warp = warps[transaction.warp];
  SubCore& sub_core = sub_cores[SubCoreOf(transaction.warp)];
  Cycle done = transaction.arrived + config.l1.fill_latency_cycles;
  if (transaction.is_copy) {
    // Writing shared memory takes the LSU's data path as a store of the same bytes would.
    const uint32_t writes = CeilDiv<uint32_t>(transaction.bytes, shared_bytes_per_cycle);
    done = std::max(transaction.floor, lsu.Reserve(done, writes) - writes + copy_extra_cycles);
    PushArrival({.cycle = done, .launch = warp.launch, .index = transaction.token});
    AnswerGroup(transaction.group, done);
  } else if (transaction.is_remote) {
    done = ReturnData(sub_core, transaction.arrived, transaction.bytes);
  } else if (transaction.is_constant) {
    done = std::max(transaction.floor, transaction.arrived + config.constant_caches.l1.miss_latency_cycles);
  } else {
    done = ReturnData(sub_core, std::max(transaction.floor, done), transaction.bytes);
  }
  if (transaction.scoreboard != kNoIndex && warp.live)
    NoteResult(transaction.warp, transaction.scoreboard, done, true);
  if (transaction.barrier != isa::kNoBarrier) {
    warp.counters.Answer(transaction.barrier, done);
    if (IsCounted(transaction.warp, transaction.barrier))
      counted[transaction.warp * kBarriers + transaction.barrier].Answer(transaction.ticket, done);
  }
  warp.loads_done = std::max(warp.loads_done, done);
  if (--warp.loads_unanswered == 0 && !warp.live)
    PushArrival({.cycle = warp.loads_done, .kind = Arrival::Kind::kDrain, .index = transaction.warp});
  if (warp.live) Touch(transaction.warp);
}

// ---- Groups of asynchronous copies
// -------------------------------------------------------------------------------

uint32_t Sm::Machine::OpenGroup(uint32_t warp_id) {
  Warp& warp = warps[warp_id];
  if (warp.open_group != kNoIndex) return warp.open_group;
  if (free_groups.empty()) {
    free_groups.push_back(static_cast<uint32_t>(groups.size()));
    groups.emplace_back();
  }
  warp.open_group = free_groups.back();
  free_groups.pop_back();
  groups[warp.open_group] = CopyGroup{};
  groups[warp.open_group].warp = warp_id;
  return warp.open_group;
}

// LDGDEPBAR: its barrier counts until all copies that the warp has issued so far have arrived.
void Sm::Machine::CloseGroup(uint32_t id, const InstructionTiming& timing, Cycle at) {
  Warp& warp = warps[id];
  ReleaseSources(id, timing, at + timing.source_release_cycles);
  const Cycle earliest = at + timing.result_cycles;
  if (warp.open_group == kNoIndex && warp.groups_unanswered == 0) {
    Result(id, timing, std::max(earliest, warp.copies_done));
    return;
  }
  const uint32_t group_id = OpenGroup(id);
  warp.open_group = kNoIndex;
  CopyGroup& group = groups[group_id];
  group.done = std::max(group.done, earliest);
  group.barrier = timing.write_barrier;
  group.closed = true;
  if (group.unanswered == 0 && warp.groups_unanswered == 0) {
    warp.copies_done = std::max(warp.copies_done, group.done);
    Result(id, timing, warp.copies_done);
    free_groups.push_back(group_id);
    return;
  }
  ++warp.groups_unanswered;
  if (group.barrier != isa::kNoBarrier) {
    warp.counters.IncrementUnanswered(group.barrier, stats::Stall::k_long_scoreboard);
    if (IsCounted(id, group.barrier))
      group.ticket = counted[id * kBarriers + group.barrier].Push(kUnknown, now);
  }
  if (group.unanswered == 0) SettleGroup(group_id);
}

void Sm::Machine::AnswerGroup(uint32_t group_id, Cycle done) {
  CopyGroup& group = groups[group_id];
  group.done = std::max(group.done, done);
  --group.unanswered;
  if (group.closed && group.unanswered == 0) SettleGroup(group_id);
}

// Groups of a warp complete in order: prefix maxima follow from CountedBarrier::AtMost, and a wait for all of them
// from the largest.
void Sm::Machine::SettleGroup(uint32_t group_id) {
  const CopyGroup group = groups[group_id];
  Warp& warp = warps[group.warp];
  --warp.groups_unanswered;
  warp.copies_done = std::max(warp.copies_done, group.done);
  free_groups.push_back(group_id);
  if (group.arrives) async->arrivals_after_copies.push_back({group.warp, group.token});
  if (async && warp.groups_unanswered == 0) SettleArrivalsAfterCopies(group.warp);
  if (group.barrier == isa::kNoBarrier) return;
  warp.counters.Answer(group.barrier, group.done);
  if (IsCounted(group.warp, group.barrier))
    counted[group.warp * kBarriers + group.barrier].Answer(group.ticket, group.done);
  if (warp.live) Touch(group.warp);
}

// ---- Arrivals and answers
// ------------------------------------------------------------------------------------------

void Sm::Machine::PushArrival(Arrival arrival) {
  arrival.order = ++arrival_order;
  arrivals.push_back(arrival);
  std::push_heap(arrivals.begin(), arrivals.end(), std::greater<>());
  next_event = std::min(next_event, arrival.cycle);
}

void Sm::Machine::Arrive() {
  std::pop_heap(arrivals.begin(), arrivals.end(), std::greater<>());
  const Arrival arrival = arrivals.back();
  arrivals.pop_back();
  now = arrival.cycle;
  switch (arrival.kind) {
    case Arrival::Kind::kCopy:
      launches[arrival.launch].stream->CompleteAsyncCopy(arrival.index, arrival.cycle);
      break;
    case Arrival::Kind::kDrain:
      Drained(arrival.index, arrival.cycle);
      break;
    case Arrival::Kind::kCta:
      StartWarps(arrival.cycle);
      break;
    case Arrival::Kind::kArriveAfterCopies:
      launches[arrival.launch].stream->ArriveAfterCopies(arrival.index, arrival.cycle);
      Wake(arrival.launch, stats::kUnknownCause, arrival.cycle);
      break;
    case Arrival::Kind::kBulkLoaded:
      BulkLoaded(arrival.index, arrival.cycle);
      break;
    case Arrival::Kind::kBulkRead:
      BulkSourceRead(arrival.index, arrival.cycle);
      break;
    case Arrival::Kind::kMessage:
      Arrived(arrival.index, arrival.cycle);
      break;
    case Arrival::Kind::kClusterRelease:
      ReleaseCluster(arrival.index, arrival.cycle);
      break;
  }
}

void Sm::Machine::Acknowledge(uint32_t id, Cycle at) {
  Warp& warp = warps[id];
  warp.stores_acked = std::max(warp.stores_acked, at);
  if (--warp.stores_unanswered > 0 || !warp.waits_for_acks || !warp.live) return;
  SettleFence(id, warp.stores_acked);
  Touch(id);
}

void Sm::Machine::Answer(const PendingAnswer& answer) {
  const uint32_t index = RequestPort::IndexOf(answer.tag);
  switch (RequestPort::KindOf(answer.tag)) {
    case RequestPort::kInstruction:
      AnswerFetch(answer.line_address, answer.cycle);
      break;
    case RequestPort::kConstant:
      AnswerConstant(answer.line_address, answer.cycle);
      break;
    case RequestPort::kL1Miss:
      if (!l1.MissFree()) FreeGlobalPorts(answer.cycle);
      l1.Answer(index, [&](uint32_t transaction) { AnswerTransaction(transaction, answer.cycle); });
      break;
    case RequestPort::kTransaction:
      AnswerTransaction(index, answer.cycle);
      break;
    case RequestPort::kStore:  // known when it leaves the port: Deliver
      break;
    case RequestPort::kBulk:
      AnswerBulk(index, answer.cycle);
      break;
    case RequestPort::kTensorMap:
      AnswerTensorMap(answer.line_address, answer.cycle);
      break;
  }
}

// L1 can take a miss again: loads that stood before it may issue.
void Sm::Machine::FreeGlobalPorts(Cycle at) {
  for (SubCore& sub_core : sub_cores) {
    if (sub_core.ready.PortFree(IssuePort::kGlobal) != kNever) continue;
    sub_core.ready.SetPortFree(IssuePort::kGlobal, std::max(at, sub_core.mio.FreeAt()));
    sub_core.stale = true;
  }
}

// Every answer of one cycle, and then who can issue because of them.
void Sm::Machine::TakeAnswers() {
  now = answers[next_answer].cycle;
  while (next_answer < answers.size() && answers[next_answer].cycle == now) Answer(answers[next_answer++]);
  RefreshTouched();
}

void Sm::Machine::RefreshTouched() {
  for (size_t word = 0; word < touched.size(); ++word) {
    for (uint64_t left = touched[word]; left != 0; left &= left - 1) {
      const auto id = static_cast<uint32_t>(64 * word + static_cast<size_t>(std::countr_zero(left)));
      if (!warps[id].live) continue;
      Refresh(id);
      sub_cores[SubCoreOf(id)].stale = true;
    }
    touched[word] = 0;
  }
  for (uint32_t i = 0; i < sub_core_count; ++i) {
    if (sub_cores[i].stale) Select(i);
    sub_cores[i].stale = false;
  }
}

// What an answer changes is found by a chain of indices: each link is loaded for many answers at once. The first, the
// miss, has been asked for when the reply was read.
void Sm::Machine::PrefetchAnswers() const {
  constexpr size_t kMost = 64;
  for (size_t i = 0; i < std::min(answers.size(), kMost); ++i) {
    if (RequestPort::KindOf(answers[i].tag) != RequestPort::kL1Miss) continue;
    const uint32_t transaction = l1.PrefetchLine(RequestPort::IndexOf(answers[i].tag));
    if (transaction < transactions.size()) heddle::Prefetch(&transactions[transaction]);
  }
}

// Replies become answers that wait for their cycle; their order does not depend on the window that they were asked
// in. An acknowledgement changes nothing before it comes but what a fence waits for, so it is known at once.
void Sm::Machine::TakeReplies(Cycle begin) {
  between_windows = true;
  AdvanceCalendars(begin);
  // Of the thread, not of the SM: what one SM has used is still in the processor's caches for the next.
  static thread_local std::vector<PendingAnswer> old_answers, new_answers;
  memory::Outbox& outbox = port.outbox();
  next_departure = kNever;
  size_t kept = 0;
  new_answers.clear();
  for (const memory::MemoryRequest& request : outbox) {
    if (request.reply_cycle == 0) {  // leaves in a later window
      HEDDLE_CHECK(request.cycle >= begin, Path(), begin, "a request without a reply");
      next_departure = std::min(next_departure, request.cycle);
      outbox[kept++] = request;
      continue;
    }
    HEDDLE_CHECK(request.reply_cycle >= begin && request.reply_cycle > request.cycle, Path(), begin,
                 "a reply that came before its window");
    if (RequestPort::KindOf(request.tag) == RequestPort::kStore) {
      Acknowledge(RequestPort::IndexOf(request.tag), request.reply_cycle);
    } else {
      if (RequestPort::KindOf(request.tag) == RequestPort::kL1Miss)
        l1.PrefetchMiss(RequestPort::IndexOf(request.tag));
      new_answers.push_back({request.reply_cycle, request.cycle, request.line_address, request.tag,
                             static_cast<uint32_t>(new_answers.size())});
    }
  }
  outbox.resize(kept);
  std::sort(new_answers.begin(), new_answers.end());
  old_answers.assign(answers.begin() + static_cast<ptrdiff_t>(next_answer), answers.end());
  answers.resize(old_answers.size() + new_answers.size());
  std::merge(old_answers.begin(), old_answers.end(), new_answers.begin(), new_answers.end(), answers.begin());
  next_answer = 0;
  PrefetchAnswers();
  if (async) TakeAcknowledgements();
  FindNextEvent();
  RefreshTouched();
}

}  // namespace heddle::sm
