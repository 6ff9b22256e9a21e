// Streams, events and graphs of libcuda's stand-in.
#include <map>
#include <utility>

#include "tests/support/capture/double_cuda.h"

namespace heddle::capture::testing {

Node* NewNode(Graph* graph, uint32_t type, const std::string& name, const std::vector<Node*>& after) {
  auto* node = new Node{0, type, name, after, nullptr};
  {
    const std::lock_guard guard(S().lock);
    node->id = S().next_node++;
    graph->nodes.push_back(node);
  }
  GraphData data{};
  data.graph = graph;
  data.node = node;
  data.node_type = type;
  Resource(kGraphNodeCreated, nullptr, &data);
  for (Node* each : after) {
    data.dependency = each;
    Resource(kGraphNodeDependencyCreated, nullptr, &data);
  }
  return node;
}

void Transfer(const Api& api, Handle stream, uint32_t node_type, uint8_t kind, uint64_t bytes,
              std::function<void()> run) {
  Graph* graph = nullptr;
  std::vector<Node*> after;
  {
    const std::lock_guard guard(S().lock);
    if (const auto found = S().capturing.find(stream); found != S().capturing.end()) {
      graph = found->second;
      after = S().capture_tails[stream];
    }
  }
  if (graph == nullptr) {
    Copied(api, kind, bytes);
    return run();
  }
  Node* node = NewNode(graph, node_type, "", after);
  node->run = std::move(run);
  const std::lock_guard guard(S().lock);
  S().capture_tails[stream] = {node};
}

namespace {

std::vector<Node*> Nodes(const Handle* handles, size_t count) {
  std::vector<Node*> nodes;
  for (size_t i = 0; i < count; ++i) nodes.push_back(static_cast<Node*>(handles[i]));
  return nodes;
}

}  // namespace
}  // namespace heddle::capture::testing

using namespace heddle::capture::testing;

extern "C" {

uint32_t cuEventRecord(Handle event, Handle stream) {
  EventRecordParams params{event, stream};
  API(cuEventRecord, params);
  const std::lock_guard guard(S().lock);
  S().event_tails[event] = S().capture_tails[stream];
  S().event_stream[event] = stream;
  return 0;
}
uint32_t cuStreamWaitEvent(Handle stream, Handle event, uint32_t flags) {
  StreamWaitParams params{stream, event, flags};
  API(cuStreamWaitEvent, params);
  const std::lock_guard guard(S().lock);
  const auto origin = S().capturing.find(S().event_stream[event]);
  if (origin == S().capturing.end()) return 0;
  S().capturing.try_emplace(stream, origin->second);  // the stream joins the capture
  for (Node* node : S().event_tails[event]) S().capture_tails[stream].push_back(node);
  return 0;
}
uint32_t cuStreamIsCapturing(Handle stream, uint32_t* status) {
  const std::lock_guard guard(S().lock);
  *status = S().capturing.contains(stream) ? 1 : 0;
  return 0;
}
uint32_t cuStreamSynchronize(Handle stream) {
  ForbidInCallbacks("cuStreamSynchronize");
  API(cuStreamSynchronize, stream);
  return 0;
}
uint32_t cuEventSynchronize(Handle event) {
  API(cuEventSynchronize, event);
  return 0;
}
uint32_t cuCtxSynchronize() {
  ForbidInCallbacks("cuCtxSynchronize");
  const Api api(k_cuCtxSynchronize, "cuCtxSynchronize", nullptr);
  return 0;
}
uint32_t cuStreamBeginCapture_v2(Handle stream, uint32_t) {
  const std::lock_guard guard(S().lock);
  S().capturing[stream] = new Graph;
  S().capture_tails[stream].clear();
  return 0;
}
uint32_t cuStreamEndCapture(Handle stream, Handle* graph) {
  const std::lock_guard guard(S().lock);
  Graph* captured = S().capturing[stream];
  *graph = captured;
  std::erase_if(S().capturing, [&](const auto& each) { return each.second == captured; });
  return 0;
}
uint32_t cuGraphInstantiateWithFlags(Handle* executable, Handle graph, uint64_t) {
  auto* clone = new Graph;
  std::map<Node*, Node*> clone_of;
  for (Node* node : static_cast<Graph*>(graph)->nodes) {
    std::vector<Node*> after;
    for (Node* each : node->after) after.push_back(clone_of[each]);
    auto* copy = new Node{0, node->type, node->name, after, node->run};
    {
      const std::lock_guard guard(S().lock);
      copy->id = S().next_node++;
    }
    clone->nodes.push_back(copy);
    clone_of[node] = copy;
    GraphData data{};
    data.graph = clone;
    data.original_graph = graph;
    data.node = copy;
    data.original_node = node;
    data.node_type = node->type;
    Resource(kGraphNodeCloned, nullptr, &data);
  }
  *executable = clone;
  GraphData data{};
  data.graph = graph;
  data.graph_exec = clone;
  Resource(kGraphExecCreated, nullptr, &data);
  return 0;
}
uint32_t cuGraphLaunch(Handle executable, Handle stream) {
  GraphLaunchParams params{executable, stream};
  API(cuGraphLaunch, params);
  for (const Node* node : static_cast<Graph*>(executable)->nodes)
    if (node->type == kKernelNode)
      Finished(api.correlation(), node->name, node->id);
    else if (node->run)
      node->run();
  return 0;
}

// ---- Graphs that are built node by node

uint32_t cuGraphCreate(Handle* graph, uint32_t) {
  *graph = new Graph;
  return 0;
}
uint32_t cuGraphAddKernelNode_v2(Handle* node, Handle graph, const Handle* after, size_t count,
                                 const KernelNodeParams* kernel) {
  GraphAddKernelParams params{node, graph, after, count, kernel};
  API(cuGraphAddKernelNode_v2, params);
  *node = NewNode(static_cast<Graph*>(graph), kKernelNode, static_cast<Function*>(kernel->function)->name,
                  Nodes(after, count));
  return 0;
}
uint32_t cuGraphAddMemcpyNode(Handle* node, Handle graph, const Handle* after, size_t count,
                              const Copy3D* copy, Handle context) {
  GraphAddTransferParams params{node, graph, after, count, copy, context};
  API(cuGraphAddMemcpyNode, params);
  Node* made = NewNode(static_cast<Graph*>(graph), kCopyNode, "", Nodes(after, count));
  made->run = [what = *copy] { RunCopy(what); };
  *node = made;
  return 0;
}
uint32_t cuGraphMemcpyNodeSetParams(Handle node, const Copy3D* copy) {
  GraphSetTransferParams params{node, copy};
  API(cuGraphMemcpyNodeSetParams, params);
  static_cast<Node*>(node)->run = [what = *copy] { RunCopy(what); };
  return 0;
}
uint32_t cuGraphAddNode_v2(Handle* node, Handle graph, const Handle* after, const void* edges, size_t count,
                           NodeParams* what) {
  GraphAddNode2Params params{node, graph, after, edges, count, what};
  API(cuGraphAddNode_v2, params);
  Node* made = NewNode(static_cast<Graph*>(graph), what->type, "", Nodes(after, count));
  if (what->type == kFillNode) made->run = [fill = what->of.fill] { RunFill(fill); };
  *node = made;
  return 0;
}
}
