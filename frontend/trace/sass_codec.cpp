#include "frontend/trace/sass_codec.h"

#include <fmt/format.h>

#include <map>

#include "frontend/trace/payload.h"
#include "frontend/trace/payload.pb.h"

namespace heddle::trace {
namespace {

constexpr auto kLastOperandKind = static_cast<uint32_t>(isa::OperandKind::kProgramCounter);

// Numbers in the order of first use.
class NameTable {
 public:
  template <typename Enum>
  uint32_t Of(Enum value) {
    const auto [found, inserted] =
        index_.emplace(static_cast<uint32_t>(value), static_cast<uint32_t>(names_.size()));
    if (inserted) names_.emplace_back(Name(value));
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<uint32_t, uint32_t> index_;
  std::vector<std::string> names_;
};

uint32_t Pack(const isa::Control& c) {
  return c.stall | uint32_t{c.yield} << 4 | uint32_t{c.write_barrier} << 5 | uint32_t{c.read_barrier} << 8 |
         uint32_t{c.wait_mask} << 11 | uint32_t{c.reuse} << 17;
}

isa::Control Unpack(uint32_t bits) {
  isa::Control c;
  c.stall = bits & 15;
  c.yield = (bits >> 4) & 1;
  c.write_barrier = (bits >> 5) & 7;
  c.read_barrier = (bits >> 8) & 7;
  c.wait_mask = (bits >> 11) & 63;
  c.reuse = (bits >> 17) & 15;
  return c;
}

void EncodeOperand(const isa::Operand& in, pb::StoredSass::Operand* out) {
  out->set_kind(static_cast<uint32_t>(in.kind));
  out->set_reg(in.reg);
  out->set_width(in.width);
  out->set_uniform_reg(in.uniform_reg);
  out->set_descriptor_reg(in.descriptor);
  out->set_scale(in.scale);
  out->set_bank(in.bank);
  out->set_is_destination(in.is_destination);
  out->set_flags(in.flags);
  out->set_value(in.value);
}

bool DecodeOperand(const pb::StoredSass::Operand& in, isa::Operand* out) {
  for (const uint32_t byte :
       {in.reg(), in.width(), in.uniform_reg(), in.descriptor_reg(), in.scale(), in.bank()})
    if (byte > 255) return false;
  if (in.kind() > kLastOperandKind || in.flags() > isa::kAllOperandFlags) return false;
  out->kind = static_cast<isa::OperandKind>(in.kind());
  out->reg = static_cast<uint8_t>(in.reg());
  out->width = static_cast<uint8_t>(in.width());
  out->uniform_reg = static_cast<uint8_t>(in.uniform_reg());
  out->descriptor = static_cast<uint8_t>(in.descriptor_reg());
  out->scale = static_cast<uint8_t>(in.scale());
  out->bank = static_cast<uint8_t>(in.bank());
  out->is_destination = in.is_destination();
  out->flags = in.flags();
  out->value = in.value();
  return true;
}

struct Vocabulary {
  std::vector<isa::Op> ops;
  std::vector<isa::Mod> mods;
};

Result<Vocabulary> ReadVocabulary(const pb::StoredSass& stored, const std::string& place) {
  Vocabulary words;
  for (const std::string& name : stored.mnemonic()) {
    const std::optional<isa::Op> op = isa::OpFromName(name);
    if (!op)
      return Error{ExitCode::kTrace, place, fmt::format("unknown mnemonic '{}'", name),
                   "this heddle is older than the trace: update it"};
    words.ops.push_back(*op);
  }
  for (const std::string& name : stored.modifier()) {
    const std::optional<isa::Mod> mod = isa::ModFromName(name);
    if (!mod)
      return Error{ExitCode::kTrace, place, fmt::format("unknown modifier '{}'", name),
                   "this heddle is older than the trace: update it"};
    words.mods.push_back(*mod);
  }
  return words;
}

bool DecodeInstruction(const pb::StoredSass::Instruction& in, const Vocabulary& words,
                       isa::Instruction* out) {
  if (in.op() >= words.ops.size() || in.guard() > 7 || in.control() >= 1u << 21) return false;
  if (in.modifier_size() > isa::kMaxModifiers || in.operand_size() > isa::kMaxOperands) return false;
  out->op = words.ops[in.op()];
  out->guard = static_cast<uint8_t>(in.guard());
  out->guard_negated = in.guard_negated();
  out->guard_uniform = in.guard_uniform();
  out->control = Unpack(in.control());
  out->modifier_count = static_cast<uint8_t>(in.modifier_size());
  for (int m = 0; m < in.modifier_size(); ++m) {
    if (in.modifier(m) >= words.mods.size()) return false;
    out->modifiers[static_cast<size_t>(m)] = words.mods[in.modifier(m)];
  }
  out->operand_count = static_cast<uint8_t>(in.operand_size());
  for (int o = 0; o < in.operand_size(); ++o)
    if (!DecodeOperand(in.operand(o), &out->operands[static_cast<size_t>(o)])) return false;
  out->encoding = {in.encoding_low(), in.encoding_high()};
  return true;
}

}  // namespace

std::string EncodeSass(const isa::KernelCode& code) {
  pb::StoredSass stored;
  NameTable mnemonics;
  NameTable modifiers;
  stored.set_name(code.name);
  stored.set_sm_version(code.sm_version);
  for (const isa::Instruction& in : code.instructions) {
    pb::StoredSass::Instruction* out = stored.add_instruction();
    out->set_op(mnemonics.Of(in.op));
    out->set_guard(in.guard);
    out->set_guard_negated(in.guard_negated);
    out->set_guard_uniform(in.guard_uniform);
    out->set_control(Pack(in.control));
    for (size_t m = 0; m < in.modifier_count; ++m) out->add_modifier(modifiers.Of(in.modifiers[m]));
    for (size_t o = 0; o < in.operand_count; ++o) EncodeOperand(in.operands[o], out->add_operand());
    out->set_encoding_low(in.encoding[0]);
    out->set_encoding_high(in.encoding[1]);
  }
  stored.set_no_control_bits(!code.has_control_bits);
  for (const std::string& name : mnemonics.names()) stored.add_mnemonic(name);
  for (const std::string& name : modifiers.names()) stored.add_modifier(name);
  return Serialize(stored);
}

Result<isa::KernelCode> DecodeSass(std::string_view bytes, const std::string& place) {
  const Error damaged{ExitCode::kTrace, place, "the decoded SASS cannot be read", "build the trace again"};
  pb::StoredSass stored;
  if (bytes.size() > INT32_MAX || !stored.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return damaged;
  HEDDLE_ASSIGN_OR_RETURN(const Vocabulary words, ReadVocabulary(stored, place));
  isa::KernelCode code;
  code.name = stored.name();
  code.sm_version = stored.sm_version();
  code.has_control_bits = !stored.no_control_bits();
  code.instructions.resize(static_cast<size_t>(stored.instruction_size()));
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    isa::Instruction& out = code.instructions[i];
    out.pc = static_cast<uint32_t>(i * isa::kInstructionBytes);
    if (!DecodeInstruction(stored.instruction(static_cast<int>(i)), words, &out)) return damaged;
  }
  return code;
}

}  // namespace heddle::trace
