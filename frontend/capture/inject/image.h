// Cubins of this process: each kept once, in a file of its own beside the records, and what they say of their kernels' parameters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle::capture {

inline constexpr uint32_t kNoImage = 0xffffffff;
// Kernels take at most 32,764 bytes of parameters (PTX ISA 8.1); each slot is at least a byte.
inline constexpr uint32_t kMaxParameterBytes = 32764;

struct ParameterSlot {
  uint32_t offset;
  uint32_t size;
};
// Owned by whoever called ReadLayout; `slots` is malloc'ed.
struct ParameterLayout {
  ParameterSlot* slots = nullptr;  // by ordinal
  uint32_t count = 0;
  uint32_t bytes = 0;  // in all
};

// A new image, or the number of the equal one that is there. `bytes` need not outlive the call. kNoImage: no memory.
uint32_t AddImage(const void* bytes, size_t size);
// The module that CUPTI names `module` was made of the image.
void BindModule(uint32_t module, uint32_t image);
uint32_t ImageOfModule(uint32_t module);

// Of a kernel in an image. False: no such kernel, or it does not state its parameters. Any bytes are safe.
bool ReadLayout(uint32_t image, const char* kernel, ParameterLayout* layout);
// As above, for bytes in memory.
bool ReadLayout(const uint8_t* cubin, size_t size, const char* kernel, ParameterLayout* layout);

// The newest image that has the kernel; `others`: so has another one.
uint32_t FindImageWithKernel(const char* kernel, bool* others);

// In a forked child.
void AbandonImages();

}  // namespace heddle::capture
