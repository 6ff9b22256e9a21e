#include "frontend/capture/assembler.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/capture/advice.h"

namespace heddle::capture {
namespace {

constexpr uint32_t kClusterAttribute = 4;       // CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
constexpr uint32_t kProgrammaticAttribute = 6;  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

std::array<trace::Expr, 3> Extent(const google::protobuf::RepeatedField<uint32_t>& values) {
  std::array<trace::Expr, 3> extent{trace::Expr(1), trace::Expr(1), trace::Expr(1)};
  for (int i = 0; i < 3 && i < values.size(); ++i) extent[static_cast<size_t>(i)] = trace::Expr(values[i]);
  return extent;
}

// Of CUpti_ActivityMemcpyKind.
const char* TransferName(uint32_t kind) {
  constexpr const char* kNames[] = {"fill",          "host to device", "device to host",  "host to array",
                                    "array to host", "array to array", "array to device", "device to array",
                                    "on the device", "on the host",    "between devices"};
  return kind < std::size(kNames) ? kNames[kind] : "other";
}

uint32_t WordOf(const std::string& bytes, size_t index) {
  uint32_t word = 0;
  if (bytes.size() >= 4 * (index + 1)) std::memcpy(&word, bytes.data() + 4 * index, 4);
  return word;
}

void ReadAttributes(const pb::Launch& from, trace::Launch* to) {
  for (const pb::Launch::Attribute& attribute : from.attribute()) {
    if (attribute.id() == kProgrammaticAttribute) to->programmatic = WordOf(attribute.value(), 0) != 0;
    if (attribute.id() == kClusterAttribute)
      for (size_t i = 0; i < 3; ++i) to->cluster[i] = trace::Expr(WordOf(attribute.value(), i));
  }
}

}  // namespace

void Assembler::Take(const pb::Record& record) {
  switch (record.kind_case()) {
    case pb::Record::kStart:
      captured_.process = record.start().process();
      break;
    case pb::Record::kImage:
      modules_.AddImage(record.image().id(), record.image().size_bytes(), record.image().crc());
      break;
    case pb::Record::kFunction: {
      const pb::Function& f = record.function();
      if (f.ambiguous()) ++ambiguous_;
      modules_.AddFunction(f.id(), f.name(), f.image() == 0 ? std::nullopt : std::optional(f.image() - 1));
      break;
    }
    case pb::Record::kLaunch:
      TakeLaunch(record.launch());
      break;
    case pb::Record::kKernel: {
      const pb::Kernel& k = record.kernel();
      if (k.start_ns() != 0)  // 0: no time was taken
        times_.push_back({k.correlation(), k.node(), k.start_ns(), k.duration_ns(), k.name()});
      break;
    }
    case pb::Record::kKernelName:
      kernel_names_[record.kernel_name().id()] = record.kernel_name().name();
      break;
    case pb::Record::kAllocation:
      if (record.allocation().operation() == pb::Allocation::allocate)
        memory_.Allocate(record.allocation().address(), record.allocation().size_bytes(),
                         record.allocation().pool());
      break;
    case pb::Record::kCopy:
      TakeCopy(record.copy());
      break;
    case pb::Record::kFill:
      TakeFill(record.fill());
      break;
    case pb::Record::kStreamEvent:
      TakeStreamEvent(record.stream_event());
      break;
    case pb::Record::kTensorMap:
      if (!tensor_maps_.Add(record.tensor_map())) ++unsupported_maps_;
      break;
    case pb::Record::kGraphNode:
      TakeGraphNode(record.graph_node());
      break;
    case pb::Record::kGraphLaunch:
      TakeGraphLaunch(record.graph_launch());
      break;
    case pb::Record::kDevice:
      TakeDevice(record.device());
      break;
    case pb::Record::kCollective:
      TakeCollective(record.collective());
      break;
    case pb::Record::kSnapshot:
      TakeSnapshot(record.snapshot());
      break;
    case pb::Record::kTransfer: {
      Transfers& sum = captured_.transfers[TransferName(record.transfer().kind())];
      ++sum.count;
      sum.bytes += record.transfer().size_bytes();
      sum.nanoseconds += record.transfer().duration_ns();
      break;
    }
    case pb::Record::kMetricName:
      metrics_[record.metric_name().id()] = {record.metric_name().name(), record.metric_name().unit()};
      break;
    case pb::Record::kMeasured:
      TakeMeasured(record.measured());
      break;
    case pb::Record::kNote:
      TakeNote(record.note());
      break;
    default:
      break;
  }
}

bool Assembler::Append(const pb::Launch& from, uint64_t correlation, const std::vector<uint64_t>& nodes) {
  std::string why;
  const std::optional<Modules::Used> used = modules_.Use(from.function(), &captured_.trace, &why);
  if (!used) {
    ++left_out_[fmt::format("{}: {}", modules_.NameOf(from.function()), why)];
    return false;
  }
  const trace::Function& function = captured_.trace.functions[used->function];
  trace::Launch launch;
  launch.name = function.name;
  launch.function = used->function;
  launch.grid = Extent(from.grid());
  launch.block = Extent(from.block());
  if (used->cluster)
    launch.cluster = {trace::Expr(used->cluster->x), trace::Expr(used->cluster->y),
                      trace::Expr(used->cluster->z)};
  launch.dynamic_shared_bytes = trace::Expr(from.shared_bytes());
  launch.frozen_grid = true;
  ReadAttributes(from, &launch);
  if (from.missing() != pb::Launch::nothing) ++without_parameters_;
  launch.parameters.resize(function.parameter_bytes);
  std::memcpy(launch.parameters.data(), from.parameters().data(),
              std::min(launch.parameters.size(), from.parameters().size()));
  const auto index = static_cast<uint32_t>(captured_.trace.launches.size());
  for (const uint64_t node : nodes) launch_of_[{correlation, node}] = index;
  captured_.trace.launches.push_back(std::move(launch));
  tensor_maps_.FindIn(&captured_.trace);
  return true;
}

void Assembler::TakeLaunch(const pb::Launch& launch) {
  if (launch.node() != 0) {
    SetAction(launch.node(), launch);
    return;
  }
  last_launch_.erase(launch.thread());
  if (!Append(launch, launch.correlation(), {0})) return;
  const uint32_t index = order_.launch_count();
  PlaceSnapshots(launch.thread(), index);
  last_launch_[launch.thread()] = index;
  captured_.trace.launches.back().stream = order_.Launch({launch.context(), launch.stream()});
  AttachCollectives(launch.thread(), index, captured_.trace.launches.back().name);
}

void Assembler::TakeGraphLaunch(const pb::GraphLaunch& launch) {
  auto [found, is_new] = graph_steps_.try_emplace(launch.graph());
  GraphSteps& graph = found->second;
  if (is_new) graph.steps = graphs_.Steps(launch.graph(), &graph.unknown);
  unknown_nodes_.kernels += graph.unknown.kernels;
  unknown_nodes_.transfers += graph.unknown.transfers;
  unknown_nodes_.nested += graph.unknown.nested;
  const uint32_t first = order_.launch_count();
  PlaceSnapshots(launch.thread(), first);
  // By step, what those behind it wait for. Launches whose cubin is not known are left out: who waited for them waits for what they waited
  // for. Copies and fills take place at the start of the next launch.
  std::vector<std::vector<uint32_t>> stands_for, depends_on;
  std::vector<size_t> transfers;  // since the last launch
  const auto add = [](const std::vector<uint32_t>& from, std::vector<uint32_t>* to) {
    for (const uint32_t each : from)
      if (std::find(to->begin(), to->end(), each) == to->end()) to->push_back(each);
  };
  const auto place = [&](size_t step, Moment when) {
    const auto& action = node_actions_[graph.steps[step].action];
    if (const auto* copy = std::get_if<pb::Copy>(&action)) Place(*copy, when);
    if (const auto* fill = std::get_if<pb::Fill>(&action)) Place(*fill, when);
  };
  for (const Graphs::Step& step : graph.steps) {
    std::vector<uint32_t> before;
    for (const uint32_t dependency : step.depends_on) add(stands_for[dependency], &before);
    const auto next = static_cast<uint32_t>(depends_on.size());
    const auto* kernel = std::get_if<pb::Launch>(&node_actions_[step.action]);
    if (kernel == nullptr) {
      transfers.push_back(stands_for.size());
    } else if (Append(*kernel, launch.correlation(), step.ids)) {
      for (const size_t transfer : transfers) {
        place(transfer, {first + next});
        add(stands_for[transfer], &before);
        stands_for[transfer] = {next};
      }
      transfers.clear();
      depends_on.push_back(std::move(before));
      before = {next};
    }
    stands_for.push_back(std::move(before));
  }
  const LaunchOrder::Stream stream{launch.context(), launch.stream()};
  const std::vector<uint32_t> streams = order_.LaunchGraph(stream, depends_on);
  for (const size_t transfer : transfers) place(transfer, {0, order_.Transfer(stream, false)});
  for (size_t i = 0; i < streams.size(); ++i) {
    trace::Launch& each = captured_.trace.launches[first + i];
    each.stream = streams[i];
    AttachCollectives(launch.thread(), static_cast<uint32_t>(first + i), each.name);
  }
}

void Assembler::TakeGraphNode(const pb::GraphNode& node) {
  graph_steps_.clear();
  switch (node.operation()) {
    case pb::GraphNode::created:
      graphs_.NodeCreated(node.graph(), node.node(), node.type(), node.id());
      break;
    case pb::GraphNode::cloned:
      graphs_.NodeCloned(node.graph(), node.node(), node.other(), node.type(), node.id());
      break;
    case pb::GraphNode::depends_on:
      graphs_.NodeDependsOn(node.node(), node.other());
      break;
    case pb::GraphNode::instantiated:
      graphs_.Instantiated(node.graph(), node.other());
      break;
    default:
      break;
  }
}

void Assembler::SetAction(uint64_t node, std::variant<pb::Launch, pb::Copy, pb::Fill> action) {
  graphs_.SetAction(node, static_cast<uint32_t>(node_actions_.size()));
  node_actions_.push_back(std::move(action));
  graph_steps_.clear();
}

void Assembler::TakeStreamEvent(const pb::StreamEvent& event) {
  const LaunchOrder::Stream stream{event.context(), event.stream()};
  switch (event.operation()) {
    case pb::StreamEvent::record:
      return order_.RecordEvent(stream, event.event());
    case pb::StreamEvent::wait:
      return order_.WaitForEvent(stream, event.event());
    case pb::StreamEvent::stream_destroyed:
      return order_.DestroyStream(event.stream());
    case pb::StreamEvent::stream_synchronized:
      return order_.SynchronizeStream(stream);
    case pb::StreamEvent::event_synchronized:
      return order_.SynchronizeEvent(event.event());
    case pb::StreamEvent::context_synchronized:
      return order_.SynchronizeContext(event.context());
    default:
      return;
  }
}

void Assembler::TakeDevice(const pb::Device& device) {
  trace::Device& out = captured_.trace.device;
  if (!out.name.empty()) return;  // the first one is the process's own, unless it uses several
  out.name = device.name();
  for (int i = 0; i < device.attribute_size() && i < device.value_size(); ++i) {
    std::string name = fmt::format("cuda_attribute_{}", device.attribute(i));
#define HEDDLE_ATTRIBUTE(number, text) \
  if (device.attribute(i) == number) name = #text;
#include "frontend/capture/device_attributes.def"
#undef HEDDLE_ATTRIBUTE
    out.attributes[name] = device.value(i);
  }
  const auto number = [&](const char* name) {
    const auto found = out.attributes.find(name);
    return found == out.attributes.end() ? int64_t{0} : found->second;
  };
  out.sm_version =
      static_cast<uint32_t>(10 * number("compute_capability_major") + number("compute_capability_minor"));
}

void Assembler::TakeMeasured(const pb::Measured& measured) {
  std::optional<uint32_t> launch;
  if (measured.correlation() != 0) {
    const auto found = launch_of_.find({measured.correlation(), 0});
    if (found != launch_of_.end()) launch = found->second;
  } else if (const auto found = last_launch_.find(measured.thread()); found != last_launch_.end()) {
    launch = found->second;
  }
  if (!launch) {
    ++stray_samples_;
    return;
  }
  for (int i = 0; i < measured.metric_size() && i < measured.value_size(); ++i)
    measured_[{*launch, measured.pc_plus_one(), measured.metric(i)}] += measured.value(i);
}

void Assembler::TakeNote(const pb::Note& note) { Warn(Advice(note)); }

}  // namespace heddle::capture
