// What waits for what among captured launches: streams, events and graphs become streams and edges of a trace.
//
// Work of one stream is ordered. An event stands for what its stream had waited for when it was recorded. A graph's nodes are spread
// over streams of their own where they may run side by side. Not modelled: the legacy default stream's waiting for other
// streams, host synchronisation.
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
  // A copy whose place is before the next launch, of whatever stream: that one waits for what the copy waits for, and the rest of the
  // copy's stream for that one.
  void Copy(Stream stream);
  void DestroyStream(uint64_t handle);

  // The launches of a graph, in an order that respects `depends_on` (indices in the same list). Returns their streams.
  std::vector<uint32_t> LaunchGraph(Stream stream, const std::vector<std::vector<uint32_t>>& depends_on);

  uint32_t launch_count() const { return next_launch_; }
  // Sorted, without doubles and without those that a stream's order implies.
  std::vector<trace::Edge> Edges() const;

 private:
  struct State {
    uint32_t number = 0;
    std::vector<uint32_t> tails;  // what the next launch waits for
  };
  State& At(Stream stream);
  void Append(State* state, uint32_t stream_number);
  // Ends what Copy() began: the copies belong to `launch`, which waits for `*tails`.
  void TakeCopies(uint32_t launch, std::vector<uint32_t>* tails);

  std::map<Stream, State> streams_;
  std::map<uint64_t, std::vector<uint32_t>> events_;
  std::vector<std::pair<Stream, std::vector<uint32_t>>>
      copies_;                       // since the last launch, and what they wait for
  std::vector<uint32_t> stream_of_;  // by launch
  std::vector<trace::Edge> edges_;
  std::vector<uint32_t> graph_streams_;  // streams that graphs use beside the launching one, used again
  uint32_t next_stream_ = 0;
  uint32_t next_launch_ = 0;
};

}  // namespace heddle::capture
