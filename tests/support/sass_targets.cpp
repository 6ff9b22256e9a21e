#include "tests/support/sass_targets.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/line_table.h"
#include "sim/base/check.h"
#include "sim/isa/registers.h"

namespace heddle::testing {
namespace {

constexpr size_t kWordBytes = 16;

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Require(bool condition) { HEDDLE_CHECK(condition, "fuzz", 0, "a property of accepted input"); }

// What holds of every decoded instruction, whatever it was decoded from.
void CheckInstruction(const isa::Instruction& instruction) {
  Require(instruction.operand_count <= isa::kMaxOperands);
  Require(instruction.modifier_count <= isa::kMaxModifiers);
  const isa::RegisterUse use = isa::RegistersOf(instruction);
  Require(!use.reads.r.test(isa::kZeroRegister) && !use.writes.r.test(isa::kZeroRegister));
  Require(!use.reads.p.test(isa::kTruePredicate) && !use.writes.p.test(isa::kTruePredicate));
  static_cast<void>(isa::EffectOf(instruction));
  Require(!isa::ToString(instruction).empty());
}

bool Decode(std::string_view listing, const sass::CubinKernel& kernel) {
  bool decoded = false;
  for (const uint32_t sm_version : {80u, 100u}) {
    const auto code = sass::DecodeListing(listing, kernel, sm_version, "fuzz");
    if (!code.ok()) {
      Require(!code.error().message.empty());
      continue;
    }
    decoded = true;
    for (const isa::Instruction& instruction : code->instructions) CheckInstruction(instruction);
  }
  return decoded;
}

sass::CubinKernel KernelOf(std::span<const std::byte> code) {
  sass::CubinKernel kernel;
  kernel.name = "k";
  kernel.functions = {{"k", 0, 16}, {"$helper", 0, 16}};
  kernel.code.assign(code.begin(), code.end());
  return kernel;
}

}  // namespace

bool TryCubin(std::span<const std::byte> bytes) {
  const auto cubin = sass::ReadCubin(bytes, "fuzz");
  if (!cubin.ok()) {
    Require(!cubin.error().message.empty());
    return false;
  }
  for (const auto& kernel : cubin->kernels) {
    Require(kernel.entry_offset < kernel.code.size());
    for (const auto& function : kernel.functions)
      Require(uint64_t{function.offset} + function.size_bytes <= kernel.code.size());
    const auto lines = sass::ReadLineTable(bytes, "fuzz", kernel.code_section);
    // Sections of a damaged file may share a name: the table is that of the first, the kernel's may be another.
    Require(lines.ok() ? lines->size() <= bytes.size() / isa::kInstructionBytes
                       : !lines.error().message.empty());
  }
  for (const auto* bank : {&cubin->constant3, &cubin->constant4})
    for (const auto& relocation : bank->relocations)
      Require(relocation.offset + relocation.size_bytes <= bank->bytes.size());
  return true;
}

bool TryListing(std::span<const std::byte> bytes) {
  if (bytes.size() < kWordBytes) return false;
  const std::string_view line = Text(bytes.subspan(kWordBytes));
  const size_t space = std::min(line.find(' '), line.size());
  nlohmann::json instruction;
  instruction["opcode"] = line.substr(0, space);
  instruction["operands"] = line.substr(std::min(space + 1, line.size()));
  if (std::to_integer<int>(bytes[0]) % 8 == 5) instruction["predicate"] = "PR";
  const nlohmann::json document = {nlohmann::json::object(),
                                   {{{"function-name", "k"}, {"sass-instructions", {instruction}}}}};
  // Bytes that are no UTF-8 are replaced: nvdisasm prints none.
  const std::string text = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return Decode(text, KernelOf(bytes.first(kWordBytes)));
}

bool TryJson(std::span<const std::byte> bytes) {
  const std::array<std::byte, kWordBytes> code{};
  return Decode(Text(bytes), KernelOf(code));
}

}  // namespace heddle::testing
