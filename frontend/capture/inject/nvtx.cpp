// NVTX ranges, for --range: NVTX_INJECTION64_PATH makes NVTX's headers call InitializeInjectionNvtx2, which fills their table of
// functions. The numbers and structures are those of NVTX 3's injection interface.
#include <cstdint>
#include <cstring>

#include "frontend/capture/inject/settings.h"

namespace heddle::capture {
namespace {

constexpr uint32_t kCallbacksTable = 1;                 // NVTX_ETID_CALLBACKS
constexpr int kCoreModule = 1, kCore2Module = 5;        // NVTX_CB_MODULE_*
constexpr uint32_t kPushEx = 8, kPushA = 9, kPop = 11;  // NVTX_CBID_CORE_Range*
constexpr uint32_t kDomainPushEx = 4, kDomainPop = 5;   // NVTX_CBID_CORE2_DomainRange*
constexpr uint32_t kDomainRegisterA = 10;               // NVTX_CBID_CORE2_DomainRegisterStringA
constexpr int32_t kAscii = 1, kRegistered = 3;          // NVTX_MESSAGE_TYPE_*
constexpr int kDeepest = 128;

struct CallbacksTable {
  size_t struct_size;
  int (*module_functions)(int module, void**** table, unsigned* size);
};

struct EventAttributes {  // nvtxEventAttributes_v2
  uint16_t version;
  uint16_t size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
};

// Which of the thread's open ranges count, innermost in bit 0.
struct Stack {
  bool counts[kDeepest];
  int depth;
};
__thread Stack t_ranges;

int Push(const char* name) {
  const bool counts = name != nullptr && EnterRange(name, std::strlen(name));
  if (t_ranges.depth < kDeepest) t_ranges.counts[t_ranges.depth] = counts;
  return t_ranges.depth++;
}

// A registered string's handle is a copy of the string itself: see RegisterString.
int PushEx(const EventAttributes* attributes) {
  const bool named = attributes != nullptr &&
                     (attributes->message_type == kAscii || attributes->message_type == kRegistered);
  return Push(named ? attributes->message : nullptr);
}
int DomainPushEx(void*, const EventAttributes* attributes) { return PushEx(attributes); }

int Pop() {
  if (t_ranges.depth == 0) return -1;
  --t_ranges.depth;
  if (t_ranges.depth < kDeepest && t_ranges.counts[t_ranges.depth]) LeaveRange();
  return t_ranges.depth;
}
int DomainPop(void*) { return Pop(); }

void* RegisterString(void*, const char* text) { return strdup(text == nullptr ? "" : text); }

template <typename Function>
void Put(void*** table, unsigned size, uint32_t index, Function function) {
  if (index < size && table[index] != nullptr) *table[index] = reinterpret_cast<void*>(function);
}

}  // namespace
}  // namespace heddle::capture

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void* (*export_table)(uint32_t)) {
  using namespace heddle::capture;
  ReadSettings();
  if (TheSettings().range == nullptr) return 0;
  const auto* callbacks = static_cast<const CallbacksTable*>(export_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(CallbacksTable)) return 0;
  void*** table = nullptr;
  unsigned size = 0;
  if (callbacks->module_functions(kCoreModule, &table, &size) != 0) {
    Put(table, size, kPushEx, PushEx);
    Put(table, size, kPushA, Push);
    Put(table, size, kPop, Pop);
  }
  if (callbacks->module_functions(kCore2Module, &table, &size) != 0) {
    Put(table, size, kDomainPushEx, DomainPushEx);
    Put(table, size, kDomainPop, DomainPop);
    Put(table, size, kDomainRegisterA, RegisterString);
  }
  return 1;
}
