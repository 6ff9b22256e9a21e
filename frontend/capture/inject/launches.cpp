// Launch calls: what was launched, with the exact bytes of its parameters.
#include <cstring>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/functions.h"
#include "frontend/capture/inject/parameters.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/snapshot.h"

namespace heddle::capture {
namespace {

using namespace abi;

struct LaunchView {
  Handle function = nullptr;
  const uint32_t* grid = nullptr;
  const uint32_t* block = nullptr;
  uint32_t shared_bytes = 0;
  Handle stream = nullptr;
  void** kernel_params = nullptr;
  void** extra = nullptr;
  const LaunchAttribute* attributes = nullptr;
  uint32_t attribute_count = 0;
  bool cooperative = false;
  uint64_t node = 0;
};

constexpr uint32_t kMostAttributes = 32;

void WriteAttributes(const LaunchView& launch, Encoder* out) {
  if (launch.attributes == nullptr) return;
  const uint32_t count = launch.attribute_count < kMostAttributes ? launch.attribute_count : kMostAttributes;
  for (uint32_t i = 0; i < count; ++i) {
    const LaunchAttribute& attribute = launch.attributes[i];
    if (attribute.id == 0) continue;
    uint8_t* nested = out->Begin(10);
    out->Varint(1, attribute.id);
    out->Bytes(2, attribute.value.bytes, sizeof attribute.value.bytes);
    out->End(nested);
  }
}

void WriteLaunch(const LaunchView& launch, const CallbackData& data) {
  FunctionInfo* function = ResolveFunction(launch.function, data.symbol_name);
  if (function == nullptr || !function->selected) return;
  // A graph's nodes are always kept: what counts as a launch is the graph's.
  if (launch.node == 0 && !AdmitLaunch()) return;
  ThreadState& thread = ThisThread();
  uint8_t parameters[kMaxParameterBytes];
  size_t bytes = 0;
  const Missing missing = GatherParameters(launch.kernel_params, launch.extra, *function, parameters, &bytes);
  if (launch.node != 0) NoteNode(*function, parameters, bytes);
  if (Record record(kLaunchRecord, bytes + kMostAttributes * 96 + 256); record) {
    record->Varint(1, function->id);
    record->Packed(2, launch.grid, 3);
    record->Packed(3, launch.block, 3);
    record->Varint(4, launch.shared_bytes);
    record->Varint(5, reinterpret_cast<uint64_t>(launch.stream));
    record->Varint(6, data.context_uid);
    record->Varint(7, thread.number);
    record->Varint(8, data.correlation_id);
    record->Bytes(9, parameters, bytes);
    WriteAttributes(launch, record.operator->());
    record->Varint(11, launch.cooperative);
    record->Varint(12, launch.node);
    record->Varint(13, missing);
    if (launch.node == 0) ++thread.recorded_launches;
  }
  if (missing != kNothingMissing && !function->missing_is_noted) {
    function->missing_is_noted = true;
    WriteNote(kParametersMissing, missing, function->name);
  }
}

void OnLaunch(const CallbackData& data, bool cooperative) {
  const auto& p = *static_cast<const LaunchParams*>(data.parameters);
  LaunchView launch{p.function, p.grid, p.block, p.shared_bytes, p.stream, p.kernel_params};
  if (!cooperative) launch.extra = p.extra;
  launch.cooperative = cooperative;
  launch.node = ThisThread().created_node;
  WriteLaunch(launch, data);
}

void OnLaunchEx(const CallbackData& data) {
  const auto& p = *static_cast<const LaunchExParams*>(data.parameters);
  if (p.config == nullptr) return;
  const LaunchConfig& c = *p.config;
  LaunchView launch{p.function, c.grid, c.block, c.shared_bytes, c.stream, p.kernel_params, p.extra};
  launch.attributes = c.attributes;
  launch.attribute_count = c.attribute_count;
  launch.node = ThisThread().created_node;
  WriteLaunch(launch, data);
}

// Kernel nodes that are made without a launch call, and those whose parameters change.
void OnKernelNode(const KernelNodeParams* kernel, bool has_kernel_field, Handle node,
                  const CallbackData& data) {
  if (kernel == nullptr) return;
  LaunchView launch{kernel->function, kernel->grid,          kernel->block, kernel->shared_bytes,
                    nullptr,          kernel->kernel_params, kernel->extra};
  if (launch.function == nullptr && has_kernel_field) launch.function = kernel->kernel;
  launch.node = reinterpret_cast<uint64_t>(node);
  WriteLaunch(launch, data);
}

void OnNode(const NodeParams* params, Handle node, const CallbackData& data) {
  if (params == nullptr || node == nullptr) return;
  if (params->type == kKernelNode) OnKernelNode(&params->of.kernel, true, node, data);
  if (params->type == kCopyNode) WriteCopyNode(params->of.copy.params, node, data);
  if (params->type == kFillNode) WriteFillNode(params->of.fill, node, data);
}

void OnGraphLaunch(const CallbackData& data) {
  if (!AdmitLaunch()) return;
  const auto& p = *static_cast<const GraphLaunchParams*>(data.parameters);
  if (Record record(kGraphLaunchRecord, 128); record) {
    record->Varint(1, reinterpret_cast<uint64_t>(p.graph_exec));
    record->Varint(2, reinterpret_cast<uint64_t>(p.stream));
    record->Varint(3, data.context_uid);
    record->Varint(4, ThisThread().number);
    record->Varint(5, data.correlation_id);
  }
}

}  // namespace

bool OnLaunchCall(uint32_t call, const CallbackData& data) {
  switch (call) {
    case k_cuLaunchKernel:
    case k_cuLaunchKernel_ptsz:
      OnLaunch(data, false);
      return true;
    case k_cuLaunchCooperativeKernel:
    case k_cuLaunchCooperativeKernel_ptsz:
      OnLaunch(data, true);
      return true;
    case k_cuLaunchKernelEx:
    case k_cuLaunchKernelEx_ptsz:
      OnLaunchEx(data);
      return true;
    case k_cuGraphLaunch:
    case k_cuGraphLaunch_ptsz:
      OnGraphLaunch(data);
      return true;
    case k_cuGraphAddKernelNode:
    case k_cuGraphAddKernelNode_v2: {
      const auto& p = *static_cast<const GraphAddKernelParams*>(data.parameters);
      OnKernelNode(p.kernel, call == k_cuGraphAddKernelNode_v2, p.node == nullptr ? nullptr : *p.node, data);
      return true;
    }
    case k_cuGraphKernelNodeSetParams:
    case k_cuGraphKernelNodeSetParams_v2: {
      const auto& p = *static_cast<const GraphSetKernelParams*>(data.parameters);
      OnKernelNode(p.kernel, call == k_cuGraphKernelNodeSetParams_v2, p.node, data);
      return true;
    }
    case k_cuGraphExecKernelNodeSetParams:
    case k_cuGraphExecKernelNodeSetParams_v2: {
      const auto& p = *static_cast<const GraphExecSetKernelParams*>(data.parameters);
      OnKernelNode(p.kernel, call == k_cuGraphExecKernelNodeSetParams_v2, p.node, data);
      return true;
    }
    case k_cuGraphAddNode: {
      const auto& p = *static_cast<const GraphAddNodeParams*>(data.parameters);
      OnNode(p.params, p.node == nullptr ? nullptr : *p.node, data);
      return true;
    }
    case k_cuGraphAddNode_v2: {
      const auto& p = *static_cast<const GraphAddNode2Params*>(data.parameters);
      OnNode(p.params, p.node == nullptr ? nullptr : *p.node, data);
      return true;
    }
    case k_cuGraphNodeSetParams: {
      const auto& p = *static_cast<const GraphSetNodeParams*>(data.parameters);
      OnNode(p.params, p.node, data);
      return true;
    }
    case k_cuGraphExecNodeSetParams: {
      const auto& p = *static_cast<const GraphExecSetNodeParams*>(data.parameters);
      OnNode(p.params, p.node, data);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace heddle::capture
