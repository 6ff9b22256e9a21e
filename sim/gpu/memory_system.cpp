#include "sim/gpu/memory_system.h"

#include <algorithm>
#include <bit>

#include "sim/base/check.h"
#include "sim/base/prefetch.h"
#include "sim/engine/windows.h"

namespace heddle::gpu {
namespace {

using memory::MemoryRequest;
using memory::RequestKind;
using memory::SliceRequest;

// Handing fewer requests than this to threads costs more than serving them.
constexpr size_t kFewRequests = 64;

uint32_t ReplyBytes(const MemoryRequest& request) {
  if (request.kind == RequestKind::kRead)
    return static_cast<uint32_t>(std::popcount(request.sector_mask)) * memory::kSectorBytes;
  return request.kind == RequestKind::kAtomic ? request.payload_bytes : 0;
}

// Requests of one cycle lie in the outboxes of many SMs: the processor does not guess which is next.
void PrefetchOrder(const std::vector<MemoryRequest*>& order, size_t now) {
  constexpr size_t kAhead = 4;
  if (now + kAhead < order.size()) Prefetch(order[now + kAhead]);
}

uint64_t OrderKey(const MemoryRequest& request) { return request.cycle << 16 | request.sm; }

}  // namespace

MemorySystem::MemorySystem(const config::Gpu& gpu, uint64_t placement_seed)
    : crossbar_(gpu),
      map_(gpu, placement_seed),
      geometry_(gpu),
      tlb_(gpu.tlb.l3),
      page_shift_(map_.page_shift()),
      sm_miss_cycles_(gpu.tlb.l1.miss_latency_cycles),
      gpc_miss_cycles_(gpu.tlb.l2.miss_latency_cycles),
      walk_cycles_(gpu.tlb.l3.miss_latency_cycles),
      multicast_extra_cycles_(gpu.cluster_network ? gpu.cluster_network->multicast_extra_cycles : 0),
      shortest_reply_(engine::ShortestReply(gpu)),
      statistics_(crossbar_.sm_count()) {
  uint32_t first_sm = 0;
  for (uint32_t sms : gpu.sms_per_gpc) {
    Gpc& gpc = gpcs_.emplace_back(gpu);
    gpc.first_sm = first_sm;
    gpc.sm_count = sms;
    gpc.sm_tlbs.assign(sms, memory::Tlb(gpu.tlb.l1));
    gpc.to_group.resize(map_.groups());
    first_sm += sms;
  }
  for (uint32_t group = 0; group < map_.groups(); ++group) groups_.emplace_back(gpu, group);
  CountAs(0, 0, 0);
}

void MemorySystem::CountAs(uint32_t sm, uint32_t launch, uint16_t statistics) {
  if (statistics_[sm].size() <= launch) statistics_[sm].resize(launch + 1);
  statistics_[sm][launch] = statistics;
  if (walk_counters_.size() > statistics) return;
  walk_counters_.resize(statistics + size_t{1});
  for (Group& group : groups_) group.counters.resize(statistics + size_t{1});
  for (Gpc& gpc : gpcs_) gpc.acknowledged.resize(statistics + size_t{1});
}

Cycle MemorySystem::LastAcknowledgement(uint16_t statistics) const {
  Cycle last = 0;
  for (const Gpc& gpc : gpcs_)
    if (statistics < gpc.acknowledged.size()) last = std::max(last, gpc.acknowledged[statistics]);
  return last;
}

void MemorySystem::AddCounters(uint16_t statistics, stats::Counters* counters) const {
  for (const Group& group : groups_)
    if (statistics < group.counters.size()) *counters += group.counters[statistics];
  if (statistics < walk_counters_.size()) *counters += walk_counters_[statistics];
}

void MemorySystem::TakeCounters(uint16_t statistics, stats::Counters* counters) {
  AddCounters(statistics, counters);
  for (Group& group : groups_) group.counters[statistics] = {};
  walk_counters_[statistics] = {};
  for (Gpc& gpc : gpcs_) gpc.acknowledged[statistics] = 0;
}

void MemorySystem::InvalidateCaches() {
  for (Group& group : groups_) group.slices.InvalidateCaches();
  for (Gpc& gpc : gpcs_) {
    gpc.tlb.Reset();
    for (memory::Tlb& tlb : gpc.sm_tlbs) tlb.Reset();
  }
  tlb_.Reset();
}

void MemorySystem::FillWithForeignLines() {
  for (Group& group : groups_) group.slices.FillWithForeignLines();
}

void MemorySystem::PlaceInL2(uint64_t address, uint64_t bytes) {
  const uint64_t mask = ~uint64_t{memory::kLineBytes - 1};
  for (uint64_t line = address & mask; line < address + bytes; line += memory::kLineBytes) {
    const memory::Location location = map_.Locate(map_.PhysicalLine(line));
    groups_[location.group].slices.PlaceLine(location, geometry_.PlaceOf(location.index, location.home));
    const uint64_t page = line >> page_shift_;
    if (tlb_.Peek(page) == nullptr) tlb_.Insert(page, 0);
  }
}

uint64_t MemorySystem::DirtyLines() const {
  uint64_t lines = 0;
  for (const Group& group : groups_) lines += group.slices.DirtyLines();
  return lines;
}

void MemorySystem::Serve(std::span<memory::Outbox* const> outboxes, Cycle begin, Cycle end,
                         engine::Workers* workers) {
  const uint32_t gpcs = static_cast<uint32_t>(gpcs_.size());
  size_t total = 0;
  for (const memory::Outbox* outbox : outboxes) total += outbox->size();
  if (total == 0) return;
  if (total < kFewRequests) workers = &alone_;
  workers->ForEach(gpcs, [&](uint32_t g) {
    Gpc& gpc = gpcs_[g];
    Collect(&gpc, outboxes, begin, end);
    if (gpc.order.empty()) return;
    crossbar_.AdvanceTo(g, begin);
    SendTranslated(&gpc);
  });
  with_pending_.clear();
  for (uint32_t g = 0; g < gpcs; ++g) {
    if (!gpcs_[g].pending.empty()) with_pending_.push_back(g);
  }
  if (!with_pending_.empty()) {
    WalkPages();
    workers->ForEach(static_cast<uint32_t>(with_pending_.size()), [&](uint32_t i) {
      PatchTlbs(&gpcs_[with_pending_[i]]);
      SendRest(&gpcs_[with_pending_[i]]);
    });
  }
  workers->ForEach(static_cast<uint32_t>(groups_.size()), [&](uint32_t group) { ServeGroup(group, begin); });
  workers->ForEach(gpcs, [&](uint32_t g) { Return(g); });
}

// A counting sort by cycle, stable: SMs rise, and within an SM so does the sequence.
void MemorySystem::Collect(Gpc* gpc, std::span<memory::Outbox* const> outboxes, Cycle begin, Cycle end) {
  gpc->order.clear();
  const auto of_sm = outboxes.subspan(gpc->first_sm, gpc->sm_count);
  gpc->counts.assign(end - begin + 1, 0);
  for (size_t i = 0; i < of_sm.size(); ++i) {
    if (i + 1 < of_sm.size())
      PrefetchRange(of_sm[i + 1]->data(), of_sm[i + 1]->data() + of_sm[i + 1]->size());
    for (const MemoryRequest& request : *of_sm[i]) {
      HEDDLE_CHECK(request.cycle >= begin, "gpu.memory", request.cycle, "a request from an earlier window");
      if (request.cycle < end) ++gpc->counts[request.cycle - begin + 1];
    }
  }
  for (size_t i = 1; i < gpc->counts.size(); ++i) gpc->counts[i] += gpc->counts[i - 1];
  gpc->order.resize(gpc->counts.back());
  if (gpc->order.empty()) return;
  for (memory::Outbox* outbox : of_sm)
    for (MemoryRequest& request : *outbox)
      if (request.cycle < end) gpc->order[gpc->counts[request.cycle - begin]++] = &request;
}

// Returns when the translation is known, or kPendingFlag and the number of the translation that is waited for.
inline Cycle MemorySystem::Translate(Gpc* gpc, const MemoryRequest& request) {
  const uint64_t page = request.line_address >> page_shift_;
  memory::Tlb& sm_tlb = gpc->sm_tlbs[request.sm - gpc->first_sm];
  if (const memory::Tlb::Entry* entry = sm_tlb.Find(page)) {
    return (entry->ready & kPendingFlag) != 0 ? entry->ready : std::max(request.cycle, entry->ready);
  }
  return MissGpc(gpc, &sm_tlb, page, request);
}

Cycle MemorySystem::MissGpc(Gpc* gpc, memory::Tlb* sm_tlb, uint64_t page, const MemoryRequest& request) {
  const memory::Tlb::Entry* entry = gpc->tlb.Find(page);
  if (entry == nullptr) {
    entry = gpc->tlb.Insert(page, kPendingFlag | gpc->pending.size());
    gpc->pending.push_back({page, request.cycle + sm_miss_cycles_, StatisticsOf(request), 0});
  }
  Cycle ready = std::max(entry->ready, request.cycle + sm_miss_cycles_);
  if ((entry->ready & kPendingFlag) != 0) {
    ready = kPendingFlag | gpc->waiting.size();
    gpc->waiting.push_back({sm_tlb, page, entry->ready & ~kPendingFlag, request.cycle + sm_miss_cycles_, 0});
  }
  sm_tlb->Insert(page, ready);
  return ready;
}

// The GPU's TLB, in the order of the misses.
void MemorySystem::WalkPages() {
  walks_.clear();
  for (Gpc& gpc : gpcs_)
    for (PendingPage& page : gpc.pending) walks_.push_back(&page);
  std::stable_sort(walks_.begin(), walks_.end(),
                   [](const PendingPage* a, const PendingPage* b) { return a->cycle < b->cycle; });
  for (PendingPage* page : walks_) {
    const Cycle at = page->cycle + gpc_miss_cycles_;
    if (const memory::Tlb::Entry* entry = tlb_.Find(page->page)) {
      page->ready = std::max(at, entry->ready);
      continue;
    }
    // A page for which there is still room was translated by an earlier run; what has been driven out is walked for.
    const bool known = tlb_.HasRoom(page->page);
    walk_counters_[page->statistics].tlb_misses += !known;
    page->ready = tlb_.Insert(page->page, known ? at : at + walk_cycles_)->ready;
  }
}

void MemorySystem::PatchTlbs(Gpc* gpc) {
  const auto patch = [](memory::Tlb* tlb, uint64_t page, Cycle ready) {
    memory::Tlb::Entry* entry = tlb->Peek(page);
    if (entry != nullptr && (entry->ready & kPendingFlag) != 0) entry->ready = ready;
  };
  for (const PendingPage& page : gpc->pending) patch(&gpc->tlb, page.page, page.ready);
  for (PendingTranslation& each : gpc->waiting) {
    each.ready = std::max(each.earliest, gpc->pending[each.pending].ready);
    patch(each.tlb, each.page, each.ready);
  }
  for (size_t i = 0; i < gpc->translated.size(); ++i) {
    Cycle& translated = gpc->translated[i];
    if ((translated & kPendingFlag) != 0)
      translated = std::max(gpc->order[gpc->sent + i]->cycle, gpc->waiting[translated & ~kPendingFlag].ready);
  }
  gpc->pending.clear();
  gpc->waiting.clear();
}

inline void MemorySystem::Send(Gpc* gpc, MemoryRequest* request, Cycle translated) {
  const memory::Location location = map_.Locate(map_.PhysicalLine(request->line_address));
  SliceRequest& to_slice = gpc->to_group[location.group].emplace_back();
  to_slice.request = request;
  to_slice.location = location;
  to_slice.place = geometry_.PlaceOf(to_slice.location.index, to_slice.location.home);
  to_slice.partition = static_cast<uint16_t>(crossbar_.PartitionOf(request->sm));
  to_slice.statistics = StatisticsOf(*request);
  to_slice.arrival = crossbar_.Request(request->sm, translated, request->payload_bytes);
}

// Translates all requests, and sends those in front of the first that has to wait for a page.
void MemorySystem::SendTranslated(Gpc* gpc) {
  for (auto& list : gpc->to_group) list.clear();
  gpc->translated.clear();
  size_t i = 0;
  for (; i < gpc->order.size(); ++i) {
    PrefetchOrder(gpc->order, i);
    const Cycle translated = Translate(gpc, *gpc->order[i]);
    if (!gpc->pending.empty()) {
      gpc->translated.push_back(translated);
      break;
    }
    Send(gpc, gpc->order[i], translated);
  }
  gpc->sent = i;
  for (++i; i < gpc->order.size(); ++i) gpc->translated.push_back(Translate(gpc, *gpc->order[i]));
}

void MemorySystem::SendRest(Gpc* gpc) {
  for (size_t i = 0; i < gpc->translated.size(); ++i)
    Send(gpc, gpc->order[gpc->sent + i], gpc->translated[i]);
}

void MemorySystem::ServeGroup(uint32_t number, Cycle begin) {
  struct Head {
    uint64_t key;
    const SliceRequest* next;
    const SliceRequest* end;
  };
  std::array<Head, 64> heads;
  size_t active = 0;
  HEDDLE_CHECK(gpcs_.size() <= heads.size(), "gpu.memory", begin, "GPCs");
  for (const Gpc& gpc : gpcs_) {
    if (gpc.order.empty() || gpc.to_group[number].empty()) continue;
    const auto& list = gpc.to_group[number];
    heads[active++] = {0, list.data(), list.data() + list.size()};
  }
  if (active == 0) return;
  Group& group = groups_[number];
  // Requests and sets lie all over memory: many loads are under way while one request is served.
  const auto prefetch = [&group](const SliceRequest& request) {
    Prefetch(request.request);
    group.slices.Prefetch(request);
  };
  constexpr ptrdiff_t kAhead = 6;
  for (size_t i = 0; i < active; ++i)
    for (const SliceRequest* each = heads[i].next; each < std::min(heads[i].next + kAhead, heads[i].end);
         ++each)
      prefetch(*each);
  for (size_t i = 0; i < active; ++i) heads[i].key = OrderKey(*heads[i].next->request);
  group.slices.AdvanceTo(begin);
  while (active > 0) {
    Head* first = &heads[0];
    for (size_t i = 1; i < active; ++i)
      if (heads[i].key < first->key) first = &heads[i];
    const SliceRequest& request = *first->next;
    request.request->reply_cycle = group.slices.Serve(request, &group.counters[request.statistics]);
    if (++first->next == first->end) {
      *first = heads[--active];
    } else {
      first->key = OrderKey(*first->next->request);
      if (first->end - first->next >= kAhead) prefetch(first->next[kAhead - 1]);
    }
  }
}

// One reply for several SMs of the GPC: each port on the way takes the data once.
void MemorySystem::Multicast(Gpc* gpc, MemoryRequest* request) {
  memory::BulkContext& context = *request->bulk;
  std::array<Cycle, memory::kMulticastSms> arrival{};
  crossbar_.Multicast(context.sm, context.destinations, request->reply_cycle, ReplyBytes(*request), &arrival);
  request->reply_cycle = 0;
  for (uint32_t left = context.destinations; left != 0; left &= left - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(left));
    const Cycle at = arrival[i] + multicast_extra_cycles_;
    context.arrival[i] = std::max(context.arrival[i], at);
    request->reply_cycle = std::max(request->reply_cycle, at);
  }
  if (--context.unanswered == 0) gpc->multicasts.push_back(&context);
}

void MemorySystem::Return(uint32_t g) {
  Gpc& gpc = gpcs_[g];
  for (size_t i = 0; i < gpc.order.size(); ++i) {
    PrefetchOrder(gpc.order, i);
    MemoryRequest* const request = gpc.order[i];
    if (request->bulk != nullptr && request->kind == RequestKind::kRead) [[unlikely]] {
      Multicast(&gpc, request);
      continue;
    }
    request->reply_cycle = crossbar_.Reply(request->sm, request->reply_cycle, ReplyBytes(*request));
    HEDDLE_CHECK(request->reply_cycle >= request->cycle + shortest_reply_, "gpu.memory", request->cycle,
                 "a reply before the shortest way");
    if (request->kind == RequestKind::kWrite || request->kind == RequestKind::kReduction) {
      Cycle& last = gpc.acknowledged[StatisticsOf(*request)];
      last = std::max(last, request->reply_cycle);
    }
  }
}

}  // namespace heddle::gpu
