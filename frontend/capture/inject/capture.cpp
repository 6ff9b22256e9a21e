#include "frontend/capture/inject/capture.h"

#include <pthread.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include "frontend/capture/frame.h"
#include "frontend/capture/inject/functions.h"
#include "frontend/capture/inject/image.h"
#include "frontend/capture/inject/measure.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/snapshot.h"

namespace heddle::capture {
namespace {

constexpr long kFlushMilliseconds = 250;

struct Capture {
  const Cupti* cupti = nullptr;
  const Driver* driver = nullptr;
  void* subscriber = nullptr;
  pthread_t flusher{};
  bool has_flusher = false;
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t stop_asked = PTHREAD_COND_INITIALIZER;
  bool stop = false;  // under lock
  bool devices_are_written = false;
};
Capture g_capture;
uint32_t g_device_seen = 0;  // a context exists: the driver is ready to be asked
uint32_t g_threads = 0;

__thread ThreadState t_state;

void WriteDevicesOnce() {
  if (g_capture.devices_are_written || g_capture.driver == nullptr ||
      __atomic_load_n(&g_device_seen, __ATOMIC_ACQUIRE) == 0)
    return;
  g_capture.devices_are_written = true;
  const Outside outside;
  WriteDevices(*g_capture.driver);
}

void* FlushLoop(void*) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_mutex_lock(&g_capture.lock);
  while (!g_capture.stop) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += kFlushMilliseconds * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&g_capture.stop_asked, &g_capture.lock, &until);
    if (g_capture.stop) break;
    pthread_mutex_unlock(&g_capture.lock);
    WriteDevicesOnce();
    FlushSink();
    pthread_mutex_lock(&g_capture.lock);
  }
  pthread_mutex_unlock(&g_capture.lock);
  return nullptr;
}

// The child has neither the flusher nor a usable CUDA; what it does later is a capture of its own.
void InForkedChild() {
  AbandonSink();
  AbandonImages();
  AbandonFunctions();
  AbandonActivity();
  AbandonSnapshots();
  AbandonMeasurements();
  g_capture = {};
  g_device_seen = 0;
}

bool Subscribe(const Cupti& cupti) {
  char other[128] = {};
  abi::SubscriberParams params{sizeof(abi::SubscriberParams), "heddle capture", other, sizeof other};
  const uint32_t status = cupti.cuptiSubscribe_v2 != nullptr
                              ? cupti.cuptiSubscribe_v2(&g_capture.subscriber, OnCallback, nullptr, &params)
                              : cupti.cuptiSubscribe(&g_capture.subscriber, OnCallback, nullptr);
  if (status != 0) {
    WriteNote(kSubscribeRefused, status, other);
    return false;
  }
#define HEDDLE_DRIVER_CALL(name, id) cupti.cuptiEnableCallback(1, g_capture.subscriber, abi::kDriverApi, id);
#include "frontend/capture/inject/driver_calls.def"
#undef HEDDLE_DRIVER_CALL
  for (const uint32_t id : {abi::kContextCreated, abi::kStreamDestroyStarting, abi::kModuleLoaded,
                            abi::kModuleUnloadStarting, abi::kGraphNodeCreated,
                            abi::kGraphNodeDependencyCreated, abi::kGraphExecCreated, abi::kGraphNodeCloned})
    cupti.cuptiEnableCallback(1, g_capture.subscriber, abi::kResource, id);
  return true;
}

}  // namespace

ThreadState& ThisThread() {
  if (t_state.number == 0) t_state.number = __atomic_add_fetch(&g_threads, 1, __ATOMIC_RELAXED);
  return t_state;
}

bool StartCapture(const Cupti* cupti, const Driver* driver) {
  ReadSettings();
  if (TheSettings().folder == nullptr || SinkIsOpen()) return false;
  if (!OpenSink(TheSettings().folder)) {
    std::fprintf(stderr, "heddle capture: no record file can be made (%s)\n", std::strerror(errno));
    return false;
  }
  static bool registered = false;
  if (!registered) pthread_atfork(nullptr, nullptr, InForkedChild);
  registered = true;
  g_capture.cupti = cupti;
  g_capture.driver = driver;
  uint32_t version = 0;
  if (cupti != nullptr && cupti->cuptiGetVersion(&version) != 0) version = 0;
  if (Record record(kStartRecord, 64); record) {
    record->Varint(1, kRecordVersion);
    record->Varint(2, static_cast<uint64_t>(getpid()));
    record->Varint(3, version);
  }
  const bool subscribed = cupti != nullptr && Subscribe(*cupti);
  // Kernel times and measurements exclude each other (CUPTI_ERROR_NOT_COMPATIBLE).
  if (subscribed && TheSettings().measure == Measure::kNothing) StartActivity(*cupti, version);
  g_capture.has_flusher = pthread_create(&g_capture.flusher, nullptr, FlushLoop, nullptr) == 0;
  return subscribed;
}

void StopCapture() {
  if (!SinkIsOpen()) return;
  WriteDevicesOnce();
  EndMeasurements();
  if (g_capture.cupti != nullptr && g_capture.subscriber != nullptr)
    g_capture.cupti->cuptiActivityFlushAll(1);
  if (g_capture.has_flusher) {
    pthread_mutex_lock(&g_capture.lock);
    g_capture.stop = true;
    pthread_cond_signal(&g_capture.stop_asked);
    pthread_mutex_unlock(&g_capture.lock);
    pthread_join(g_capture.flusher, nullptr);
    g_capture.has_flusher = false;
  }
  CloseSink();
}

void OnCallback(void*, uint32_t domain, uint32_t id, const void* data) {
  if (!SinkIsOpen() || data == nullptr) return;
  ThreadState& thread = ThisThread();
  if (thread.outside) return;
  if (domain == abi::kResource) {
    if (id == abi::kContextCreated) __atomic_store_n(&g_device_seen, 1, __ATOMIC_RELEASE);
    OnResource(*g_capture.cupti, id, *static_cast<const abi::ResourceData*>(data));
    return;
  }
  if (domain != abi::kDriverApi) return;
  const auto& call = *static_cast<const abi::CallbackData*>(data);
  if (call.site == abi::kEnter) {
    thread.created_node = 0;
    OnEnter(id, call);
    return;
  }
  if (call.return_value == nullptr || *static_cast<const uint32_t*>(call.return_value) != 0) return;
  if (call.parameters == nullptr && id != abi::k_cuCtxSynchronize) return;  // that one has none
  if (OnLaunchCall(id, call) || OnTransferCall(id, call) || OnMemoryCall(id, call) || OnLoadCall(id, call))
    return;
  OnStreamCall(id, call);
}

void WriteDevices(const Driver& driver) {
  constexpr int kMostDevices = 64, kMostAttributes = 200;
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != 0) return;
  for (int device = 0; device < count && device < kMostDevices; ++device) {
    char name[256] = {};
    driver.cuDeviceGetName(name, sizeof name - 1, device);
    uint32_t numbers[kMostAttributes], values[kMostAttributes];
    size_t known = 0;
    for (int attribute = 1; attribute < kMostAttributes; ++attribute) {
      int value = 0;
      if (driver.cuDeviceGetAttribute(&value, attribute, device) != 0) continue;
      numbers[known] = static_cast<uint32_t>(attribute);
      values[known++] = static_cast<uint32_t>(value) << 1 ^ static_cast<uint32_t>(value >> 31);  // zigzag
    }
    if (Record record(kDeviceRecord, 4096); record) {
      record->Varint(1, static_cast<uint64_t>(device));
      record->Bytes(2, name, std::strlen(name));
      record->Packed(3, numbers, known);
      record->Packed(4, values, known);
    }
  }
}

}  // namespace heddle::capture
