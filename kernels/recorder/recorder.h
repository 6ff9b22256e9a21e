// A process without a GPU in which a framework's own host code prepares its launches: stand-ins for the CUDA runtime and driver
// (cuda.cpp) and for the C interface of libtorch that extensions of the stable ABI use (torch.cpp). Nothing is computed: device
// memory is a range of addresses that nobody may touch, a launch is handed to a callback with its parameters.
// builder/recorder.py compiles these files into one library, loads it under the names of the libraries that it stands for, and
// turns what it is told into a launch description.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::recorder {

// What a launch was asked for. Parameters are pointers, one for each; the cubin knows their sizes.
struct LaunchRecord {
  const char* kernel;  // mangled name; "?" where nothing registered the function
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3];
  uint32_t dynamic_shared_bytes;
  uint32_t programmatic;  // may start before the launch in front of it has finished
  uint32_t cooperative;
  void** parameters;
};

// `source` is host memory, or null for a fill with `value`.
struct WriteRecord {
  uint64_t destination;
  const void* source;
  uint64_t bytes;
  uint32_t value;
};

struct Device {
  int32_t major;
  int32_t minor;
  int32_t multiprocessors;
  int32_t shared_bytes_per_block;           // with opt-in
  int32_t shared_bytes_per_multiprocessor;
  int32_t registers_per_multiprocessor;
  int32_t threads_per_multiprocessor;
  int32_t l2_bytes;
};

// The 128 bytes that a recorded tensor map holds: the arguments of cuTensorMapEncodeTiled behind a mark by which they are found in
// parameters. Numbers of the enumerations are CUDA's. builder/recorder.py unpacks it.
struct RecordedTensorMap {
  char mark[8];  // "HeddleTM"
  uint64_t address;
  uint64_t size[5];
  uint64_t stride_bytes[4];
  uint16_t box[5];
  uint8_t element_stride[5];
  uint8_t element;
  uint8_t rank;
  uint8_t interleave;
  uint8_t swizzle;
  uint8_t promotion;
  uint8_t fill;
  uint8_t unused[19];
};
static_assert(sizeof(RecordedTensorMap) == 128);

inline constexpr char kTensorMapMark[8] = {'H', 'e', 'd', 'd', 'l', 'e', 'T', 'M'};

// Device memory: addresses, 4 KiB apart at least, that nothing is mapped at. The callback hears of every allocation.
uint64_t Allocate(uint64_t bytes);
void Write(const WriteRecord& write);
bool IsDevice(uint64_t address);

}  // namespace heddle::recorder

extern "C" {
void heddle_set_device(const heddle::recorder::Device* device);
void heddle_on_launch(void (*callback)(const heddle::recorder::LaunchRecord*));
void heddle_on_write(void (*callback)(const heddle::recorder::WriteRecord*));
void heddle_on_allocation(void (*callback)(uint64_t address, uint64_t bytes));
uint64_t heddle_allocate(uint64_t bytes);
// dlopen with lazy binding: what the library needs and nobody calls may be missing. Null or the error's text.
const char* heddle_load(const char* path);
}
