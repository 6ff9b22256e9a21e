// Contents of device memory, read before a launch is passed on to the driver. Calls the driver: only from outside of CUPTI's
// callbacks, which is where the shim (shim.cpp) stands.
#pragma once

#include <cstdint>

#include "frontend/capture/inject/abi.h"

namespace heddle::capture {

// The driver's functions that reading needs; null: a driver without it.
struct SnapshotDriver {
  uint32_t (*stream_is_capturing)(abi::Handle stream, uint32_t* status) = nullptr;
  uint32_t (*context_synchronize)() = nullptr;
  uint32_t (*stream_synchronize)(abi::Handle stream) = nullptr;
  uint32_t (*copy_to_host)(void* destination, uint64_t source, size_t bytes) = nullptr;
  uint32_t (*address_range)(uint64_t* base, size_t* bytes, uint64_t address) = nullptr;
  uint32_t (*context_current)(abi::Handle* context) = nullptr;
  uint32_t (*function_name)(const char** name, abi::Handle function) = nullptr;
};

// Whether anything would be read: the mode asks for it and the process is recorded.
bool SnapshotsAreOn();

// Before a launch and before a graph's launch. Streams that capture are left alone.
void SnapshotLaunch(const SnapshotDriver& driver, abi::Handle function, abi::Handle stream,
                    void** kernel_params, void** extra);
void SnapshotGraphLaunch(const SnapshotDriver& driver, abi::Handle stream);

// From callbacks: a kernel became a node of a graph; an allocation is new, whatever was at its address before.
struct FunctionInfo;
void NoteNode(const FunctionInfo& function, const uint8_t* parameters, size_t bytes);
void NoteAllocation(uint64_t address);

void AbandonSnapshots();  // in a forked child

}  // namespace heddle::capture
