// A toolchain without NVIDIA's tools: one module of two kernels, whatever the cubin's bytes are.
#pragma once

#include "frontend/trace/build.h"
#include "tests/unit/sample_trace.h"

namespace heddle::trace {

inline Toolchain FakeToolchain() {
  Toolchain toolchain;
  toolchain.decoder_version = 7;
  toolchain.read_module = [](std::span<const std::byte>, const std::string&) -> Result<ModuleContents> {
    ModuleContents contents;
    contents.sm_version = 80;
    ModuleFunction scale;
    scale.function = {0, "_Z5scalePfS_fi", {{0, 0, 8}, {1, 8, 8}, {2, 16, 4}, {3, 20, 4}}, 24, 32, 0, 0, 0,
                      0};
    ModuleFunction by_struct;
    by_struct.function = {0, "_Z9by_struct6Params", {{0, 0, 32}}, 32, 16, 0, 0, 0, 0};
    by_struct.required_block = Dim3{64, 2, 1};
    ModuleFunction by_map;
    by_map.function = {0, "_Z6by_map9TensorMap", {{0, 0, 128}}, 128, 16, 0, 0, 0, 0};
    contents.functions = {scale, by_struct, by_map};
    return contents;
  };
  toolchain.decode = [](std::span<const std::byte>, const std::vector<std::string>& names,
                        const std::string&) -> Result<std::vector<isa::KernelCode>> {
    std::vector<isa::KernelCode> codes;
    for (const std::string& name : names) codes.push_back(SampleCode()), codes.back().name = name;
    return codes;
  };
  toolchain.compile_cuda = [](const CudaCompilation& c,
                              const std::string& place) -> Result<std::vector<std::byte>> {
    if (c.flags != std::vector<std::string>{"-O3"}) return Error{ExitCode::kTrace, place, "flags", "x"};
    return std::vector<std::byte>(4, std::byte{1});
  };
  return toolchain;
}

// A description that builds with it. Line numbers matter to the tests.
inline constexpr const char* kScaleDescription = R"text(doc: "y = 2 x"
target: "sm_80"
define: "n = 1000"
define: "ctas = min(ceil_div(n, 128), 2 * sm_count)"
module { cuda { file: "x.cu" flag: "-O3" } }
buffer { name: "x" type: f32 shape: ["n"] content { normal { seed: 1 } } }
buffer { name: "y" type: f32 shape: ["n"] content { zeros {} } }
launch {
  kernel: "scale"
  grid: ["ctas"]
  block: ["128"]
  parameter { name: "y" buffer: "y" }
  parameter { name: "x" buffer: "x" offset: "16" }
  parameter { name: "f" real: "2 * rsqrt(4)" }
  parameter { name: "n" int: "n - 4" }
}
check {
  op { out: "want" unary { x: "x" function: identity scale: "2" } }
  compare { buffer: "y" reference: "want" }
}
)text";

}  // namespace heddle::trace
