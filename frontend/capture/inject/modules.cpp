// Load calls, and what CUPTI announces about modules, streams and graphs.
#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/functions.h"
#include "frontend/capture/inject/image.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

using namespace abi;

uint64_t Number(Handle handle) { return reinterpret_cast<uint64_t>(handle); }

void OnModuleLoaded(const ModuleData& module) {
  const uint32_t image = AddImage(module.cubin, module.cubin_size);
  if (image == kNoImage) return;
  BindModule(module.module_id, image);
  ThisThread().loaded_image_plus1 = image + 1;
}

// Numbers of GraphNode.Operation in record.proto.
enum NodeOperation : uint32_t { kCreated = 0, kCloned = 1, kDependsOn = 2, kInstantiated = 3 };

void WriteNode(const Cupti& cupti, NodeOperation operation, const GraphData& graph, Handle other) {
  uint64_t id = 0;
  if (operation != kInstantiated && operation != kDependsOn && cupti.cuptiGetGraphNodeId != nullptr &&
      cupti.cuptiGetGraphNodeId(graph.node, &id) != 0)
    id = 0;
  if (Record record(kGraphNodeRecord, 128); record) {
    record->Varint(1, operation);
    record->Varint(2, Number(graph.graph));
    record->Varint(3, operation == kInstantiated ? 0 : Number(graph.node));
    record->Varint(4, Number(other));
    record->Varint(5, operation == kInstantiated ? 0 : graph.node_type);
    record->Varint(6, id);
  }
}

}  // namespace

void OnResource(const Cupti& cupti, uint32_t id, const ResourceData& data) {
  const auto* graph = static_cast<const GraphData*>(data.descriptor);
  switch (id) {
    case kModuleLoaded:
      if (data.descriptor != nullptr) OnModuleLoaded(*static_cast<const ModuleData*>(data.descriptor));
      return;
    case kModuleUnloadStarting:
      if (data.descriptor == nullptr) return;
      ForgetFunctionsOf(ImageOfModule(static_cast<const ModuleData*>(data.descriptor)->module_id));
      return;
    case kStreamDestroyStarting:
      if (Record record(kStreamEventRecord, 64); record) {
        record->Varint(1, 2);
        record->Varint(2, Number(data.stream));
      }
      return;
    case kGraphNodeCreated:
      if (graph == nullptr) return;
      ThisThread().created_node = Number(graph->node);
      WriteNode(cupti, kCreated, *graph, nullptr);
      return;
    case kGraphNodeCloned:
      if (graph != nullptr) WriteNode(cupti, kCloned, *graph, graph->original_node);
      return;
    case kGraphNodeDependencyCreated:
      if (graph != nullptr) WriteNode(cupti, kDependsOn, *graph, graph->dependency);
      return;
    case kGraphExecCreated:
      if (graph != nullptr) WriteNode(cupti, kInstantiated, *graph, graph->graph_exec);
      return;
    default:
      return;
  }
}

bool OnLoadCall(uint32_t call, const CallbackData& data) {
  ThreadState& thread = ThisThread();
  switch (call) {
    case k_cuModuleLoad:
    case k_cuModuleLoadData:
    case k_cuModuleLoadDataEx:
    case k_cuModuleLoadFatBinary:
    case k_cuLibraryLoadData:
    case k_cuLibraryLoadFromFile: {
      const auto& p = *static_cast<const ModuleLoadParams*>(data.parameters);
      if (thread.loaded_image_plus1 != 0 && p.result != nullptr)
        BindOwner(*p.result, thread.loaded_image_plus1 - 1);
      thread.loaded_image_plus1 = 0;
      return true;
    }
    case k_cuLibraryGetModule: {
      const auto& p = *static_cast<const GetParams*>(data.parameters);
      const uint32_t image = ImageOfOwner(p.owner);
      if (image != kNoImage && p.result != nullptr) BindOwner(*p.result, image);
      return true;
    }
    case k_cuModuleGetFunction:
    case k_cuLibraryGetKernel: {
      const auto& p = *static_cast<const GetByNameParams*>(data.parameters);
      uint32_t image = ImageOfOwner(p.owner);
      if (image == kNoImage &&
          thread.loaded_image_plus1 != 0) {  // lazy loading: the code came with this call
        image = thread.loaded_image_plus1 - 1;
        BindOwner(p.owner, image);
      }
      thread.loaded_image_plus1 = 0;
      if (p.result != nullptr) BindFunction(*p.result, image, p.name);
      return true;
    }
    case k_cuKernelGetFunction: {
      const auto& p = *static_cast<const GetParams*>(data.parameters);
      if (p.result != nullptr) AliasFunction(*p.result, p.owner);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace heddle::capture
