// Clusters: CTAs of one GPC that reach each other's shared memory, and what their SMs say to each other.
//
// An SM appends messages to its cluster outbox during a window; at the edge the engine carries them over the cluster
// network, writes `arrival` and hands each to the SM that it goes to, for which it lies in a later window.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/isa/warp_stream.h"

namespace heddle::sm {

// A resident cluster. Members are written when its CTAs start, the barrier between windows only: by the engine.
struct Cluster {
  struct Member {
    uint32_t sm = 0;
    uint32_t launch = 0;      // the SM's handle of it
    uint32_t cta = 0;         // the SM's own number
    // Of these two numbers, which are reused: whether the launch is still open and the CTA still there.
    uint64_t launch_order = 0;
    uint64_t generation = 0;
  };
  uint32_t size = 0;
  std::array<Member, isa::kMaxClusterCtas> members{};

  // The cluster barrier: CTAs that have arrived in this phase, and those that have ended and count as arrived; bit by rank.
  uint32_t arrived = 0;
  uint32_t ended = 0;
  Cycle last_arrival = 0;
};

struct ClusterMessage {
  enum class Kind : uint8_t {
    kRemote,   // `remote` is to be performed at the destination
    kReply,    // its values come back: `index` is the transaction of the issuing SM
    kBulk,     // all rows of `bulk` are at the destination
    kArrive,   // a CTA has arrived at the cluster barrier; to nobody
    kEnded,    // a CTA has ended; likewise
    kRelease,  // the cluster barrier is complete
  };
  Kind kind = Kind::kRemote;
  uint8_t rank = 0;           // of the destination; kArrive, kEnded: of the CTA
  bool returns = false;       // kRemote: values come back
  bool acknowledged = false;  // kRemote: a fence of warp `index` waits for it
  Cycle cycle = 0;            // leaves the SM
  Cycle arrival = 0;          // written by the engine; 0: not carried yet, it leaves in a later window
  Cluster* cluster = nullptr;
  uint32_t from_sm = 0;
  uint32_t to_sm = 0;
  uint32_t bytes = 0;  // of payload
  uint32_t index = 0;  // kRemote: warp, or transaction where values come back
  uint32_t cause = 0;  // index of the instruction behind it
  isa::RemoteOperation* remote = nullptr;
  isa::BulkOperation* bulk = nullptr;
};

using ClusterOutbox = std::vector<ClusterMessage>;

}  // namespace heddle::sm
