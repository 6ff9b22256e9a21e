// Memory: from the queue of a sub-core through the LSU to shared memory, the caches and the outbox.
#include <algorithm>
#include <bit>

#include "sim/sm/machine.h"

namespace heddle::sm {
namespace {

uint32_t Sectors(const LineAccess& line) { return static_cast<uint32_t>(std::popcount(line.sector_mask)); }

bool ReturnsData(isa::AccessKind kind) {
  return kind == isa::AccessKind::kLoad || kind == isa::AccessKind::kAtomic;
}

// What the instruction that executes now asks of memory, where that is kept.
stats::MemorySums* MemorySumsOf(const Launch& launch, const InstructionTiming& timing) {
  return launch.per_pc == nullptr ? nullptr : &launch.per_pc[&timing - launch.instructions].memory;
}

}  // namespace

void Sm::Machine::IssueMemory(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  const isa::MemoryAccess& access = step.memory;
  if (step.kind == isa::StepKind::kMemory && access.remote != nullptr) [[unlikely]] {
    IssueRemote(id, sub_core, timing, at);
    if ((access.lanes | access.shared_lanes) == 0) return;
  }
  if (step.kind != isa::StepKind::kMemory || (access.lanes | access.shared_lanes) == 0) {
    const Cycle late = PushMio(sub_core, at, 0);
    if (timing.timing_class == TimingClass::kAsyncCopy) OpenGroup(id);
    ReleaseSources(id, timing, at + late + timing.source_release_cycles);
    if (timing.timing_class == TimingClass::kConstant && (timing.flags & kConstantAddress) != 0) {
      LoadConstant(id, timing, ConstantAddress(warps[id], timing), at + late);
    } else {
      Result(id, timing, at + late + timing.result_cycles);
    }
    return;
  }
  if (access.space == isa::MemorySpace::kConstant) {
    IssueConstant(id, sub_core, timing, at);
  } else if (access.space == isa::MemorySpace::kShared && access.kind != isa::AccessKind::kAsyncCopy) {
    IssueShared(id, sub_core, timing, access.address.data(), access.lanes, at);
  } else {
    if (access.lanes != 0 || access.kind == isa::AccessKind::kAsyncCopy)
      IssueGlobal(id, sub_core, timing, at);
    if (access.shared_lanes != 0 && access.kind != isa::AccessKind::kAsyncCopy)
      IssueShared(id, sub_core, timing, access.shared_address.data(), access.shared_lanes, at);
  }
}

// Queues an instruction that keeps the LSU busy for `lsu_cycles` (at least its interval); returns by how many
// cycles it is later there than it would be if nothing stood in its way.
Cycle Sm::Machine::PushMio(SubCore& sub_core, Cycle at, uint32_t lsu_cycles) {
  const Cycle taken = sub_core.mio.Push(at, std::max(lsu_cycles, lsu_interval_cycles), &lsu);
  const Cycle free = sub_core.mio.FreeAt();
  sub_core.ready.SetPortFree(IssuePort::kMio, free);
  if (sub_core.ready.PortFree(IssuePort::kGlobal) < free)
    sub_core.ready.SetPortFree(IssuePort::kGlobal, free);
  return taken - (at + config.mio.issue_to_lsu_cycles);
}

template <typename Address>
void Sm::Machine::IssueShared(uint32_t id, SubCore& sub_core, const InstructionTiming& timing,
                              const Address* address, uint32_t lanes, Cycle at) {
  const isa::MemoryAccess& access = step.memory;
  const bool atomic = access.kind == isa::AccessKind::kAtomic || access.kind == isa::AccessKind::kReduction;
  const Wavefronts wavefronts = shared.WavefrontsOf(address, lanes, access.bytes_per_lane, atomic);
  const Cycle late = PushMio(sub_core, at, wavefronts.count);
  const uint32_t conflicts = wavefronts.count - wavefronts.ideal;
  stats::Counters& counters = launches[warps[id].launch].counters;
  counters.smem_wavefronts += wavefronts.count;
  counters.smem_bank_conflicts += conflicts;
  if (stats::MemorySums* const sums = MemorySumsOf(launches[warps[id].launch], timing))
    *sums += {.requests = 1, .wavefronts = wavefronts.count, .bank_conflicts = conflicts};
  ReleaseSources(id, timing, at + late + conflicts + timing.source_release_cycles);
  if (!ReturnsData(access.kind)) {
    Result(id, timing, at + late + conflicts + timing.source_release_cycles);
    return;
  }
  const auto bytes = static_cast<uint32_t>(std::popcount(lanes)) * access.bytes_per_lane;
  Result(id, timing, ReturnData(sub_core, at + late + conflicts + timing.result_cycles, bytes));
}

void Sm::Machine::IssueConstant(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  const isa::MemoryAccess& access = step.memory;
  Coalesce(access.address.data(), access.lanes, access.bytes_per_lane, &lines);
  // Lanes that ask for different words take turns.
  const uint32_t words = static_cast<uint32_t>(std::popcount(access.lanes));
  const bool uniform = std::all_of(access.address.begin(), access.address.end(), [&](uint64_t each) {
    return each == access.address[static_cast<size_t>(std::countr_zero(access.lanes))];
  });
  const Cycle late = PushMio(sub_core, at, uniform ? 1 : words);
  ReleaseSources(id, timing, at + late + timing.source_release_cycles);
  LoadConstant(id, timing, lines.lines[0].line_address, at + late);
  for (uint32_t i = 1; i < lines.count; ++i) constants.Load(lines.lines[i].line_address, at + late, &port);
}

// LDC: `issued` as if nothing had stood in its way.
void Sm::Machine::LoadConstant(uint32_t id, const InstructionTiming& timing, uint64_t address, Cycle issued) {
  const Cycle arrival = constants.Load(address, issued, &port);
  if (arrival != kNever) {
    Result(id, timing, arrival + timing.result_cycles);
    return;
  }
  const uint32_t transaction = NewTransaction(id);
  transactions[transaction].unanswered = 1;
  transactions[transaction].is_constant = true;
  transactions[transaction].floor = issued + timing.result_cycles;
  ResultLater(transaction, timing);
  ++warps[id].loads_unanswered;
  constant_waiters.push_back({address & ~uint64_t{memory::kLineBytes - 1}, transaction});
}

// A uniform load of fixed latency whose address was not known before: a miss holds the warp.
void Sm::Machine::LoadUniform(uint32_t id, Cycle at) {
  if (step.memory.lanes == 0) return;
  const uint64_t address = step.memory.address[static_cast<size_t>(std::countr_zero(step.memory.lanes))];
  const Cycle arrival = constants.Operand(SubCoreOf(id), address, at, &port);
  if (arrival > at) BlockForConstant(id, address, arrival);
}

void Sm::Machine::IssueGlobal(uint32_t id, SubCore& sub_core, const InstructionTiming& timing, Cycle at) {
  const isa::MemoryAccess& access = step.memory;
  Warp& warp = warps[id];
  const bool is_copy = access.kind == isa::AccessKind::kAsyncCopy;
  const uint32_t lanes = access.lanes & ~(is_copy ? access.zero_fill_lanes : 0);
  Coalesce(access.address.data(), lanes, access.bytes_per_lane, &lines,
           access.kind == isa::AccessKind::kStore);
  uint32_t sectors = 0;
  for (uint32_t i = 0; i < lines.count; ++i) sectors += Sectors(lines.lines[i]);
  if (stats::MemorySums* const sums = MemorySumsOf(launches[warp.launch], timing)) {
    const uint32_t bytes = static_cast<uint32_t>(std::popcount(lanes)) * access.bytes_per_lane;
    *sums += {.requests = 1,
              .sectors = sectors,
              .ideal_sectors = std::min(sectors, CeilDiv(bytes, memory::kSectorBytes))};
  }
  const uint32_t tag_cycles = static_cast<uint32_t>(lines.count * tag_cycles_per_line + 0.999);
  const uint32_t data_cycles = CeilDiv(sectors * memory::kSectorBytes, config.l1.data_bytes_per_cycle);
  const Cycle late = PushMio(sub_core, at, std::max(tag_cycles, data_cycles));
  ReleaseSources(id, timing, at + late + timing.source_release_cycles);

  const Cycle sent = at + late + config.l1.miss_latency_cycles;
  port.CountFor(warp.launch);
  if (!ReturnsData(access.kind) && !is_copy) {
    SendStores(id, sent);
    Result(id, timing, at + late + timing.source_release_cycles);
    return;
  }
  const uint32_t transaction_id = NewTransaction(id);
  Cycle ready = at + late + timing.result_cycles;
  const uint32_t unanswered = SendLoads(id, transaction_id, sent);
  Transaction& transaction = transactions[transaction_id];
  transaction.unanswered = unanswered;
  transaction.floor = ready;
  transaction.bytes =
      static_cast<uint16_t>(static_cast<uint32_t>(std::popcount(access.lanes)) * access.bytes_per_lane);
  transaction.is_copy = is_copy;
  transaction.token = access.token;
  if (is_copy) transaction.group = OpenGroup(id);
  if (unanswered != 0) {
    ++warp.loads_unanswered;
    if (is_copy) ++groups[transaction.group].unanswered;
    ResultLater(transaction_id, timing);
    return;
  }
  if (is_copy) {
    CopyGroup& group = groups[transaction.group];
    group.done = std::max(group.done, ready);
    PushArrival({.cycle = ready, .launch = warp.launch, .index = access.token});
  } else {
    ready = ReturnData(sub_core, ready, transaction.bytes);
  }
  Result(id, timing, ready);
  warp.loads_done = std::max(warp.loads_done, ready);
  free_transactions.push_back(transaction_id);
}

// Looks the lines up in L1 and asks L2 for what is missing. Returns how many answers the transaction waits for.
uint32_t Sm::Machine::SendLoads(uint32_t id, uint32_t transaction, Cycle sent) {
  const isa::MemoryAccess& access = step.memory;
  const Launch& launch = launches[warps[id].launch];
  stats::Counters& counters = launches[warps[id].launch].counters;
  const bool at_slice = access.at_slice;
  uint32_t unanswered = 0;
  for (uint32_t i = 0; i < lines.count; ++i) {
    const LineAccess& line = lines.lines[i];
    const Cycle leaves = sent + static_cast<Cycle>(i * tag_cycles_per_line);
    uint8_t missing = line.sector_mask;
    if (!at_slice && !access.bypass_l1) {
      counters.l1tex_lookups_sector += Sectors(line);
      const L1Cache::Lookup found = l1.Find(line.line_address, line.sector_mask);
      if (found.unanswered != 0) unanswered += l1.Join(found.line, found.unanswered, transaction);
      missing = found.missing;
      counters.l1tex_hits_sector += Sectors(line) - static_cast<uint32_t>(std::popcount(missing));
      if (missing == 0) continue;
      const uint32_t miss = l1.Request(line.line_address, missing, found, transaction, true);
      port.Send(memory::RequestKind::kRead, line.line_address, missing, leaves, RequestPort::kL1Miss, miss);
    } else if (at_slice) {
      const bool atomic = access.kind == isa::AccessKind::kAtomic;
      memory::MemoryRequest& request =
          port.Send(atomic ? memory::RequestKind::kAtomic : memory::RequestKind::kRead, line.line_address,
                    missing, leaves, RequestPort::kTransaction, transaction);
      request.stream = launch.stream;
      request.token = access.token;
      request.lanes = line.lanes;
      if (atomic) request.payload_bytes = line.bytes;
    } else {
      const uint32_t miss = l1.Request(line.line_address, missing, {}, transaction, false);
      port.Send(memory::RequestKind::kRead, line.line_address, missing, leaves, RequestPort::kL1Miss, miss);
    }
    ++unanswered;
    counters.l1tex_m_read_bytes += static_cast<uint64_t>(std::popcount(missing)) * memory::kSectorBytes;
  }
  return unanswered;
}

void Sm::Machine::SendStores(uint32_t id, Cycle sent) {
  const isa::MemoryAccess& access = step.memory;
  Warp& warp = warps[id];
  Launch& launch = launches[warp.launch];
  if (access.kind == isa::AccessKind::kPrefetch) {
    Prefetch(sent);
    return;
  }
  const bool reduction = access.kind == isa::AccessKind::kReduction;
  for (uint32_t i = 0; i < lines.count; ++i) {
    const LineAccess& line = lines.lines[i];
    const Cycle leaves = sent + static_cast<Cycle>(i * tag_cycles_per_line);
    memory::MemoryRequest& request =
        port.Send(reduction ? memory::RequestKind::kReduction : memory::RequestKind::kWrite,
                  line.line_address, line.sector_mask, leaves, RequestPort::kStore, id);
    request.payload_bytes = std::min<uint16_t>(line.bytes, memory::kLineBytes);
    for (uint32_t sector = 0; sector < line.sector_bytes.size(); ++sector) {
      if (line.sector_bytes[sector] == memory::kSectorBytes)
        request.complete_sectors = static_cast<uint8_t>(request.complete_sectors | 1U << sector);
      else
        request.written_pairs =
            static_cast<uint16_t>(request.written_pairs | line.sector_bytes[sector] / 2U << (4 * sector));
    }
    if (access.at_slice) {
      request.stream = launch.stream;
      request.token = access.token;
      request.lanes = line.lanes;
    }
    if (access.space == isa::MemorySpace::kLocal) l1.Write(line.line_address, line.sector_mask);
    launch.counters.l1tex_m_write_bytes += request.payload_bytes;
    ++warp.stores_unanswered;
    warp.loads_done = std::max(warp.loads_done, leaves);  // the warp's registers are held until then
  }
}

void Sm::Machine::Prefetch(Cycle sent) {
  for (uint32_t i = 0; i < lines.count; ++i) {
    const LineAccess& line = lines.lines[i];
    const L1Cache::Lookup found = l1.Find(line.line_address, line.sector_mask);
    if (found.missing == 0) continue;
    const uint32_t miss = l1.Request(line.line_address, found.missing, found, L1Cache::kNone, true);
    port.Send(memory::RequestKind::kRead, line.line_address, found.missing, sent, RequestPort::kL1Miss, miss);
  }
}

}  // namespace heddle::sm
