// The state of one pass over the records of a process.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
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

  std::vector<pb::Launch> node_launches_;  // what nodes of graphs run
  std::map<uint64_t, std::vector<Graphs::Kernel>>
      graph_kernels_;  // of executable graphs, until a graph changes

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

  std::map<std::string, uint64_t> left_out_;  // why -> launches
  uint64_t without_parameters_ = 0;
  uint64_t unknown_nodes_ = 0;
  uint64_t unsupported_maps_ = 0;
  uint64_t ambiguous_ = 0;
  uint64_t stray_samples_ = 0;  // of launches that were not recorded
};

}  // namespace heddle::capture
