#include "tests/support/captured_trace.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <utility>

#include "sim/isa/tensor_map.h"

namespace heddle::testing_support {

std::string Text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string ScriptOf(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                     const CaptureFolder& folder) {
  std::string script;
  for (size_t m = 0; m < trace.modules.size(); ++m)
    script += "module m" + std::to_string(m) + " " +
              folder.Write("m" + std::to_string(m) + ".cubin", Text(trace.modules[m].cubin)) + "\n";
  for (size_t f = 0; f < trace.functions.size(); ++f)
    script += "function f" + std::to_string(f) + " m" + std::to_string(trace.functions[f].module) + " " +
              trace.functions[f].name + "\n";
  for (size_t b = 0; b < resolved.buffers.size(); ++b)
    script += "alloc b" + std::to_string(b) + " " + std::to_string(resolved.buffers[b].size_bytes) + "\n";
  for (const trace::ResolvedContent& content : resolved.contents) {
    std::vector<std::byte> bytes(content.size_bytes);
    content.source->Fill(0, bytes);
    const std::string name = "b" + std::to_string(content.buffer);
    script += "upload " + name + " " + folder.Write(name, Text(bytes)) + "\n";
  }
  for (const trace::TensorMap& entry : trace.tensor_maps) {
    const isa::TensorMap map = isa::DecodeTensorMap(std::span<const std::byte, isa::kTensorMapBytes>(
        &resolved.launches[entry.launch].parameters[entry.parameter_offset], isa::kTensorMapBytes));
    script += "tensormap map" + std::to_string(entry.parameter_offset) + " b" + std::to_string(entry.buffer) +
              " 9 " + std::to_string(static_cast<int>(map.swizzle)) + " " + std::to_string(map.rank);
    for (uint32_t i = 0; i < map.rank; ++i) script += " " + std::to_string(map.size[i]);
    for (uint32_t i = 1; i < map.rank; ++i) script += " " + std::to_string(map.stride_bytes[i]);
    for (uint32_t i = 0; i < map.rank; ++i) script += " " + std::to_string(map.box[i]);
    script += "\n";
  }
  for (size_t l = 0; l < trace.launches.size(); ++l) {
    const trace::ResolvedLaunch& launch = resolved.launches[l];
    const auto extent = [](Dim3 d) {
      return std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z);
    };
    script += "launch f" + std::to_string(launch.function) + " " + extent(launch.grid) + " " +
              extent(launch.block) + " " + std::to_string(launch.dynamic_shared_bytes) + " 0";
    for (const trace::ParameterSlot& slot : trace.functions[launch.function].parameters) {
      if (slot.size_bytes == isa::kTensorMapBytes) {
        script += " m:map" + std::to_string(slot.offset);
        continue;
      }
      uint64_t value = 0;
      std::memcpy(&value, launch.parameters.data() + slot.offset, slot.size_bytes);
      std::string word = (slot.size_bytes == 8 ? " q:" : " i:") + std::to_string(value);
      for (size_t b = 0; b < resolved.buffers.size() && slot.size_bytes == 8; ++b)
        if (value - resolved.buffers[b].address < resolved.buffers[b].size_bytes)
          word = " b:b" + std::to_string(b) + "+" + std::to_string(value - resolved.buffers[b].address);
      script += word;
    }
    script += "\n";
  }
  return script;
}

trace::Trace WithCheckOf(const trace::Trace& original, const trace::ResolvedTrace& resolved,
                         trace::Trace captured, size_t launch) {
  captured.check = original.check;
  captured.sass = original.sass;
  EXPECT_EQ(captured.functions.size(), original.functions.size());
  // The player allocates in the original's order; captured buffers are sorted by address, and the parameters tell which is which.
  for (const trace::ParameterSlot& slot : original.functions[0].parameters) {
    if (slot.size_bytes != 8) continue;
    uint64_t was = 0, is = 0;
    std::memcpy(&was, resolved.launches[0].parameters.data() + slot.offset, 8);
    std::memcpy(&is, captured.launches[launch].parameters.data() + slot.offset, 8);
    for (size_t b = 0; b < resolved.buffers.size(); ++b) {
      if (resolved.buffers[b].address != was) continue;
      for (trace::Buffer& buffer : captured.buffers) {
        if (buffer.address != is) continue;
        buffer.name = original.buffers[b].name;
        buffer.type = original.buffers[b].type;
        buffer.shape.clear();
        for (const uint64_t extent : resolved.buffers[b].shape)
          buffer.shape.emplace_back(static_cast<int64_t>(extent));
      }
    }
  }
  captured.defines = {};
  for (const auto& [name, value] : resolved.defines) captured.defines.emplace_back(name, trace::Expr(value));
  return captured;
}

}  // namespace heddle::testing_support
