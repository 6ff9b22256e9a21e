// A stand-in for libcupti: one subscriber, callbacks as the double of the driver makes them, kernel records in buffers of its client.
//
// Faults by environment: DOUBLE_SUBSCRIBE, DOUBLE_ACTIVITY: the status that subscribing, enabling activity gives; DOUBLE_VERSION: what
// cuptiGetVersion says; DOUBLE_KERNEL_BYTES: size of a kernel record (216 by default, 200 in CUPTI 12.0); DOUBLE_COPY_BYTES: of those of
// copies and fills (96 by default, 88 in CUPTI 12.0).
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/capture/double_cupti.h"

namespace heddle::capture::testing {
namespace {

uint32_t Setting(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

struct State {
  std::mutex lock;
  abi::CallbackFunction callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<uint32_t, uint32_t>> enabled;
  void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
  void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;
  bool activity = false;
  std::vector<FinishedKernel> kernels;
  std::set<uint32_t> copy_activity;  // kinds of records
  std::vector<FinishedCopy> copies;
};
// Never destroyed: the capture's handlers at exit come later than a static object's end.
State& S() {
  static State* const state = new State;
  return *state;
}

size_t KernelBytes() { return Setting("DOUBLE_KERNEL_BYTES", 216); }
size_t CopyBytes() { return Setting("DOUBLE_COPY_BYTES", 96); }

bool Wants(uint32_t domain, uint32_t id) {
  const std::lock_guard guard(S().lock);
  return S().callback != nullptr && S().enabled.contains({domain, id});
}

void Call(uint32_t domain, uint32_t id, const void* data) {
  abi::CallbackFunction callback = nullptr;
  void* user = nullptr;
  {
    const std::lock_guard guard(S().lock);
    callback = S().callback;
    user = S().user;
  }
  if (callback != nullptr) callback(user, domain, id, data);
}

void Kernel(const FinishedKernel& kernel) {
  ProfiledKernel(kernel.correlation, kernel.ctas);
  const std::lock_guard guard(S().lock);
  if (S().activity) S().kernels.push_back(kernel);
}

constexpr uint8_t kBetweenDevices = 10;  // CUPTI_ACTIVITY_MEMCPY_KIND_PTOP

uint32_t RecordKind(const FinishedCopy& copy) {
  return copy.kind == 0 ? abi::kMemset : copy.kind == kBetweenDevices ? abi::kMemcpyPeer : abi::kMemcpy;
}

void Copy(const FinishedCopy& copy) {
  const std::lock_guard guard(S().lock);
  if (S().copy_activity.contains(RecordKind(copy))) S().copies.push_back(copy);
}

// Copies and fills: a buffer each.
void DeliverCopies() {
  std::vector<FinishedCopy> copies;
  {
    const std::lock_guard guard(S().lock);
    copies.swap(S().copies);
  }
  for (const FinishedCopy& copy : copies) {
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0;
    S().request(&buffer, &size, &most);
    if (buffer == nullptr) return;
    const size_t bytes = CopyBytes();
    const auto write = [&](auto record) {
      record.kind = RecordKind(copy);
      record.bytes = copy.bytes;
      record.start = copy.start_ns;
      record.end = copy.end_ns;
      record.correlation_id = copy.correlation;
      if constexpr (requires { record.copy_kind; }) record.copy_kind = copy.kind;
      std::memset(buffer, 0xee, bytes);
      std::memcpy(buffer, &record, std::min(sizeof record, bytes));
    };
    if (copy.kind == 0)
      write(abi::MemsetActivity{});
    else if (copy.kind == kBetweenDevices)
      write(abi::PeerCopyActivity{});
    else
      write(abi::MemcpyActivity{});
    S().complete(nullptr, 0, buffer, size, bytes);
  }
}

// As many buffers as it takes; the client's functions are called without the lock.
void Deliver() {
  std::vector<FinishedKernel> kernels;
  {
    const std::lock_guard guard(S().lock);
    kernels.swap(S().kernels);
  }
  for (size_t next = 0; next < kernels.size();) {
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0, used = 0;
    S().request(&buffer, &size, &most);
    if (buffer == nullptr) return;
    const size_t bytes = KernelBytes();
    for (; next < kernels.size() && used + bytes <= size; ++next, used += bytes) {
      abi::KernelActivity record{};
      record.kind = abi::kConcurrentKernel;
      record.correlation_id = kernels[next].correlation;
      record.start = kernels[next].start_ns;
      record.end = kernels[next].end_ns;
      record.graph_node_id = kernels[next].graph_node_id;
      record.stream_id = kernels[next].stream;
      record.name = kernels[next].name;
      std::memset(buffer + used, 0xee, bytes);
      std::memcpy(buffer + used, &record, sizeof record);
    }
    S().complete(nullptr, 0, buffer, size, used);
  }
}

}  // namespace
}  // namespace heddle::capture::testing

using namespace heddle::capture;
using namespace heddle::capture::testing;

extern "C" {

const CuptiHooks* heddle_double_cupti_hooks() {
  static const CuptiHooks hooks = {Wants, Call, Kernel, Copy};
  return &hooks;
}

uint32_t cuptiGetVersion(uint32_t* version) {
  *version = Setting("DOUBLE_VERSION", 130001);
  return 0;
}

uint32_t cuptiSubscribe(void** subscriber, abi::CallbackFunction callback, void* user) {
  const uint32_t status = Setting("DOUBLE_SUBSCRIBE", 0);
  if (status != 0) return status;
  const std::lock_guard guard(S().lock);
  S().callback = callback;
  S().user = user;
  *subscriber = &S();
  return 0;
}

uint32_t cuptiSubscribe_v2(void** subscriber, abi::CallbackFunction callback, void* user,
                           abi::SubscriberParams* params) {
  const uint32_t status = cuptiSubscribe(subscriber, callback, user);
  if (status == 39 && params->old_subscriber_size > 0)
    std::strncpy(params->old_subscriber_name, "another profiler", params->old_subscriber_size - 1);
  return status;
}

uint32_t cuptiUnsubscribe(void*) {
  const std::lock_guard guard(S().lock);
  S().callback = nullptr;
  return 0;
}

uint32_t cuptiEnableCallback(uint32_t enable, void* subscriber, uint32_t domain, uint32_t id) {
  if (subscriber != &S()) return 1;
  const std::lock_guard guard(S().lock);
  if (enable != 0)
    S().enabled.insert({domain, id});
  else
    S().enabled.erase({domain, id});
  return 0;
}

uint32_t cuptiActivityRegisterCallbacks(void (*request)(uint8_t**, size_t*, size_t*),
                                        void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t)) {
  S().request = request;
  S().complete = complete;
  return 0;
}

uint32_t cuptiActivityEnable(uint32_t kind) {
  if (IsProfiling()) return 14;  // CUPTI_ERROR_NOT_COMPATIBLE
  const uint32_t status = Setting("DOUBLE_ACTIVITY", 0);
  const std::lock_guard guard(S().lock);
  if (status == 0 && kind == abi::kConcurrentKernel) S().activity = true;
  if (status == 0) S().copy_activity.insert(kind);
  return status;
}

uint32_t cuptiActivityFlushAll(uint32_t) {
  Deliver();
  DeliverCopies();
  return 0;
}
uint32_t cuptiActivityFlushPeriod(uint32_t) { return 0; }

uint32_t cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, void** record) {
  const auto bytes_of = [](const void* at) {
    uint32_t kind = 0;
    std::memcpy(&kind, at, sizeof kind);
    return kind == abi::kConcurrentKernel ? KernelBytes() : CopyBytes();
  };
  uint8_t* next = *record == nullptr ? buffer : static_cast<uint8_t*>(*record) + bytes_of(*record);
  if (next >= buffer + valid || next + bytes_of(next) > buffer + valid) return 12;
  *record = next;
  return 0;
}

uint32_t cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = 0;
  return 0;
}

// The double of the driver makes nodes whose first word is their number.
uint32_t cuptiGetGraphNodeId(void* node, uint64_t* id) {
  *id = *static_cast<const uint64_t*>(node);
  return 0;
}
}
