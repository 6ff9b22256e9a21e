// Constant bank 0: what the driver writes for each launch, and the parameters behind it. NVIDIA does not
// document the layout; it was read off compiled kernels of every architecture (the words that they load).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/types.h"

namespace heddle::emulator {

struct Bank0Contents {
  uint32_t sm_version = 80;
  uint32_t size_bytes = 0;  // of the bank, parameters included
  uint32_t param_base = 0;
  uint64_t address = 0;  // of the bank in device memory
  Dim3 grid;
  Dim3 block;
  Dim3 cluster;
  bool is_cluster_launch = false;
  uint32_t stack_pointer = 0;
  uint32_t shared_bytes = 0;
  uint64_t shared_window = 0;  // generic addresses
  uint64_t local_window = 0;
  std::span<const std::byte> parameters;
};

std::vector<uint8_t> MakeBank0(const Bank0Contents& contents);

}  // namespace heddle::emulator
