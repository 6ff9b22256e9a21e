#include "sim/memory/dram_channel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/memory/memory_request.h"

namespace heddle::memory {
namespace {

uint32_t Cycles(const config::Gpu& gpu, double ns) {
  return static_cast<uint32_t>(std::lround(ns * gpu.clocks.sm_mhz / 1000));
}

// Of the pins of one channel, in bytes per SM cycle.
double BytesPerCycle(const config::Gpu& gpu) {
  return gpu.dram.bandwidth_gb_s * 1e9 * gpu.dram.efficiency / gpu.dram.channels / (gpu.clocks.sm_mhz * 1e6);
}

}  // namespace

DramChannel::DramChannel(const config::Gpu& gpu, uint32_t index)
    : lines_per_row_shift_(
          static_cast<uint32_t>(std::countr_zero(std::max(1U, gpu.dram.row_bytes / kLineBytes)))),
      bank_shift_(static_cast<uint32_t>(std::countr_zero(gpu.dram.banks_per_channel))),
      burst_bytes_(std::max(gpu.dram.burst_bytes, kSectorBytes)),
      request_cycles_(Cycles(gpu, gpu.dram.latency_ns) / 2),
      reply_cycles_(Cycles(gpu, gpu.dram.latency_ns) - request_cycles_),
      open_cycles_(Cycles(gpu, gpu.dram.trcd_ns)),
      row_cycle_(std::max(1U, Cycles(gpu, gpu.dram.tras_ns + gpu.dram.trp_ns))),
      batch_sectors_(gpu.dram.write_batch_sectors),
      turnaround_bytes_(static_cast<uint32_t>(
          std::lround(BytesPerCycle(gpu) * gpu.dram.read_write_turnaround_ns * gpu.clocks.sm_mhz / 1000))),
      refresh_interval_(std::max(2U, Cycles(gpu, gpu.dram.refresh_interval_ns))),
      refresh_cycles_(std::min(Cycles(gpu, gpu.dram.refresh_duration_ns), refresh_interval_.divisor() - 1)),
      open_interval_(static_cast<uint32_t>(refresh_interval_.divisor() - refresh_cycles_)),
      refresh_offset_(uint64_t{refresh_interval_.divisor()} * index / gpu.dram.channels),
      bus_(BytesPerCycle(gpu), 16),
      banks_(gpu.dram.banks_per_channel, Bank(1.0)) {}

void DramChannel::Reset() {
  horizon_ = 0;
  pending_write_sectors_ = 0;
  bus_.Reset();
  for (Bank& bank : banks_) {
    bank.busy.Reset();
    bank.rows = {};
  }
}

Cycle DramChannel::OpenRowFor(uint64_t line, Cycle at, stats::Counters* counters) {
  const uint64_t row_and_bank = line >> lines_per_row_shift_;
  const uint64_t row = row_and_bank >> bank_shift_;
  Bank& bank = banks_[(row_and_bank ^ row) & (banks_.size() - 1)];
  for (const OpenRow& open : bank.rows)
    if (open.row == row && at <= open.closed) return std::max(at, open.ready);
  ++counters->dram_row_misses;
  bank.busy.AdvanceTo(horizon_);
  const Cycle start = bank.busy.Reserve(at, row_cycle_) - row_cycle_;
  if (bank.rows[0].closed > start) bank.rows[0].closed = start;
  std::copy_backward(bank.rows.begin(), bank.rows.end() - 1, bank.rows.end());
  bank.rows[0] = {row, start + open_cycles_, ~Cycle{0}};
  return bank.rows[0].ready;
}

// Refresh number k closes the bus from k * interval on.
uint64_t DramChannel::OpenCyclesUntil(Cycle cycle) const {
  const uint64_t shifted = cycle + refresh_offset_;
  const uint64_t interval = refresh_interval_.Divide(shifted);
  const uint64_t phase = shifted - interval * refresh_interval_.divisor();
  return interval * open_interval_.divisor() + (phase > refresh_cycles_ ? phase - refresh_cycles_ : 0);
}

Cycle DramChannel::ReserveBus(Cycle from, uint32_t bytes) {
  bus_.AdvanceTo(OpenCyclesUntil(horizon_));
  // The cycle that moves the last byte.
  const uint64_t last = bus_.Reserve(OpenCyclesUntil(from), bytes) - 1;
  const uint64_t interval = open_interval_.Divide(last);
  const uint64_t phase = last - interval * open_interval_.divisor();
  return interval * refresh_interval_.divisor() + refresh_cycles_ + phase + 1 - refresh_offset_;
}

Cycle DramChannel::Read(uint64_t line, uint32_t sectors, Cycle at, stats::Counters* counters) {
  const uint32_t bytes = std::max(sectors * kSectorBytes, burst_bytes_);
  counters->dram_read_bytes += bytes;
  const Cycle column = OpenRowFor(line, at + request_cycles_, counters);
  return ReserveBus(column, bytes) + reply_cycles_;
}

void DramChannel::Write(uint64_t line, uint32_t sectors, Cycle at, stats::Counters* counters) {
  const uint32_t written = std::max(sectors, burst_bytes_ / kSectorBytes);
  counters->dram_write_bytes += uint64_t{written} * kSectorBytes;
  const Cycle column = OpenRowFor(line, at + request_cycles_, counters);
  pending_write_sectors_ += written;
  if (pending_write_sectors_ < batch_sectors_) return;
  ReserveBus(column, pending_write_sectors_ * kSectorBytes + turnaround_bytes_);
  pending_write_sectors_ = 0;
}

}  // namespace heddle::memory
