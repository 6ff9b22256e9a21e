#include "frontend/emulator/loaded_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace heddle::emulator {

Result<std::unique_ptr<LoadedModule>> LoadedModule::Load(sass::Cubin cubin, DeviceMemory& memory) {
  std::unique_ptr<LoadedModule> module(new LoadedModule(std::move(cubin), memory));
  HEDDLE_RETURN_IF_ERROR(module->Place());
  return module;
}

LoadedModule::~LoadedModule() {
  for (const uint64_t address : allocated_) memory_->Free(address);
}

Result<uint64_t> LoadedModule::Allocate(BufferSpec spec) {
  HEDDLE_ASSIGN_OR_RETURN(const uint64_t address, memory_->Allocate(std::move(spec)));
  allocated_.push_back(address);
  return address;
}

Status LoadedModule::Place() {
  for (const sass::CubinKernel& kernel : cubin_.kernels) {
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t address,
                            Allocate({.name = "code of " + kernel.name, .size_bytes = kernel.code.size()}));
    code_addresses_[kernel.code_section] = address;
  }
  for (const sass::DataSection& section : cubin_.data) {
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t address,
                            Allocate({.name = section.name, .size_bytes = section.size_bytes}));
    data_addresses_.push_back(address);
  }
  for (size_t i = 0; i < cubin_.data.size(); ++i) {
    std::vector<std::byte> bytes = cubin_.data[i].bytes;
    if (bytes.empty() && cubin_.data[i].relocations.empty()) continue;
    bytes.resize(cubin_.data[i].size_bytes);
    HEDDLE_RETURN_IF_ERROR(Relocate(cubin_.data[i].relocations, bytes));
    HEDDLE_RETURN_IF_ERROR(memory_->Write(data_addresses_[i], bytes));
  }
  constant3_ = cubin_.constant3.bytes;
  HEDDLE_RETURN_IF_ERROR(Relocate(cubin_.constant3.relocations, constant3_));
  constant4_ = cubin_.constant4.bytes;
  HEDDLE_RETURN_IF_ERROR(Relocate(cubin_.constant4.relocations, constant4_));
  for (const sass::CubinKernel& kernel : cubin_.kernels) {
    std::vector<std::byte>& bytes = constant2_[kernel.code_section] = kernel.constant2.bytes;
    HEDDLE_RETURN_IF_ERROR(Relocate(kernel.constant2.relocations, bytes));
  }
  return Ok();
}

Status LoadedModule::Relocate(const std::vector<sass::Relocation>& relocations,
                              std::vector<std::byte>& bytes) const {
  for (const sass::Relocation& r : relocations) {
    uint64_t address = r.addend;
    if (r.target == sass::Relocation::Target::kData) {
      if (r.data_index >= data_addresses_.size())
        return Error{ExitCode::kTrace, cubin_.place,
                     "a relocation names a section that is not there: " + r.symbol, ""};
      address += data_addresses_[r.data_index];
    } else {
      const auto code = code_addresses_.find(r.code_section);
      if (code == code_addresses_.end())
        return Error{ExitCode::kTrace, cubin_.place, "a relocation names code that is not there: " + r.symbol,
                     "compile the kernel with everything that it calls"};
      address += code->second;
    }
    address >>= r.shift_bits;
    if (r.size_bytes > sizeof address || r.offset > bytes.size() || bytes.size() - r.offset < r.size_bytes)
      return Error{ExitCode::kTrace, cubin_.place,
                   fmt::format("a relocation at 0x{:x} lies outside its section", r.offset), ""};
    std::memcpy(bytes.data() + r.offset, &address, r.size_bytes);
  }
  return Ok();
}

const sass::GlobalVariable* LoadedModule::FindVariable(std::string_view name) const {
  const auto it = std::find_if(cubin_.variables.begin(), cubin_.variables.end(),
                               [&](const sass::GlobalVariable& variable) { return variable.name == name; });
  return it == cubin_.variables.end() ? nullptr : &*it;
}

Result<uint64_t> LoadedModule::AddressOf(std::string_view variable) const {
  const sass::GlobalVariable* found = FindVariable(variable);
  if (found == nullptr || found->space != sass::GlobalVariable::Space::kGlobal ||
      found->data_index >= data_addresses_.size())
    return Error{ExitCode::kTrace, cubin_.place, fmt::format("there is no __device__ variable {}", variable),
                 ""};
  return data_addresses_[found->data_index] + found->offset;
}

Status LoadedModule::SetConstant(std::string_view variable, std::span<const std::byte> bytes) {
  const sass::GlobalVariable* found = FindVariable(variable);
  if (found == nullptr || found->space != sass::GlobalVariable::Space::kConstant)
    return Error{ExitCode::kTrace, cubin_.place,
                 fmt::format("there is no __constant__ variable {}", variable), ""};
  if (bytes.size() > found->size_bytes || found->offset > constant3_.size() ||
      constant3_.size() - found->offset < bytes.size())
    return Error{
        ExitCode::kTrace, cubin_.place,
        fmt::format("{} bytes do not fit variable {} of {}", bytes.size(), variable, found->size_bytes), ""};
  std::copy(bytes.begin(), bytes.end(), constant3_.begin() + static_cast<std::ptrdiff_t>(found->offset));
  return Ok();
}

std::vector<std::byte> LoadedModule::Constant2(const sass::CubinKernel& kernel) const {
  const auto it = constant2_.find(kernel.code_section);
  return it == constant2_.end() ? std::vector<std::byte>{} : it->second;
}

uint64_t LoadedModule::CodeAddress(const sass::CubinKernel& kernel) const {
  const auto it = code_addresses_.find(kernel.code_section);
  return it == code_addresses_.end() ? 0 : it->second;
}

}  // namespace heddle::emulator
