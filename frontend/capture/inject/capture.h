// The parts of the capture that CUPTI calls. All are safe on any thread and return at once where nothing is recorded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/capture/inject/abi.h"
#include "frontend/capture/inject/seam.h"

namespace heddle::capture {

// What one thread is in the middle of. Handed over between callbacks of one call.
struct ThreadState {
  uint32_t number = 0;                              // counted from 1
  uint32_t loaded_image_plus1 = 0;                  // by the load call that is running
  uint64_t created_node = 0;                        // by the launch call that is running
  uint64_t recorded_launches = 0;                   // that ran: nodes of graphs do not count
  bool outside = false;                             // our own calls: nothing of them is recorded
  uint8_t replaced_map[abi::kTensorMapBytes] = {};  // the tensor map before the call that changes its address
};
ThreadState& ThisThread();

// While one lives, what its thread calls is our own.
class Outside {
 public:
  Outside() : state_(ThisThread()), before_(state_.outside) { state_.outside = true; }
  ~Outside() { state_.outside = before_; }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  ThreadState& state_;
  bool before_;
};

// Starts recording: opens the record file, subscribes to `cupti` and registers for activity. False: nothing is recorded of
// calls, but the record file says why. `cupti` may be null: there is none.
bool StartCapture(const Cupti* cupti, const Driver* driver);
// At exit: all that CUPTI still holds, then the end of the record file.
void StopCapture();

// CUPTI's callback function.
void OnCallback(void* user, uint32_t domain, uint32_t id, const void* data);

// Groups of calls, after they returned. Each returns whether it knows `call`.
bool OnLaunchCall(uint32_t call, const abi::CallbackData& data);
bool OnLoadCall(uint32_t call, const abi::CallbackData& data);
bool OnMemoryCall(uint32_t call, const abi::CallbackData& data);
bool OnTransferCall(uint32_t call, const abi::CallbackData& data);
bool OnStreamCall(uint32_t call, const abi::CallbackData& data);
// Before it runs.
void OnEnter(uint32_t call, const abi::CallbackData& data);
void OnResource(const Cupti& cupti, uint32_t id, const abi::ResourceData& data);

// A copy or a fill became a node of a graph, or one changed.
void WriteCopyNode(const abi::Copy3D& params, abi::Handle node, const abi::CallbackData& data);
void WriteFillNode(const abi::FillNodeParams& params, abi::Handle node, const abi::CallbackData& data);

// Activity buffers: given to CUPTI and taken back.
void GiveBuffer(uint8_t** buffer, size_t* size, size_t* max_records);
void TakeBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
void StartActivity(const Cupti& cupti, uint32_t cupti_version);
void AbandonActivity();

// The devices' names and attributes. Calls the driver: never from a callback.
void WriteDevices(const Driver& driver);

}  // namespace heddle::capture
