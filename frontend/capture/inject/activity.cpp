// CUPTI's activity records: when kernels ran.
#include <pthread.h>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/pointer_map.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

const Cupti* g_cupti = nullptr;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
PointerMap g_names;  // CUPTI's name pointers -> number of the name
uint32_t g_name_count = 0;

// Pointers to a kernel's name are the same in all its records.
uint32_t NameNumber(const char* name) {
  if (name == nullptr) return 0;
  pthread_mutex_lock(&g_lock);
  const uint64_t* found = g_names.Find(reinterpret_cast<uint64_t>(name));
  const bool fresh = found == nullptr;
  const uint32_t number = fresh ? ++g_name_count : static_cast<uint32_t>(*found);
  if (fresh) g_names.Set(reinterpret_cast<uint64_t>(name), number);
  pthread_mutex_unlock(&g_lock);
  if (!fresh) return number;
  const size_t length = std::strlen(name);
  if (Record record(kKernelNameRecord, length + 32); record) {
    record->Varint(1, number);
    record->Bytes(2, name, length);
  }
  return number;
}

void WriteKernel(const abi::KernelActivity& kernel) {
  const uint32_t name = NameNumber(kernel.name);
  if (Record record(kKernelRecord, 128); record) {
    record->Varint(1, kernel.correlation_id);
    record->Fixed64(2, kernel.start);
    record->Varint(3, kernel.end >= kernel.start ? kernel.end - kernel.start : 0);
    record->Varint(4, kernel.device_id);
    record->Varint(5, kernel.stream_id);
    record->Varint(6, kernel.graph_node_id);
    record->Varint(7, name);
    record->Varint(8, kernel.context_id);
  }
}

// MemcpyActivity, PeerCopyActivity and MemsetActivity.
template <typename Activity>
void WriteTransfer(const void* from, uint32_t kind) {
  Activity activity;
  std::memcpy(&activity, from, sizeof activity);
  if (Record record(kTransferRecord, 96); record) {
    record->Varint(1, kind);
    record->Varint(2, activity.bytes);
    record->Fixed64(3, activity.start);
    record->Varint(4, activity.end >= activity.start ? activity.end - activity.start : 0);
    record->Varint(5, activity.device_id);
    record->Varint(6, activity.stream_id);
    record->Varint(7, activity.correlation_id);
  }
}

void WriteActivity(const void* record) {
  uint32_t kind = 0;
  std::memcpy(&kind, record, sizeof kind);
  if (kind == abi::kConcurrentKernel) {
    abi::KernelActivity kernel;
    std::memcpy(&kernel, record, sizeof kernel);
    WriteKernel(kernel);
  } else if (kind == abi::kMemcpy) {
    const uint8_t copy_kind = static_cast<const uint8_t*>(record)[offsetof(abi::MemcpyActivity, copy_kind)];
    WriteTransfer<abi::MemcpyActivity>(record, copy_kind);
  } else if (kind == abi::kMemcpyPeer) {
    const uint8_t copy_kind = static_cast<const uint8_t*>(record)[offsetof(abi::PeerCopyActivity, copy_kind)];
    WriteTransfer<abi::PeerCopyActivity>(record, copy_kind);
  } else if (kind == abi::kMemset) {
    WriteTransfer<abi::MemsetActivity>(record, 0);
  }
}

}  // namespace

// CUPTI owns the buffer until it gives it back. One must be given: CUPTI before 12.9 crashes on a refusal.
void GiveBuffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *max_records = 0;  // as many as fit
}

void TakeBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
  if (g_cupti != nullptr && buffer != nullptr && SinkIsOpen()) {
    void* record = nullptr;
    while (g_cupti->cuptiActivityGetNextRecord(buffer, valid, &record) == 0) WriteActivity(record);
    size_t dropped = 0;
    if (g_cupti->cuptiActivityGetNumDroppedRecords != nullptr &&
        g_cupti->cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0 && dropped > 0)
      WriteNote(kDroppedRecords, 0, "activity", dropped);
  }
  std::free(buffer);
}

void StartActivity(const Cupti& cupti, uint32_t cupti_version) {
  g_cupti = &cupti;
  if (cupti_version < abi::kOldestApiVersion) {
    WriteNote(kOldCupti, cupti_version, "kernel times");
    return;
  }
  uint32_t status = cupti.cuptiActivityRegisterCallbacks(GiveBuffer, TakeBuffer);
  if (status == 0) status = cupti.cuptiActivityEnable(abi::kConcurrentKernel);
  if (status != 0) WriteNote(kActivityRefused, status, "kernel times");
  for (const uint32_t kind : {abi::kMemcpy, abi::kMemcpyPeer, abi::kMemset})
    if (status == 0 && cupti.cuptiActivityEnable(kind) != 0)
      WriteNote(kActivityRefused, 0, "times of copies");
  if (cupti.cuptiActivityFlushPeriod != nullptr) cupti.cuptiActivityFlushPeriod(250);
}

void AbandonActivity() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  g_names.Abandon();
  g_name_count = 0;
}

}  // namespace heddle::capture
