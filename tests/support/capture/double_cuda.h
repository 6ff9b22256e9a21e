// What the files of libcuda's stand-in share.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/capture/double_cupti.h"

namespace heddle::capture::testing {

using namespace abi;

struct Module {
  std::string cubin;
  uint32_t id = 0;
  bool announced = false;
};
struct Function {
  Module* module = nullptr;
  std::string name;
};
struct Node {
  uint64_t id = 0;  // first: CUPTI's double reads it
  uint32_t type = 0;
  std::string name;
  std::vector<Node*> after;
  std::function<void()> run;  // of a copy or a fill
};
struct Graph {
  std::vector<Node*> nodes;
};
struct State {
  std::mutex lock;
  uint32_t correlation = 0;
  uint32_t next_module = 0;
  uint64_t next_node = (uint64_t{7} << 32) + 1;
  uint64_t clock_ns = 1000000;
  std::map<Handle, Graph*> capturing;                  // stream -> graph
  std::map<Handle, std::vector<Node*>> capture_tails;  // stream
  std::map<Handle, std::vector<Node*>> event_tails;
  std::map<Handle, Handle> event_stream;
  std::map<std::string, std::string> names;
  std::map<uint64_t, size_t> allocations;
};
State& S();
bool Is(const char* environment_variable);
const CuptiHooks* Hooks();

// What NVIDIA's guide forbids may hang on a GPU; here it ends the test.
void ForbidInCallbacks(const char* call);

extern thread_local bool t_in_callback;

// Tells CUPTI that the call begins, and in the end how it went. Nothing of it holds the lock.
class Api {
 public:
  Api(uint32_t id, const char* name, const void* params, const char* symbol = nullptr)
      : id_(id), hooks_(Hooks()) {
    {
      const std::lock_guard guard(S().lock);
      data_.correlation_id = ++S().correlation;
    }
    data_.function_name = name;
    data_.parameters = params;
    data_.return_value = &result_;
    data_.symbol_name = symbol;
    data_.context_uid = 1;
    Tell(kEnter);
  }
  ~Api() { Tell(kExit); }
  uint32_t correlation() const { return data_.correlation_id; }

 private:
  void Tell(uint32_t site) {
    if (hooks_ == nullptr || !hooks_->wants(kDriverApi, id_)) return;
    data_.site = site;
    t_in_callback = true;
    hooks_->call(kDriverApi, id_, &data_);
    t_in_callback = false;
  }
  uint32_t id_;
  uint32_t result_ = 0;
  const CuptiHooks* hooks_;
  CallbackData data_{};
};

void Resource(uint32_t id, Handle stream, void* descriptor);
// Tells CUPTI what a kernel or a copy took.
void Finished(uint32_t correlation, const std::string& name, uint64_t node_id, uint32_t ctas = 1);
void Copied(const Api& api, uint8_t kind, uint64_t bytes);

Node* NewNode(Graph* graph, uint32_t type, const std::string& name, const std::vector<Node*>& after);
// What a copy or a fill does: it is done now, or when the graph runs that its stream captures.
void Transfer(const Api& api, Handle stream, uint32_t node_type, uint8_t kind, uint64_t bytes,
              std::function<void()> run);

void RunCopy(const Copy3D& copy);
void RunFill(const FillNodeParams& fill);

}  // namespace heddle::capture::testing

#define API(name, params) const Api api(k_##name, #name, &params)
