#include "sim/isa/opcode.h"

#include <array>
#include <string>
#include <unordered_map>

namespace heddle::isa {
namespace {

constexpr auto kOpNames = std::to_array<std::string_view>({
#define HEDDLE_OPCODE(name, pipe) #name,
#include "sim/isa/opcodes.def"
#undef HEDDLE_OPCODE
});

constexpr auto kOpPipes = std::to_array<Pipe>({
#define HEDDLE_OPCODE(name, pipe) Pipe::k##pipe,
#include "sim/isa/opcodes.def"
#undef HEDDLE_OPCODE
});

constexpr auto kModNames = std::to_array<std::string_view>({
#define HEDDLE_MODIFIER(text) #text,
#include "sim/isa/modifiers.def"
#undef HEDDLE_MODIFIER
});

constexpr auto kPipeNames = std::to_array<std::string_view>(
    {"alu", "fma", "fp16", "fp64", "xu", "tensor", "uniform", "cbu", "adu", "lsu", "tma", "none"});
static_assert(kPipeNames.size() == kPipeCount);

template <typename Enum, size_t N>
std::optional<Enum> Find(const std::array<std::string_view, N>& names, std::string_view text) {
  static const auto index = [&names] {
    std::unordered_map<std::string_view, Enum> map;
    for (size_t i = 0; i < N; ++i) map.emplace(names[i], static_cast<Enum>(i));
    return map;
  }();
  const auto it = index.find(text);
  return it == index.end() ? std::nullopt : std::optional<Enum>(it->second);
}

}  // namespace

std::string_view Name(Op op) { return kOpNames[static_cast<size_t>(op)]; }
std::string_view Name(Mod mod) { return kModNames[static_cast<size_t>(mod)]; }
std::string_view Name(Pipe pipe) { return kPipeNames[static_cast<size_t>(pipe)]; }
Pipe PipeOf(Op op) { return kOpPipes[static_cast<size_t>(op)]; }
std::optional<Op> OpFromName(std::string_view mnemonic) { return Find<Op>(kOpNames, mnemonic); }
std::optional<Mod> ModFromName(std::string_view text) { return Find<Mod>(kModNames, text); }

}  // namespace heddle::isa
