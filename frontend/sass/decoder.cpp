#include "frontend/sass/decoder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "frontend/sass/disassembler.h"
#include "frontend/sass/elf.h"
#include "frontend/sass/encoding.h"
#include "frontend/sass/operand_parser.h"
#include "frontend/sass/operand_shape.h"

namespace heddle::sass {
namespace {

using nlohmann::json;

// One element of "sass-instructions". Strings that are missing are empty.
struct Line {
  std::string_view opcode;
  std::string_view operands;
  std::string_view predicate;
};

std::string_view StringOf(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return {};
  return it->get_ref<const std::string&>();
}

// Decodes the lines of one function.
class FunctionDecoder {
 public:
  FunctionDecoder(const CubinKernel& kernel, uint32_t sm_version, std::string_view place)
      : kernel_(kernel), sm_version_(sm_version), place_(place) {}

  Result<isa::Instruction> Decode(uint32_t pc, const Line& line) const {
    isa::Instruction instruction;
    instruction.pc = pc;
    const auto low = ReadAt<uint64_t>(kernel_.code, pc);
    const auto high = ReadAt<uint64_t>(kernel_.code, uint64_t{pc} + 8);
    if (!low || !high) return ErrorAt(pc, line, "the listing is longer than the code");
    instruction.encoding = {*low, *high};
    instruction.control = ControlOf(*high);
    HEDDLE_RETURN_IF_ERROR(DecodeGuard(line, instruction));
    HEDDLE_RETURN_IF_ERROR(DecodeOpcode(line, instruction));
    if (const auto rest = ParseOperands(line.operands, kernel_, instruction))
      return ErrorAt(pc, line, fmt::format("operand not understood: \"{}\"", *rest));
    HEDDLE_RETURN_IF_ERROR(RestorePredicateFile(line, instruction));
    if (sm_version_ < 90) RestoreDescriptor(instruction);
    CompleteOperands(instruction);
    return instruction;
  }

  Error ErrorAt(uint32_t pc, const Line& line, std::string message) const {
    return {ExitCode::kTrace, fmt::format("{}: kernel {} @ pc {:#x}", place_, kernel_.name, pc),
            fmt::format("{} (in \"{} {}\")", message, line.opcode, line.operands), ""};
  }

 private:
  Status DecodeGuard(const Line& line, isa::Instruction& instruction) const {
    instruction.guard = GuardOf(instruction.encoding[0]);
    instruction.guard_negated = GuardIsNegated(instruction.encoding[0]);
    const std::string_view text = line.predicate;
    instruction.guard_uniform = text.starts_with("@UP") || text.starts_with("@!UP");
    return Ok();
  }

  Status DecodeOpcode(const Line& line, isa::Instruction& instruction) const {
    std::string_view rest = line.opcode;
    const auto next = [&rest] {
      const size_t dot = std::min(rest.find('.'), rest.size());
      const std::string_view part = rest.substr(0, dot);
      rest.remove_prefix(std::min(dot + 1, rest.size()));
      return part;
    };
    const auto op = isa::OpFromName(next());
    if (!op) return ErrorAt(instruction.pc, line, "opcode not known");
    instruction.op = *op;
    while (!rest.empty()) {
      const std::string_view part = next();
      const auto mod = isa::ModFromName(part);
      if (!mod) return ErrorAt(instruction.pc, line, fmt::format("modifier not known: {}", part));
      if (instruction.modifier_count == isa::kMaxModifiers)
        return ErrorAt(instruction.pc, line, "too many modifiers");
      instruction.modifiers[instruction.modifier_count++] = *mod;
    }
    return Ok();
  }

  // nvdisasm's JSON moves the operand PR of P2R into the predicate.
  Status RestorePredicateFile(const Line& line, isa::Instruction& instruction) const {
    if (line.predicate != "PR" && line.predicate != "UPR") return Ok();
    if (instruction.operand_count == 0 || instruction.operand_count == isa::kMaxOperands)
      return ErrorAt(instruction.pc, line, "PR without a destination");
    for (size_t i = instruction.operand_count++; i > 1; --i)
      instruction.operands[i] = instruction.operands[i - 1];
    isa::Operand file;
    file.kind = isa::OperandKind::kAllPredicates;
    if (line.predicate == "UPR") file.flags = isa::kIsUniform;
    instruction.operands[1] = file;
    return Ok();
  }

  // Before sm_90 nvdisasm prints [R2.64] for what it prints as desc[UR6][R2.64] later; the encoding is the
  // same.
  static void RestoreDescriptor(isa::Instruction& instruction) {
    constexpr uint64_t kUniformForm = 0x800;
    constexpr uint64_t kNone = 63;
    if (instruction.operand_count == 0 || (instruction.encoding[0] & kUniformForm) == 0) return;
    uint64_t field = 0;
    switch (instruction.op) {
      case isa::Op::kLD:
      case isa::Op::kLDG:
        field = instruction.encoding[0] >> 32 & 63;
        break;
      case isa::Op::kATOM:
      case isa::Op::kATOMG:
      case isa::Op::kLDGSTS:
      case isa::Op::kRED:
      case isa::Op::kST:
      case isa::Op::kSTG:
        field = instruction.encoding[1] & 63;
        break;
      default:
        return;
    }
    isa::Operand* address = nullptr;  // the last one: LDGSTS has its shared address first
    for (size_t i = 0; i < instruction.operand_count; ++i)
      if (instruction.operands[i].kind == isa::OperandKind::kMemory) address = &instruction.operands[i];
    if (address == nullptr || field == kNone || address->uniform_reg != isa::kNoRegister) return;
    address->descriptor = static_cast<uint8_t>(field);
  }

  const CubinKernel& kernel_;
  const uint32_t sm_version_;
  const std::string_view place_;
};

const json* FindFunction(const json& document, std::string_view name) {
  if (!document.is_array() || document.size() < 2 || !document[1].is_array()) return nullptr;
  for (const json& function : document[1])
    if (function.is_object() && StringOf(function, "function-name") == name) return &function;
  return nullptr;
}

Result<isa::KernelCode> DecodeDocument(const json& document, const CubinKernel& kernel, uint32_t sm_version,
                                       std::string_view place) {
  const auto bad_listing = [&](std::string message) {
    return Error{ExitCode::kTrace, fmt::format("{}: kernel {}", place, kernel.name), std::move(message),
                 "check that nvdisasm is of CUDA 12 or later and runs on this file by hand"};
  };
  const json* function = FindFunction(document, kernel.name);
  if (function == nullptr) return bad_listing("nvdisasm's listing has no such function");
  const auto lines = function->find("sass-instructions");
  if (lines == function->end() || !lines->is_array())
    return bad_listing("nvdisasm's listing has no instructions");
  if (lines->size() * isa::kInstructionBytes != kernel.code.size())
    return bad_listing(fmt::format("nvdisasm lists {} instructions, the section holds {}", lines->size(),
                                   kernel.code.size() / isa::kInstructionBytes));
  isa::KernelCode code;
  code.name = kernel.name;
  code.sm_version = sm_version;
  code.instructions.reserve(lines->size());
  const FunctionDecoder decoder(kernel, sm_version, place);
  for (const json& entry : *lines) {
    if (!entry.is_object()) return bad_listing("nvdisasm's listing holds something that is no instruction");
    const Line line{StringOf(entry, "opcode"), StringOf(entry, "operands"), StringOf(entry, "predicate")};
    const auto pc = static_cast<uint32_t>(code.instructions.size() * isa::kInstructionBytes);
    HEDDLE_ASSIGN_OR_RETURN(isa::Instruction instruction, decoder.Decode(pc, line));
    code.instructions.push_back(instruction);
  }
  return code;
}

}  // namespace

Result<isa::KernelCode> DecodeListing(std::string_view text, const CubinKernel& kernel, uint32_t sm_version,
                                      std::string_view place) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return Error{ExitCode::kTrace, std::string(place), "nvdisasm's output is not JSON",
                 "check that nvdisasm is of CUDA 12 or later and runs on this file by hand"};
  return DecodeDocument(document, kernel, sm_version, place);
}

Result<isa::KernelCode> DecodeKernel(std::span<const std::byte> cubin_bytes, const Cubin& cubin,
                                     std::string_view kernel_name, const std::string& nvdisasm) {
  const CubinKernel* kernel = cubin.FindKernel(kernel_name);
  if (kernel == nullptr)
    return Error{ExitCode::kTrace, cubin.place, fmt::format("no kernel {}", kernel_name),
                 "heddle sass FILE lists the kernels"};
  HEDDLE_ASSIGN_OR_RETURN(const std::string text,
                          RunDisassembler(nvdisasm, {"-json"}, cubin_bytes, cubin.place));
  return DecodeListing(text, *kernel, cubin.sm_version, cubin.place);
}

}  // namespace heddle::sass
