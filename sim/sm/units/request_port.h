// Where requests leave the SM: the outbox, and the tag by which each answer finds its way back.
#pragma once

#include <cstdint>

#include "sim/memory/memory_request.h"

namespace heddle::sm {

class RequestPort {
 public:
  enum Kind : uint32_t {
    kInstruction,  // index: none, found by address
    kConstant,     // likewise
    kL1Miss,       // index: miss of L1Cache
    kTransaction,  // index: transaction, L1 not involved
    kStore,        // index: warp slot
    kBulk,         // index: work of the TMA unit
    kTensorMap,    // index: none, found by address
  };

  explicit RequestPort(uint32_t sm) : sm_(static_cast<uint16_t>(sm)) {}

  memory::MemoryRequest& Send(memory::RequestKind kind, uint64_t line_address, uint8_t sectors, Cycle at,
                              Kind who, uint32_t index) {
    memory::MemoryRequest& request = outbox_.emplace_back();
    request.cycle = at;
    request.line_address = line_address;
    request.kind = kind;
    request.sector_mask = sectors;
    request.sm = sm_;
    request.launch = launch_;
    request.tag = static_cast<uint32_t>(who) << 28 | index;
    return request;
  }
  void ReadLine(uint64_t line_address, Cycle at, Kind who) {
    Send(memory::RequestKind::kRead, line_address, 15, at, who, 0);
  }

  static Kind KindOf(uint32_t tag) { return static_cast<Kind>(tag >> 28); }
  static uint32_t IndexOf(uint32_t tag) { return tag & 0x0fffffff; }

  // What is sent from now on is counted for this launch.
  void CountFor(uint32_t launch) { launch_ = static_cast<uint16_t>(launch); }

  memory::Outbox& outbox() { return outbox_; }
  const memory::Outbox& outbox() const { return outbox_; }

 private:
  uint16_t sm_;
  uint16_t launch_ = 0;
  memory::Outbox outbox_;
};

}  // namespace heddle::sm
