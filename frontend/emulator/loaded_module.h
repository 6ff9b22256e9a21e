// A cubin placed in device memory: its global variables, constant banks and code have addresses, relocations
// are applied. Shared by all launches of its kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/emulator/device_memory.h"
#include "frontend/sass/cubin.h"
#include "sim/base/result.h"

namespace heddle::emulator {

class LoadedModule {
 public:
  // `memory` must outlive the module, and the module every launch made from it.
  static Result<std::unique_ptr<LoadedModule>> Load(sass::Cubin cubin, DeviceMemory& memory);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  LoadedModule& operator=(const LoadedModule&) = delete;

  const sass::Cubin& cubin() const { return cubin_; }
  DeviceMemory& memory() const { return *memory_; }

  // Where a __device__ variable lies, or an error that lists nothing but its name.
  Result<uint64_t> AddressOf(std::string_view variable) const;
  // Sets bytes of a __constant__ variable. Launches made before keep what they saw.
  Status SetConstant(std::string_view variable, std::span<const std::byte> bytes);

  const std::vector<std::byte>& constant3() const { return constant3_; }
  const std::vector<std::byte>& constant4() const { return constant4_; }
  std::vector<std::byte> Constant2(const sass::CubinKernel& kernel) const;
  uint64_t CodeAddress(const sass::CubinKernel& kernel) const;

 private:
  LoadedModule(sass::Cubin cubin, DeviceMemory& memory) : cubin_(std::move(cubin)), memory_(&memory) {}
  Status Place();
  Result<uint64_t> Allocate(BufferSpec spec);
  Status Relocate(const std::vector<sass::Relocation>& relocations, std::vector<std::byte>& bytes) const;
  const sass::GlobalVariable* FindVariable(std::string_view name) const;

  sass::Cubin cubin_;
  DeviceMemory* memory_;
  std::vector<uint64_t> allocated_;
  std::vector<uint64_t> data_addresses_;                         // by index of Cubin::data
  std::map<std::string, uint64_t, std::less<>> code_addresses_;  // by section
  std::vector<std::byte> constant3_;
  std::vector<std::byte> constant4_;
  std::map<std::string, std::vector<std::byte>, std::less<>> constant2_;  // by code section
};

}  // namespace heddle::emulator
