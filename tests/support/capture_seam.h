// What drives the library of `heddle capture` from inside a test's process: functions in the place of CUPTI's, and its callbacks.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/capture.h"

namespace heddle::capture {

inline constexpr size_t kKernelRecordBytes = 216;  // of CUPTI 13.0, whose version FakeCupti() states

// Every call succeeds, and buffers hold kernel records.
inline Cupti FakeCupti() {
  Cupti cupti;
  cupti.cuptiGetVersion = [](uint32_t* version) -> uint32_t { return *version = 130001, 0; };
  cupti.cuptiSubscribe = [](void** subscriber, abi::CallbackFunction, void*) -> uint32_t {
    static int handle = 0;
    return *subscriber = &handle, 0;
  };
  cupti.cuptiUnsubscribe = [](void*) -> uint32_t { return 0; };
  cupti.cuptiEnableCallback = [](uint32_t, void*, uint32_t, uint32_t) -> uint32_t { return 0; };
  cupti.cuptiActivityRegisterCallbacks = [](auto, auto) -> uint32_t { return 0; };
  cupti.cuptiActivityEnable = [](uint32_t) -> uint32_t { return 0; };
  cupti.cuptiActivityFlushAll = [](uint32_t) -> uint32_t { return 0; };
  cupti.cuptiActivityGetNextRecord = [](uint8_t* buffer, size_t valid, void** record) -> uint32_t {
    uint8_t* next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + kKernelRecordBytes;
    if (next + kKernelRecordBytes > buffer + valid) return 12;
    *record = next;
    return 0;
  };
  return cupti;
}

// A call of the driver that succeeded, before and after.
template <typename Params>
void Call(uint32_t id, const Params& params, uint32_t correlation) {
  uint32_t result = 0;
  abi::CallbackData data{};
  data.parameters = &params;
  data.return_value = &result;
  data.symbol_name = "k";
  data.correlation_id = correlation;
  data.site = abi::kEnter;
  OnCallback(nullptr, abi::kDriverApi, id, &data);
  data.site = abi::kExit;
  OnCallback(nullptr, abi::kDriverApi, id, &data);
}

inline void Resource(uint32_t id, void* descriptor) {
  const abi::ResourceData resource{nullptr, nullptr, descriptor};
  OnCallback(nullptr, abi::kResource, id, &resource);
}

// CUPTI hands over a buffer with the record of one run of kernel "k".
inline void KernelRecord(uint32_t correlation, uint64_t start, uint64_t end) {
  abi::KernelActivity kernel{};
  kernel.kind = abi::kConcurrentKernel;
  kernel.correlation_id = correlation;
  kernel.start = start;
  kernel.end = end;
  kernel.name = "k";
  auto* owned = static_cast<uint8_t*>(std::calloc(1, kKernelRecordBytes));
  std::memcpy(owned, &kernel, sizeof kernel);
  TakeBuffer(nullptr, 0, owned, kKernelRecordBytes, kKernelRecordBytes);
}

}  // namespace heddle::capture
