#include "tools/toolchain/toolchain.h"

#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"

namespace heddle::toolchain {
namespace {

trace::ModuleFunction Describe(const sass::CubinKernel& kernel) {
  trace::ModuleFunction out;
  trace::Function& function = out.function;
  function.name = kernel.name;
  for (const sass::KernelParameter& parameter : kernel.params)
    function.parameters.push_back({parameter.ordinal, parameter.offset, parameter.size_bytes});
  function.parameter_bytes = kernel.param_bytes;
  function.registers = kernel.registers;
  function.static_shared_bytes = kernel.static_shared_bytes;
  function.local_bytes = kernel.local_bytes;
  function.barriers = kernel.barriers;
  if (kernel.max_block) function.max_threads = static_cast<uint32_t>(kernel.max_block->Count());
  out.required_block = kernel.required_block;
  out.cluster = kernel.cluster;
  return out;
}

Result<trace::ModuleContents> ReadModule(std::span<const std::byte> bytes, const std::string& place) {
  HEDDLE_ASSIGN_OR_RETURN(const sass::Cubin cubin, sass::ReadCubin(bytes, place));
  trace::ModuleContents contents;
  contents.sm_version = cubin.sm_version;
  for (const sass::CubinKernel& kernel : cubin.kernels) contents.functions.push_back(Describe(kernel));
  return contents;
}

// One run of the disassembler for all functions.
Result<std::vector<isa::KernelCode>> Decode(std::span<const std::byte> bytes,
                                            const std::vector<std::string>& functions,
                                            const std::string& place) {
  HEDDLE_ASSIGN_OR_RETURN(const sass::Cubin cubin, sass::ReadCubin(bytes, place));
  HEDDLE_ASSIGN_OR_RETURN(const std::string nvdisasm, sass::FindDisassembler());
  HEDDLE_ASSIGN_OR_RETURN(const std::string json, sass::RunDisassembler(nvdisasm, {"-json"}, bytes, place));
  std::vector<isa::KernelCode> codes;
  for (const std::string& name : functions) {
    const sass::CubinKernel* kernel = cubin.FindKernel(name);
    if (kernel == nullptr)
      return Error{ExitCode::kTrace, place, "the cubin has no kernel " + name, "build the trace again"};
    HEDDLE_ASSIGN_OR_RETURN(isa::KernelCode code,
                            sass::DecodeListing(json, *kernel, cubin.sm_version, place));
    codes.push_back(std::move(code));
  }
  return codes;
}

}  // namespace

trace::Toolchain Default() { return {ReadModule, Decode, sass::kDecoderVersion, CompileCuda}; }

}  // namespace heddle::toolchain
