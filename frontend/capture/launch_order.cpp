#include "frontend/capture/launch_order.h"

#include <algorithm>
#include <tuple>

namespace heddle::capture {
namespace {

void AddAll(const std::vector<uint32_t>& from, std::vector<uint32_t>* to) {
  for (const uint32_t each : from)
    if (std::find(to->begin(), to->end(), each) == to->end()) to->push_back(each);
}

}  // namespace

LaunchOrder::State& LaunchOrder::At(Stream stream) {
  const auto [found, fresh] = streams_.try_emplace(stream);
  if (fresh) found->second.number = next_stream_++;
  return found->second;
}

void LaunchOrder::Append(State* state, uint32_t stream_number) {
  const uint32_t launch = next_launch_++;
  stream_of_.push_back(stream_number);
  for (const uint32_t tail : state->tails)
    if (stream_of_[tail] != stream_number) edges_.push_back({tail, launch});
  state->tails = {launch};
}

void LaunchOrder::Copy(Stream stream) { copies_.emplace_back(stream, At(stream).tails); }

void LaunchOrder::TakeCopies(uint32_t launch, std::vector<uint32_t>* tails) {
  for (const auto& [stream, waits_for] : copies_) {
    AddAll(waits_for, tails);
    if (const auto found = streams_.find(stream); found != streams_.end()) found->second.tails = {launch};
  }
  copies_.clear();
}

uint32_t LaunchOrder::Launch(Stream stream) {
  State& state = At(stream);
  std::vector<uint32_t> tails = state.tails;
  TakeCopies(next_launch_, &tails);
  state.tails = std::move(tails);
  Append(&state, state.number);
  return state.number;
}

void LaunchOrder::RecordEvent(Stream stream, uint64_t event) { events_[event] = At(stream).tails; }

void LaunchOrder::WaitForEvent(Stream stream, uint64_t event) {
  if (const auto found = events_.find(event); found != events_.end())
    AddAll(found->second, &At(stream).tails);
}

void LaunchOrder::DestroyStream(uint64_t handle) {
  std::erase_if(streams_, [&](const auto& each) { return each.first.second == handle; });
}

std::vector<uint32_t> LaunchOrder::LaunchGraph(Stream stream,
                                               const std::vector<std::vector<uint32_t>>& depends_on) {
  State& launching = At(stream);
  std::vector<uint32_t> before = launching.tails;
  const uint32_t first = next_launch_;
  const bool takes_copies = !copies_.empty() && !depends_on.empty();
  if (takes_copies) TakeCopies(first, &before);
  std::vector<uint32_t> numbers;
  std::vector<bool> continued(depends_on.size(), false);  // by a node in the same stream
  std::vector<bool> waited_for(depends_on.size(), false);
  size_t used = 0;
  for (size_t i = 0; i < depends_on.size(); ++i) {
    State node;
    uint32_t number = UINT32_MAX;
    for (const uint32_t dependency : depends_on[i]) {
      waited_for[dependency] = true;
      node.tails.push_back(first + dependency);
      if (number != UINT32_MAX || continued[dependency]) continue;
      number = numbers[dependency];
      continued[dependency] = true;
    }
    if (depends_on[i].empty()) node.tails = before;
    if (depends_on[i].empty() && takes_copies && i != 0) node.tails.push_back(first);  // it has the copies
    if (number == UINT32_MAX && i == 0) number = launching.number;
    if (number == UINT32_MAX) {
      if (used == graph_streams_.size()) graph_streams_.push_back(next_stream_++);
      number = graph_streams_[used++];
    }
    numbers.push_back(number);
    Append(&node, number);
  }
  if (depends_on.empty()) return numbers;
  launching.tails.clear();
  for (uint32_t i = 0; i < depends_on.size(); ++i)
    if (!waited_for[i]) launching.tails.push_back(first + i);
  return numbers;
}

std::vector<trace::Edge> LaunchOrder::Edges() const {
  std::vector<trace::Edge> edges = edges_;
  const auto key = [](const trace::Edge& edge) { return std::make_tuple(edge.to, edge.from); };
  std::sort(edges.begin(), edges.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

}  // namespace heddle::capture
