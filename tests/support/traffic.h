// Synthetic SMs in front of a MemorySystem, without a timing model of their own: each keeps up to `in_flight` line
// requests outstanding and sends the next one when a reply arrives. For latencies, bandwidths and invariants.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "sim/config/gpu_description.h"
#include "sim/engine/windows.h"
#include "sim/engine/workers.h"
#include "sim/gpu/memory_system.h"

namespace heddle::test {

struct Traffic {
  uint32_t sms = 1;        // number 0, 1, ...
  uint32_t in_flight = 1;  // of each SM
  uint64_t requests_per_sm = 0;
  // The i-th request of an SM: address, kind, sectors.
  std::function<memory::MemoryRequest(uint32_t sm, uint64_t i)> make;
};

struct TrafficResult {
  Cycle cycles = 0;         // to the last reply
  double mean_latency = 0;  // of the last half of each SM's requests
  uint64_t checksum = 0;    // of all reply cycles, in the order (SM, sequence)
  stats::Counters counters;
};

class TrafficDriver {
 public:
  explicit TrafficDriver(const config::Gpu& gpu, uint32_t threads = 1, uint64_t shuffle = 0,
                         double window = 1.0)
      : memory_(gpu),
        workers_(threads, shuffle),
        window_(engine::WindowLength(gpu, window)),
        sms_(gpu.sm.count) {}

  TrafficResult Run(const Traffic& traffic) {
    TrafficResult result;
    const Cycle start = now_;
    uint64_t counted = 0;
    std::vector<memory::Outbox> outboxes(sms_);
    std::vector<memory::Outbox*> pointers;
    for (auto& outbox : outboxes) pointers.push_back(&outbox);
    using Replies = std::priority_queue<Cycle, std::vector<Cycle>, std::greater<>>;
    std::vector<Replies> slots(sms_);
    std::vector<uint64_t> sent(sms_, 0);
    for (uint32_t sm = 0; sm < traffic.sms; ++sm)
      for (uint32_t i = 0; i < traffic.in_flight; ++i) slots[sm].push(now_);
    for (bool open = true; open;) {
      Cycle begin = ~Cycle{0};
      open = false;
      for (uint32_t sm = 0; sm < traffic.sms; ++sm)
        if (sent[sm] < traffic.requests_per_sm) begin = std::min(begin, slots[sm].top()), open = true;
      if (!open) break;
      for (uint32_t sm = 0; sm < traffic.sms; ++sm) {
        while (sent[sm] < traffic.requests_per_sm && !slots[sm].empty() &&
               slots[sm].top() < begin + window_) {
          memory::MemoryRequest request = traffic.make(sm, sent[sm]++);
          request.cycle = slots[sm].top();
          slots[sm].pop();
          request.sm = static_cast<uint16_t>(sm);
          outboxes[sm].push_back(request);
        }
      }
      memory_.Serve(pointers, begin, begin + window_, &workers_);
      for (uint32_t sm = 0; sm < traffic.sms; ++sm) {
        for (size_t i = 0; i < outboxes[sm].size(); ++i) {
          const memory::MemoryRequest& request = outboxes[sm][i];
          slots[sm].push(request.reply_cycle);
          result.checksum = result.checksum * 1000003 + request.reply_cycle;
          now_ = std::max(now_, request.reply_cycle);
          if (sent[sm] - outboxes[sm].size() + i >= traffic.requests_per_sm / 2) {
            result.mean_latency += static_cast<double>(request.reply_cycle - request.cycle);
            ++counted;
          }
        }
        outboxes[sm].clear();
      }
    }
    result.mean_latency /= static_cast<double>(counted);
    result.cycles = now_ - start;
    memory_.TakeCounters(0, &result.counters);
    return result;
  }

  gpu::MemorySystem& memory() { return memory_; }

 private:
  gpu::MemorySystem memory_;
  engine::Workers workers_;
  Cycle window_;
  uint32_t sms_;
  Cycle now_ = 10000;
};

}  // namespace heddle::test
