// The state of one pass over the records of a process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/capture/address_space.h"
#include "frontend/capture/assemble.h"
#include "frontend/capture/graphs.h"
#include "frontend/capture/launch_order.h"
#include "frontend/capture/modules.h"
#include "frontend/capture/record.pb.h"
#include "frontend/capture/tensor_maps.h"

namespace heddle::capture {

class Assembler {
 public:
  Assembler(const std::string& folder, const trace::Toolchain& toolchain) : modules_(folder, toolchain) {}

  void Take(const pb::Record& record);
  // After the last record.
  Captured Finish(bool in_order, uint64_t lost_bytes);

 private:
  void TakeLaunch(const pb::Launch& launch);
  void TakeGraphLaunch(const pb::GraphLaunch& launch);
  void TakeGraphNode(const pb::GraphNode& node);
  void TakeStreamEvent(const pb::StreamEvent& event);
  void TakeCopy(const pb::Copy& copy);
  void TakeFill(const pb::Fill& fill);
  void TakeSnapshot(const pb::Snapshot& snapshot);
  void SetAction(uint64_t node, std::variant<pb::Launch, pb::Copy, pb::Fill> action);
  // What a copy or a fill makes of memory at that moment.
  void Place(const pb::Copy& copy, Moment when);
  void Place(const pb::Fill& fill, Moment when);
  // Contents that were read before the launch that the thread is about to make.
  void PlaceSnapshots(uint32_t thread, uint32_t launch);
  void TakeDevice(const pb::Device& device);
  void TakeCollective(const pb::Collective& collective);
  void TakeNote(const pb::Note& note);
  void TakeMeasured(const pb::Measured& measured);
  void MoveCounters();
  // Appends to the trace; the stream and the order are set by the caller. False: left out.
  bool Append(const pb::Launch& launch, uint64_t correlation, const std::vector<uint64_t>& nodes);
  void AttachCollectives(uint32_t thread, uint32_t launch, const std::string& name);
  void JoinTimes();
  void Warn(std::string text) { captured_.warnings.push_back(std::move(text)); }

  Captured captured_;
  Modules modules_;
  AddressSpace memory_;
  TensorMaps tensor_maps_;
  LaunchOrder order_;
  Graphs graphs_;

  std::vector<std::variant<pb::Launch, pb::Copy, pb::Fill>> node_actions_;  // what nodes of graphs do
  struct GraphSteps {
    std::vector<Graphs::Step> steps;
    Graphs::Unknown unknown;
  };
  std::map<uint64_t, GraphSteps> graph_steps_;  // of executable graphs, until a graph changes

  // Where the records of a launch's kernels are looked for: (correlation, node), node 0 outside of graphs.
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> launch_of_;
  struct Time {
    uint64_t correlation = 0;
    uint64_t node = 0;
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    uint32_t name = 0;
  };
  std::vector<Time> times_;
  std::map<uint32_t, std::string> kernel_names_;
  std::map<uint32_t, uint32_t> last_launch_;  // of each thread; none where it was left out
  std::map<uint32_t, std::pair<std::string, std::string>> metrics_;      // name, unit
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, double> measured_;  // launch, pc + 1, metric
  std::map<uint32_t, std::vector<pb::Collective>> collectives_;  // by thread, not yet seen as a launch
  std::map<uint32_t, std::vector<pb::Snapshot>> snapshots_;      // by thread, of its next launch

  std::map<std::string, uint64_t> left_out_;  // why -> launches
  uint64_t without_parameters_ = 0;
  Graphs::Unknown unknown_nodes_;  // of each graph launch
  uint64_t unkept_copies_ = 0;     // to the device, of what was not kept
  uint64_t unkept_bytes_ = 0;
  uint64_t many_rows_ = 0;  // copies and fills of more rows than are kept
  uint64_t unsupported_maps_ = 0;
  uint64_t ambiguous_ = 0;
  uint64_t stray_samples_ = 0;  // of launches that were not recorded
};

}  // namespace heddle::capture
