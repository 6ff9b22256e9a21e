#include "frontend/capture/inject/functions.h"

#include <pthread.h>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/pointer_map.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"

namespace heddle::capture {
namespace {

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
PointerMap g_owners;     // handle -> image + 1
PointerMap g_functions;  // handle -> FunctionInfo*, 0: forgotten
uint32_t g_next_id = 0;

uint64_t Key(abi::Handle handle) { return reinterpret_cast<uint64_t>(handle); }

FunctionInfo* NewFunction(uint32_t image, const char* name) {
  auto* info = static_cast<FunctionInfo*>(std::calloc(1, sizeof(FunctionInfo)));
  if (info == nullptr) return nullptr;
  info->image = image;
  info->name = strdup(name);
  info->id = kNoImage;  // not written yet
  if (info->name != nullptr) return info;
  std::free(info);
  return nullptr;
}

// With g_lock held: the first launch of the function.
void Announce(FunctionInfo* info, bool ambiguous) {
  info->id = g_next_id++;
  info->selected = SelectsKernel(info->name);
  info->has_layout = info->image != kNoImage && ReadLayout(info->image, info->name, &info->layout);
  const size_t length = std::strlen(info->name);
  if (Record record(kFunctionRecord, length + 64); record) {
    record->Varint(1, info->id);
    record->Bytes(2, info->name, length);
    record->Varint(3, static_cast<uint32_t>(info->image + 1));  // 0: kNoImage
    record->Varint(4, ambiguous);
  }
}

}  // namespace

void BindOwner(abi::Handle owner, uint32_t image) {
  pthread_mutex_lock(&g_lock);
  g_owners.Set(Key(owner), uint64_t{image} + 1);
  pthread_mutex_unlock(&g_lock);
}

uint32_t ImageOfOwner(abi::Handle owner) {
  pthread_mutex_lock(&g_lock);
  const uint64_t* found = g_owners.Find(Key(owner));
  const uint32_t image = found == nullptr || *found == 0 ? kNoImage : static_cast<uint32_t>(*found - 1);
  pthread_mutex_unlock(&g_lock);
  return image;
}

void BindFunction(abi::Handle function, uint32_t image, const char* name) {
  if (name == nullptr) return;
  pthread_mutex_lock(&g_lock);
  const uint64_t* found = g_functions.Find(Key(function));
  auto* known = found == nullptr ? nullptr : reinterpret_cast<FunctionInfo*>(*found);
  const bool same = known != nullptr && known->image == image && std::strcmp(known->name, name) == 0;
  if (!same) g_functions.Set(Key(function), reinterpret_cast<uint64_t>(NewFunction(image, name)));
  pthread_mutex_unlock(&g_lock);
}

void AliasFunction(abi::Handle function, abi::Handle kernel) {
  pthread_mutex_lock(&g_lock);
  if (const uint64_t* found = g_functions.Find(Key(kernel)); found != nullptr)
    g_functions.Set(Key(function), uint64_t{*found});
  pthread_mutex_unlock(&g_lock);
}

bool KnowsFunction(abi::Handle function) {
  pthread_mutex_lock(&g_lock);
  const uint64_t* found = g_functions.Find(Key(function));
  const bool known = found != nullptr && *found != 0;
  pthread_mutex_unlock(&g_lock);
  return known;
}

FunctionInfo* ResolveFunction(abi::Handle function, const char* symbol_name) {
  pthread_mutex_lock(&g_lock);
  const uint64_t* found = g_functions.Find(Key(function));
  auto* info = found == nullptr ? nullptr : reinterpret_cast<FunctionInfo*>(*found);
  bool others = false;
  if (info == nullptr) {
    const char* name = symbol_name == nullptr ? "" : symbol_name;
    const uint32_t image = *name == 0 ? kNoImage : FindImageWithKernel(name, &others);
    info = NewFunction(image, name);
    g_functions.Set(Key(function), reinterpret_cast<uint64_t>(info));
  } else if (info->image == kNoImage && info->id == kNoImage) {
    info->image = FindImageWithKernel(info->name, &others);  // looked up before its code was loaded
  }
  if (info != nullptr && info->id == kNoImage) Announce(info, others);
  pthread_mutex_unlock(&g_lock);
  return info;
}

void ForgetFunctionsOf(uint32_t image) {
  pthread_mutex_lock(&g_lock);
  g_functions.ForEach([&](uint64_t, uint64_t* value) {
    const auto* info = reinterpret_cast<const FunctionInfo*>(*value);
    if (info != nullptr && info->image == image) *value = 0;
  });
  pthread_mutex_unlock(&g_lock);
}

void AbandonFunctions() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  g_owners.Abandon();
  g_functions.Abandon();
  g_next_id = 0;
}

}  // namespace heddle::capture
