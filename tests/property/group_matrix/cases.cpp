#include "tests/property/group_matrix/cases.h"

#include <fmt/format.h>

namespace heddle::emulator::group_test {
namespace {

using isa::MatrixType;

std::vector<Case> EveryType() {
  using enum MatrixType;
  const MatrixType types[][3] = {{kF32, kBF16, kBF16}, {kF32, kF16, kF16},   {kF16, kF16, kF16},
                                 {kF32, kTF32, kTF32}, {kF32, kE4M3, kE4M3}, {kF32, kE4M3, kE5M2},
                                 {kF32, kE5M2, kE4M3}, {kF16, kE5M2, kE5M2}, {kF16, kE4M3, kE4M3},
                                 {kS32, kS8, kS8},     {kS32, kS8, kU8},     {kS32, kU8, kS8},
                                 {kS32, kU8, kU8},     {kS32, kB1, kB1}};
  const uint32_t columns[] = {8, 16, 24, 64, 32, 128, 96, 48};
  std::vector<Case> cases;
  for (const auto& [d, a, b] : types)
    for (const bool shared : {true, false})
      cases.push_back(
          {.d = d, .a = a, .b = b, .n = columns[cases.size() % std::size(columns)], .a_in_shared = shared});
  return cases;
}

uint32_t Registers(const Case& c) { return c.n / (c.d == MatrixType::kF16 ? 4 : 2); }

// "%3, %4, %5"
std::string Places(uint32_t first, uint32_t count) {
  std::string text;
  for (uint32_t i = 0; i < count; ++i) text += fmt::format("{}%{}", i == 0 ? "" : ", ", first + i);
  return text;
}

bool IsFloat(const Case& c) { return c.d != MatrixType::kS32; }

std::string Instruction(const Case& c) {
  const uint32_t registers = Registers(c);
  uint32_t next = registers;
  const std::string a = c.a_in_shared ? fmt::format("%{}", next) : "{" + Places(next, 4) + "}";
  next += c.a_in_shared ? 1 : 4;
  const uint32_t b = next++;
  const uint32_t scale = next;
  std::string immediates;
  if (IsFloat(c)) immediates += fmt::format(", {}, {}", c.negated_a ? -1 : 1, c.negated_b ? -1 : 1);
  if (isa::BitsOf(c.a) == 16) {
    if (c.a_in_shared) immediates += fmt::format(", {}", c.transposed_a ? 1 : 0);
    immediates += fmt::format(", {}", c.transposed_b ? 1 : 0);
  }
  const bool binary = c.a == MatrixType::kB1;
  return fmt::format(
      "{{ .reg .pred p; setp.ne.b32 p, %{}, 0; wgmma.mma_async.sync.aligned.m64n{}k{}{}.{}.{}.{}{} {{{}}}, "
      "{}, %{}, "
      "p{}; }}",
      scale, c.n, 256 / isa::BitsOf(c.a), c.saturates ? ".satfinite" : "", isa::Name(c.d), isa::Name(c.a),
      isa::Name(c.b), binary ? ".and.popc" : "", Places(0, registers), a, b, immediates);
}

std::string Kernel(const Case& c) {
  const uint32_t registers = Registers(c);
  const bool f32 = c.d == MatrixType::kF32;
  std::string outputs, inputs;
  for (uint32_t i = 0; i < registers; ++i)
    outputs += fmt::format("{}\"+{}\"(d[{}])", i == 0 ? "" : ", ", f32 ? "f" : "r", i);
  if (c.a_in_shared)
    inputs = "\"l\"(da)";
  else
    inputs = R"("r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]))";
  return fmt::format(
      R"(
extern "C" __global__ void {name}(const uint4* image, int units, const uint4* rows, {type}* out,
                                  unsigned long long da, unsigned long long db, int scale) {{
  extern __shared__ __align__(1024) uint4 shared[];
  for (int i = threadIdx.x; i < units; i += blockDim.x) shared[i] = image[i];
  asm volatile("fence.proxy.async;");
  __syncthreads();
  const unsigned long long base = static_cast<unsigned>(__cvta_generic_to_shared(shared)) >> 4;
  da += base;
  db += base;
  const uint4 four = rows[threadIdx.x];
  const unsigned a[4] = {{four.x, four.y, four.z, four.w}};
  {type} d[{count}];
  for (int i = 0; i < {count}; ++i) d[i] = out[threadIdx.x * {count} + i];
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{instruction}" : {outputs} : {inputs}, "l"(db), "r"(scale));
  asm volatile("wgmma.commit_group.sync.aligned;");
  {race}
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < {count}; ++i) out[threadIdx.x * {count} + i] = d[i];
}}
)",
      fmt::arg("name", NameOf(c)), fmt::arg("type", f32 ? "float" : "unsigned"), fmt::arg("count", registers),
      fmt::arg("instruction", Instruction(c)), fmt::arg("outputs", outputs), fmt::arg("inputs", inputs),
      fmt::arg("race", c.overwrites
                           ? "for (int i = threadIdx.x; i < units; i += blockDim.x) shared[i] = uint4{};"
                           : ""));
}

}  // namespace

std::vector<Case> Cases() {
  using enum MatrixType;
  std::vector<Case> cases = EveryType();
  cases.push_back({.n = 256});
  cases.push_back({.n = 64, .transposed_b = true});
  cases.push_back({.n = 32, .transposed_a = true});
  cases.push_back({.n = 128, .transposed_a = true, .transposed_b = true});
  cases.push_back({.a = kF16, .b = kF16, .n = 64, .a_in_shared = false, .transposed_b = true});
  cases.push_back({.n = 8, .negated_a = true});
  cases.push_back(
      {.a = kTF32, .b = kTF32, .n = 8, .a_in_shared = false, .negated_a = true, .negated_b = true});
  cases.push_back({.a = kE4M3, .b = kE4M3, .n = 8, .negated_b = true});
  cases.push_back({.d = kS32, .a = kS8, .b = kS8, .n = 8, .saturates = true});
  cases.push_back({.n = 8, .overwrites = true});
  return cases;
}

std::string NameOf(const Case& c) {
  return fmt::format("{}_{}_{}_n{}_{}s{}{}{}{}{}{}", isa::Name(c.d), isa::Name(c.a), isa::Name(c.b), c.n,
                     c.a_in_shared ? 's' : 'r', c.transposed_a ? "_tnspA" : "",
                     c.transposed_b ? "_tnspB" : "", c.negated_a ? "_negA" : "", c.negated_b ? "_negB" : "",
                     c.saturates ? "_sat" : "", c.overwrites ? "_race" : "");
}

std::string SourceOf(const std::vector<Case>& cases) {
  std::string source;
  for (const Case& c : cases) source += Kernel(c);
  return source;
}

}  // namespace heddle::emulator::group_test
