#include <fmt/format.h>

#include "frontend/trace/htrace.h"

namespace heddle::trace {
namespace {

class Validator {
 public:
  Validator(const Trace& trace, const std::string& place) : trace_(trace), place_(place) {}

  Status Run() {
    const auto functions = trace_.functions.size();
    const auto launches = trace_.launches.size();
    const auto buffers = trace_.buffers.size();
    for (size_t i = 0; i < functions; ++i)
      Require(trace_.functions[i].module < trace_.modules.size(), "function", i,
              "names a module that is not there");
    for (size_t i = 0; i < functions; ++i) CheckSlots(i);
    for (size_t i = 0; i < trace_.sass.size(); ++i) {
      const Sass& sass = trace_.sass[i];
      Require(sass.function < functions && trace_.functions[sass.function].name == sass.code.name, "sass", i,
              "belongs to no function");
    }
    for (size_t i = 0; i < launches; ++i) CheckLaunch(i);
    for (size_t i = 0; i < trace_.edges.size(); ++i)
      Require(trace_.edges[i].from < trace_.edges[i].to && trace_.edges[i].to < launches, "edge", i,
              "does not point forwards between launches");
    for (size_t i = 0; i < buffers; ++i)
      Require(SizeOf(trace_.buffers[i].type) != 0, "buffer", i, "has no type");
    for (size_t i = 0; i < trace_.contents.size(); ++i) {
      const Content& content = trace_.contents[i];
      Require(content.buffer < buffers && (content.before_launch == 0 || content.before_launch < launches),
              "content", i, "names a buffer or a launch that is not there");
      Require(content.rule.kind != RuleKind::kCopy || content.rule.copy_buffer < buffers, "content", i,
              "copies from a buffer that is not there");
    }
    for (size_t i = 0; i < trace_.tensor_maps.size(); ++i) {
      const TensorMap& map = trace_.tensor_maps[i];
      Require(map.launch < launches && (map.buffer == kNone || map.buffer < buffers), "tensor_map", i,
              "names a launch or buffer that is not there");
      const size_t rank = map.size.size();
      Require(rank >= 1 && rank <= isa::kMaxTensorDimensions && map.stride_bytes.size() == rank - 1 &&
                  map.box.size() == rank && map.element_stride.size() == rank,
              "tensor_map", i, "has not as many fields as dimensions");
      if (map.launch < launches)
        Require(uint64_t{map.parameter_offset} + isa::kTensorMapBytes <=
                    trace_.launches[map.launch].parameters.size(),
                "tensor_map", i, "lies outside the parameters");
    }
    for (size_t i = 0; i < trace_.counters.size(); ++i)
      Require(trace_.counters[i].launch < launches, "counter", i, "names a launch that is not there");
    for (size_t i = 0; i < trace_.collectives.size(); ++i)
      Require(trace_.collectives[i].launch < launches, "collective", i, "names a launch that is not there");
    for (size_t i = 0; i < trace_.warp_streams.size(); ++i) {
      const uint32_t launch = trace_.warp_streams[i].launch;
      Require(launch < launches, "warp_stream", i, "names a launch that is not there");
      Require(i == 0 || trace_.warp_streams[i - 1].launch <= launch, "warp_stream", i,
              "is not in the order of the launches");
    }
    if (message_.empty()) return Ok();
    return Error{ExitCode::kTrace, place_, message_,
                 "the trace is damaged, or the program that wrote it is at fault: build it again"};
  }

 private:
  void Require(bool condition, std::string_view table, size_t row, std::string_view message) {
    if (!condition && message_.empty()) message_ = fmt::format("{} {} {}", table, row, message);
  }

  void CheckSlots(size_t i) {
    const Function& function = trace_.functions[i];
    for (const ParameterSlot& slot : function.parameters)
      Require(uint64_t{slot.offset} + slot.size_bytes <= function.parameter_bytes, "function", i,
              "has a parameter outside its parameters");
  }

  void CheckLaunch(size_t i) {
    const Launch& launch = trace_.launches[i];
    Require(launch.function < trace_.functions.size(), "launch", i, "names a function that is not there");
    if (launch.function < trace_.functions.size())
      Require(launch.parameters.size() == trace_.functions[launch.function].parameter_bytes, "launch", i,
              "has not as many parameter bytes as its function takes");
    for (const ParameterPatch& patch : launch.patches) {
      Require(
          SizeOf(patch.type) != 0 && uint64_t{patch.offset} + SizeOf(patch.type) <= launch.parameters.size(),
          "launch", i, "sets a parameter outside its parameters");
      Require(patch.buffer == kNone || patch.buffer < trace_.buffers.size(), "launch", i,
              "names a buffer that is not there");
    }
  }

  const Trace& trace_;
  const std::string& place_;
  std::string message_;
};

}  // namespace

Status Validate(const Trace& trace, const std::string& place) { return Validator(trace, place).Run(); }

}  // namespace heddle::trace
