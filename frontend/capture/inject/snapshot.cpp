#include "frontend/capture/inject/snapshot.h"

#include <pthread.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/functions.h"
#include "frontend/capture/inject/parameters.h"
#include "frontend/capture/inject/pointer_map.h"
#include "frontend/capture/inject/settings.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/word_hash.h"

namespace heddle::capture {
namespace {

constexpr size_t kPiece = kMaxRecordBytes / 2;
constexpr uint64_t kLowestAddress = 0x10000, kHighestAddress = uint64_t{1} << 49;

// One line of a plan: the parameter bytes at `offset` of this kernel are the address of a buffer that steers it.
struct PlanLine {
  uint64_t name_hash;
  uint32_t offset;
};

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
PlanLine* g_plan = nullptr;
size_t g_plan_lines = 0;
bool g_plan_is_read = false;
PointerMap g_last_hash;  // address -> hash of what was written of it last
PointerMap g_whole;      // base of an allocation -> 1: kept as a whole, 0: new
PointerMap g_in_graphs;  // addresses that nodes of graphs were given

// With g_lock held. Lines of `heddle trace plan`: offset, a space, the kernel's name; '#' begins a comment.
void ReadPlan() {
  if (g_plan_is_read) return;
  g_plan_is_read = true;
  std::FILE* file = TheSettings().plan == nullptr ? nullptr : std::fopen(TheSettings().plan, "re");
  if (file == nullptr) return;
  char line[16384];
  size_t capacity = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    char* name = nullptr;
    const unsigned long offset = std::strtoul(line, &name, 10);
    if (line[0] == '#' || name == line || *name != ' ') continue;
    if (g_plan_lines == capacity) {
      capacity = capacity == 0 ? 64 : capacity * 2;
      auto* grown = static_cast<PlanLine*>(std::realloc(g_plan, capacity * sizeof(PlanLine)));
      if (grown == nullptr) break;
      g_plan = grown;
    }
    g_plan[g_plan_lines++] = {WordHash(name + 1, std::strlen(name + 1)), static_cast<uint32_t>(offset)};
  }
  std::fclose(file);
}

bool LooksLikeAnAddress(uint64_t word) { return word >= kLowestAddress && word < kHighestAddress; }

// Calls use(address) for each address among the parameters that the mode wants.
template <typename Function>
void ForEachWanted(const FunctionInfo& function, const uint8_t* parameters, size_t bytes, Function use) {
  uint64_t word = 0;
  if (TheSettings().snapshot == Snapshot::kAll) {
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      std::memcpy(&word, parameters + at, 8);
      if (LooksLikeAnAddress(word)) use(word);
    }
    return;
  }
  pthread_mutex_lock(&g_lock);
  ReadPlan();
  const PlanLine* plan = g_plan;
  const size_t lines = g_plan_lines;
  pthread_mutex_unlock(&g_lock);
  const uint64_t name = WordHash(function.name, std::strlen(function.name));
  for (size_t i = 0; i < lines; ++i) {
    if (plan[i].name_hash != name || plan[i].offset + 8 > bytes) continue;
    std::memcpy(&word, parameters + plan[i].offset, 8);
    if (LooksLikeAnAddress(word)) use(word);
  }
}

// Reads [address, address + bytes) into the records. False: the driver refuses.
bool Copy(const SnapshotDriver& driver, uint64_t address, size_t bytes, bool only_if_new) {
  auto* data = static_cast<uint8_t*>(std::malloc(bytes < kPiece ? bytes : kPiece));
  if (data == nullptr) return false;
  bool all = true;
  for (size_t done = 0; done < bytes && all;) {
    const size_t piece = bytes - done < kPiece ? bytes - done : kPiece;
    const uint32_t status = driver.copy_to_host(data, address + done, piece);
    all = status == 0;
    if (!all) {
      WriteNote(kSnapshotRefused, status, "memory before a launch");
      break;
    }
    bool write = true;
    if (only_if_new) {
      const uint64_t hash = WordHash(data, piece);
      pthread_mutex_lock(&g_lock);
      const uint64_t* last = g_last_hash.Find(address + done);
      write = last == nullptr || *last != hash;
      if (write) g_last_hash.Set(address + done, hash);
      pthread_mutex_unlock(&g_lock);
    }
    if (write) {
      if (Record record(kSnapshotRecord, piece + 64); record) {
        record->Varint(1, address + done);
        record->Bytes(2, data, piece);
        record->Varint(3, ThisThread().number);
      }
    }
    done += piece;
  }
  std::free(data);
  return all;
}

void Keep(const SnapshotDriver& driver, uint64_t address, bool* synchronized, abi::Handle stream) {
  uint64_t base = 0;
  size_t bytes = 0;
  if (driver.address_range == nullptr || driver.address_range(&base, &bytes, address) != 0 || bytes == 0)
    return;
  const bool all = TheSettings().snapshot == Snapshot::kAll;
  if (all) {
    pthread_mutex_lock(&g_lock);
    const uint64_t* whole = g_whole.Find(base);
    const bool known = whole != nullptr && *whole != 0;
    if (!known) g_whole.Set(base, 1);
    pthread_mutex_unlock(&g_lock);
    if (known) return;
    if (bytes > kAllBytes) {
      WriteNote(kSnapshotRefused, 0, "an allocation of more than 256 MiB");
      return;
    }
  }
  if (!*synchronized) {
    // What is still running writes what is read: for a whole allocation all of it, for an index what this stream does.
    if (all && driver.context_synchronize != nullptr)
      driver.context_synchronize();
    else if (driver.stream_synchronize != nullptr)
      driver.stream_synchronize(stream);
    *synchronized = true;
  }
  if (all) {
    Copy(driver, base, bytes, false);
  } else {
    const size_t rest = bytes - (address - base);
    Copy(driver, address, rest < kIndexBytes ? rest : kIndexBytes, true);
  }
}

// Legal to read at all: nothing may be copied while the stream is captured into a graph.
bool IsCapturing(const SnapshotDriver& driver, abi::Handle stream) {
  uint32_t status = 0;
  return driver.stream_is_capturing == nullptr || driver.stream_is_capturing(stream, &status) != 0 ||
         status != 0;
}

}  // namespace

bool SnapshotsAreOn() { return SinkIsOpen() && TheSettings().snapshot != Snapshot::kNone; }

void SnapshotLaunch(const SnapshotDriver& driver, abi::Handle function, abi::Handle stream,
                    void** kernel_params, void** extra) {
  if (!SnapshotsAreOn() || driver.copy_to_host == nullptr || !WouldAdmitLaunch()) return;
  const Outside outside;
  if (IsCapturing(driver, stream)) return;
  const char* name = nullptr;
  if (driver.function_name != nullptr && driver.function_name(&name, function) != 0) name = nullptr;
  if (name == nullptr && !KnowsFunction(function))
    return;  // its name comes with the callback of its first launch
  const FunctionInfo* info = ResolveFunction(function, name);
  if (info == nullptr || !info->selected) return;
  uint8_t parameters[kMaxParameterBytes];
  size_t bytes = 0;
  if (GatherParameters(kernel_params, extra, *info, parameters, &bytes) != kNothingMissing) return;
  bool synchronized = false;
  ForEachWanted(*info, parameters, bytes,
                [&](uint64_t address) { Keep(driver, address, &synchronized, stream); });
}

void SnapshotGraphLaunch(const SnapshotDriver& driver, abi::Handle stream) {
  if (!SnapshotsAreOn() || driver.copy_to_host == nullptr) return;
  const Outside outside;
  if (IsCapturing(driver, stream)) return;
  constexpr size_t kMost = 4096;
  uint64_t addresses[kMost];
  size_t count = 0;
  pthread_mutex_lock(&g_lock);
  g_in_graphs.ForEach([&](uint64_t address, uint64_t*) {
    if (count < kMost) addresses[count++] = address;
  });
  pthread_mutex_unlock(&g_lock);
  bool synchronized = false;
  for (size_t i = 0; i < count; ++i) Keep(driver, addresses[i], &synchronized, stream);
}

void NoteNode(const FunctionInfo& function, const uint8_t* parameters, size_t bytes) {
  if (!SnapshotsAreOn()) return;
  ForEachWanted(function, parameters, bytes, [](uint64_t address) {
    pthread_mutex_lock(&g_lock);
    g_in_graphs.Set(address, 1);
    pthread_mutex_unlock(&g_lock);
  });
}

void NoteAllocation(uint64_t address) {
  if (!SnapshotsAreOn()) return;
  pthread_mutex_lock(&g_lock);
  if (g_whole.Find(address) != nullptr) g_whole.Set(address, 0);
  pthread_mutex_unlock(&g_lock);
}

void AbandonSnapshots() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  g_last_hash.Abandon();
  g_whole.Abandon();
  g_in_graphs.Abandon();
}

}  // namespace heddle::capture
