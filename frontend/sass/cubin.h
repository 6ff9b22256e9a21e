// A cubin: the ELF file that holds the SASS of one GPU architecture. Reads what a launch needs; runs no tool.
//
// Both ABI variants (e_ident[8] 7 and 8) are read. The format is not documented by NVIDIA; what is read here
// was established on files of ptxas 11 to 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::sass {

struct KernelParameter {
  uint32_t ordinal = 0;
  uint32_t offset = 0;  // bytes from CubinKernel::param_base
  uint32_t size_bytes = 0;
  bool operator==(const KernelParameter&) const = default;
};

// An address that whoever places sections in memory must write into a bank or a data section.
struct Relocation {
  enum class Target : uint8_t {
    kData,  // address = start of Cubin::data[data_index] + addend
    kCode,  // address = start of the kernel's code section + addend; `symbol` names the function
  };
  uint64_t offset = 0;      // bytes from the start of the bank or section that is patched
  uint32_t size_bytes = 8;  // 8, or 4 for one half of the address
  uint32_t shift_bits = 0;  // 32 for the high half
  Target target = Target::kData;
  uint32_t data_index = 0;   // kData
  std::string code_section;  // kCode: name of the section, ".text.<kernel>"
  uint64_t addend = 0;       // the symbol's offset in its section included
  std::string symbol;
};

// Initialised or zeroed global memory (.nv.global.init, .nv.global) that all kernels of the module share.
struct DataSection {
  std::string name;
  uint64_t size_bytes = 0;
  uint32_t alignment = 1;
  std::vector<std::byte> bytes;  // size_bytes of them, or none: all zero
  std::vector<Relocation> relocations;
};

// A variable of the module, so that a launch description can set it by name.
struct GlobalVariable {
  enum class Space : uint8_t { kGlobal, kConstant };  // kConstant: in Cubin::constant3
  std::string name;
  Space space = Space::kGlobal;
  uint32_t data_index = 0;  // kGlobal: of Cubin::data
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct ConstantBank {
  std::vector<std::byte> bytes;
  std::vector<Relocation> relocations;
};

// A function in a kernel's code section, the kernel itself included.
struct FunctionSymbol {
  std::string name;
  uint32_t offset = 0;  // bytes from the start of the section
  uint32_t size_bytes = 0;
};

// What an indirect branch (BRX, BRXU) may jump to. Offsets from the start of the code section.
struct IndirectBranch {
  uint32_t offset = 0;
  std::vector<uint32_t> targets;
};

struct CubinKernel {
  std::string name;        // mangled
  uint32_t registers = 0;  // per thread
  // Static shared memory. On sm_90 and later it includes the 1024 bytes that are reserved at the window's
  // start: a kernel's own variables start at 0x400. Dynamic shared memory follows it.
  uint32_t static_shared_bytes = 0;
  uint32_t local_bytes = 0;  // stack of one thread: the largest of frame and minimum stack size
  uint32_t barriers = 0;     // named barriers in use, at most 16
  uint32_t param_base = 0;   // offset of the first parameter in constant bank 0
  uint32_t param_bytes = 0;
  uint32_t constant0_bytes = 0;           // size of constant bank 0, driver's words and parameters together
  std::vector<KernelParameter> params;    // by ordinal
  std::optional<Dim3> required_block;     // .reqntid
  std::optional<Dim3> max_block;          // .maxntid, as written: a product of more than 1024 never occurs
  std::optional<Dim3> cluster;            // of .reqnctapercluster
  bool explicit_cluster = false;          // the kernel must be launched with clusters
  std::string code_section;               // ".text.<kernel>"
  uint32_t entry_offset = 0;              // of the kernel in its section
  std::vector<std::byte> code;            // the section: the kernel and the functions that only it calls
  std::vector<FunctionSymbol> functions;  // by offset
  std::vector<IndirectBranch> indirect_branches;
  ConstantBank constant2;  // literals and branch tables
};

struct Cubin {
  std::string place;         // where it came from, for messages
  uint32_t sm_version = 0;   // 75, 80, 86, 89, 90, 100, 103, 120
  bool accelerated = false;  // sm_90a, sm_100a, ...: architecture-specific code
  uint32_t abi = 0;          // 7 or 8
  std::vector<CubinKernel> kernels;
  std::vector<DataSection> data;
  std::vector<GlobalVariable> variables;
  ConstantBank constant3;  // __constant__ variables
  ConstantBank constant4;  // addresses of globals

  // nullptr when there is none of this name.
  const CubinKernel* FindKernel(std::string_view name) const;
};

// Never crashes, whatever the bytes are; an error states `place` @ offset and has ExitCode::kTrace.
Result<Cubin> ReadCubin(std::span<const std::byte> bytes, std::string place);

Result<std::vector<std::byte>> ReadFileBytes(const std::string& path);

}  // namespace heddle::sass
