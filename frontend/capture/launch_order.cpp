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

void LaunchOrder::Append(Front* front, uint32_t stream_number) {
  const uint32_t launch = next_launch_++;
  stream_of_.push_back(stream_number);
  for (const uint32_t tail : front->tails)
    if (stream_of_[tail] != stream_number) edges_.push_back({tail, launch});
  front->tails = {launch};
}

uint32_t LaunchOrder::Transfer(Stream stream, bool synchronous) {
  const auto transfer = static_cast<uint32_t>(places_.size());
  Front& front = At(stream).front;
  waits_for_.push_back(front.tails);
  places_.push_back(kNowhere);
  front.transfers.push_back(transfer);
  if (synchronous) of_host_.push_back(transfer);
  return transfer;
}

void LaunchOrder::SynchronizeStream(Stream stream) { AddAll(At(stream).front.transfers, &of_host_); }

void LaunchOrder::SynchronizeEvent(uint64_t event) {
  if (const auto found = events_.find(event); found != events_.end())
    AddAll(found->second.transfers, &of_host_);
}

void LaunchOrder::SynchronizeContext(uint32_t context) {
  for (const auto& [stream, state] : streams_)
    if (stream.first == context) AddAll(state.front.transfers, &of_host_);
}

bool LaunchOrder::TakeTransfers(uint32_t launch, Front* front) {
  AddAll(of_host_, &front->transfers);
  of_host_.clear();
  bool takes = false;
  for (const uint32_t transfer : front->transfers) {
    if (places_[transfer] == kNowhere) {
      places_[transfer] = launch;
      takes = true;
      AddAll(waits_for_[transfer], &front->tails);
    } else {
      AddAll({places_[transfer]}, &front->tails);
    }
  }
  front->transfers.clear();
  return takes;
}

uint32_t LaunchOrder::Launch(Stream stream) {
  State& state = At(stream);
  TakeTransfers(next_launch_, &state.front);
  Append(&state.front, state.number);
  return state.number;
}

void LaunchOrder::RecordEvent(Stream stream, uint64_t event) { events_[event] = At(stream).front; }

void LaunchOrder::WaitForEvent(Stream stream, uint64_t event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  Front& front = At(stream).front;
  AddAll(found->second.tails, &front.tails);
  AddAll(found->second.transfers, &front.transfers);
}

// What it was given to do is done all the same.
void LaunchOrder::DestroyStream(uint64_t handle) {
  for (const auto& [stream, state] : streams_)
    if (stream.second == handle) AddAll(state.front.transfers, &of_host_);
  std::erase_if(streams_, [&](const auto& each) { return each.first.second == handle; });
}

std::vector<uint32_t> LaunchOrder::LaunchGraph(Stream stream,
                                               const std::vector<std::vector<uint32_t>>& depends_on) {
  State& launching = At(stream);
  if (depends_on.empty()) return {};
  const uint32_t first = next_launch_;
  const bool takes = TakeTransfers(first, &launching.front);
  const Front before = launching.front;
  std::vector<uint32_t> numbers;
  std::vector<bool> continued(depends_on.size(), false);  // by a node in the same stream
  std::vector<bool> waited_for(depends_on.size(), false);
  size_t used = 0;
  for (size_t i = 0; i < depends_on.size(); ++i) {
    Front node;
    uint32_t number = UINT32_MAX;
    for (const uint32_t dependency : depends_on[i]) {
      waited_for[dependency] = true;
      node.tails.push_back(first + dependency);
      if (number != UINT32_MAX || continued[dependency]) continue;
      number = numbers[dependency];
      continued[dependency] = true;
    }
    if (depends_on[i].empty()) node.tails = before.tails;
    if (depends_on[i].empty() && takes && i != 0)
      node.tails.push_back(first);  // at its start they take place
    if (number == UINT32_MAX && i == 0) number = launching.number;
    if (number == UINT32_MAX) {
      if (used == graph_streams_.size()) graph_streams_.push_back(next_stream_++);
      number = graph_streams_[used++];
    }
    numbers.push_back(number);
    Append(&node, number);
  }
  launching.front.tails.clear();
  for (uint32_t i = 0; i < depends_on.size(); ++i)
    if (!waited_for[i]) launching.front.tails.push_back(first + i);
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
