// What waits for what among captured launches: streams, events and graphs become streams and edges of a trace.
//
// Work of one stream is ordered. An event stands for what its stream had waited for when it was recorded. A graph's nodes are spread
// over streams of their own where they may run side by side. Not modelled: the legacy default stream's waiting for other
// streams; launches that the host submits after waiting for others (its waiting counts for transfers alone).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::capture {

class LaunchOrder {
 public:
  using Stream = std::pair<uint32_t, uint64_t>;  // context, handle

  // The next launch; returns the trace's number of its stream.
  uint32_t Launch(Stream stream);
  void RecordEvent(Stream stream, uint64_t event);
  void WaitForEvent(Stream stream, uint64_t event);
  void DestroyStream(uint64_t handle);

  // A copy or a fill: it takes place when the first launch starts that is behind it, in its stream, by an event or because the host waited.
  // That launch waits for what the transfer waits for, and whatever else is behind the transfer waits for that launch. `synchronous`: the
  // host waits for it, so that the next launch of any stream is behind it. Returns its number.
  uint32_t Transfer(Stream stream, bool synchronous);
  // The host waited for a stream, for an event, for all of a context.
  void SynchronizeStream(Stream stream);
  void SynchronizeEvent(uint64_t event);
  void SynchronizeContext(uint32_t context);
  // Of each transfer, by its number: the launch at whose start it takes place; kNowhere: none is behind it.
  static constexpr uint32_t kNowhere = 0xffffffff;
  const std::vector<uint32_t>& places() const { return places_; }

  // The launches of a graph, in an order that respects `depends_on` (indices in the same list). Returns their streams.
  std::vector<uint32_t> LaunchGraph(Stream stream, const std::vector<std::vector<uint32_t>>& depends_on);

  uint32_t launch_count() const { return next_launch_; }
  // Sorted, without doubles and without those that a stream's order implies.
  std::vector<trace::Edge> Edges() const;

 private:
  // What comes next waits for these launches and is behind these transfers.
  struct Front {
    std::vector<uint32_t> tails;
    std::vector<uint32_t> transfers;
  };
  struct State {
    uint32_t number = 0;
    Front front;
  };
  State& At(Stream stream);
  void Append(Front* front, uint32_t stream_number);
  // Of what `front` and the host are behind, `launch` takes the transfers that have no place yet, and waits for the others'. Whether it
  // takes any.
  bool TakeTransfers(uint32_t launch, Front* front);

  std::map<Stream, State> streams_;
  std::map<uint64_t, Front> events_;
  std::vector<uint32_t> of_host_;                 // transfers that the host has waited for
  std::vector<std::vector<uint32_t>> waits_for_;  // by transfer: launches
  std::vector<uint32_t> places_;                  // by transfer
  std::vector<uint32_t> stream_of_;               // by launch
  std::vector<trace::Edge> edges_;
  std::vector<uint32_t> graph_streams_;  // streams that graphs use beside the launching one, used again
  uint32_t next_stream_ = 0;
  uint32_t next_launch_ = 0;
};

}  // namespace heddle::capture
