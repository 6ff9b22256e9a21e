#include "frontend/sass/operand_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "frontend/sass/encoding.h"
#include "sim/isa/special_registers.h"

namespace heddle::sass {
namespace {

using isa::Op;
using isa::Operand;
using isa::OperandKind;

// Immediates of these are pairs of halves: two numbers in the text, one word in the encoding.
bool HasHalfPairs(Op op) {
  switch (op) {
    case Op::kHADD2:
    case Op::kHADD2_32I:
    case Op::kHFMA2:
    case Op::kHFMA2_32I:
    case Op::kHMUL2:
    case Op::kHMUL2_32I:
    case Op::kHMNMX2:
    case Op::kHSET2:
    case Op::kHSETP2:
      return true;
    default:
      return false;
  }
}

// Double-precision immediates: the field holds the upper half.
bool HasDoubleImmediate(const isa::Instruction& instruction) {
  switch (instruction.op) {
    case Op::kDADD:
    case Op::kDFMA:
    case Op::kDMNMX:
    case Op::kDMUL:
    case Op::kDSETP:
      return true;
    case Op::kF2F:
      return instruction.modifier_count > 1 && instruction.modifiers[1] == isa::Mod::kF64;
    case Op::kF2I:
    case Op::kFRND:
      return instruction.Has(isa::Mod::kF64);
    default:
      return false;
  }
}

bool NumbersAreTargets(Op op) {
  switch (op) {
    case Op::kBRA:
    case Op::kBSSY:
    case Op::kCALL:
    case Op::kJMP:
    case Op::kLEPC:
    case Op::kRET:
    case Op::kWARPSYNC:
      return true;
    default:
      return false;
  }
}

// A position in the text. Every Parse function leaves it behind what it took, or fails and leaves it
// anywhere.
class Parser {
 public:
  Parser(std::string_view text, const CubinKernel& kernel, isa::Instruction& instruction)
      : text_(text), kernel_(kernel), instruction_(instruction) {}

  std::optional<std::string> ParseAll();

 private:
  bool Eat(std::string_view token) {
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void SkipSpace() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool AtEnd() const { return text_.empty() || text_.front() == ',' || text_.front() == ' '; }
  bool Number(int64_t* value);
  bool Index(uint8_t limit, uint8_t* index);
  bool RegisterIndex(uint8_t* reg) { return EatZero() ? (*reg = isa::kZeroRegister, true) : Index(254, reg); }
  bool UniformIndex(uint8_t* reg) {
    return EatZero() ? (*reg = isa::kZeroUniformRegister, true) : Index(128, reg);
  }
  bool PredicateIndex(uint8_t* reg) { return Eat("T") ? (*reg = isa::kTruePredicate, true) : Index(7, reg); }
  bool EatZero() { return Eat("Z"); }

  bool ParseOperand(Operand& operand);
  bool ParseBody(Operand& operand);
  bool ParseBracketed(Operand& operand);
  bool ParseSuffixes(Operand& operand);
  bool ParseMemory(Operand& operand);
  bool ParseAddressTerm(Operand& operand);
  bool ParseConstant(Operand& operand, bool bindless);
  bool ParseUniformIn(Operand& operand, OperandKind kind);
  bool ParseTensorMemory(Operand& operand);
  bool ParseSpecialRegister(Operand& operand);
  bool ParseScoreboardSet(Operand& operand);
  bool ParseInteger(Operand& operand);
  bool ParseFloat(Operand& operand);
  bool ParseSymbol(Operand& operand);
  std::string_view Word();

  std::string_view text_;
  const CubinKernel& kernel_;
  isa::Instruction& instruction_;
  bool previous_was_float_ = false;
};

// "0x1f", "-0x1f", "7".
bool Parser::Number(int64_t* value) {
  const bool negative = Eat("-");
  const int base = Eat("0x") ? 16 : 10;
  uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), magnitude, base);
  if (error != std::errc()) return false;
  text_.remove_prefix(static_cast<size_t>(end - text_.data()));
  *value = static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
  return true;
}

bool Parser::Index(uint8_t limit, uint8_t* index) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
  if (error != std::errc() || number >= limit) return false;
  text_.remove_prefix(static_cast<size_t>(end - text_.data()));
  *index = static_cast<uint8_t>(number);
  return true;
}

// Letters, digits, _ and $ and @: a symbol.
std::string_view Parser::Word() {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' || c == '@';
  };
  const auto end = std::find_if_not(text_.begin(), text_.end(), is_part);
  const std::string_view word(text_.data(), static_cast<size_t>(end - text_.begin()));
  text_.remove_prefix(word.size());
  return word;
}

std::optional<std::string> Parser::ParseAll() {
  SkipSpace();
  while (!text_.empty()) {
    const std::string_view start = text_;
    Operand operand;
    if (!ParseOperand(operand)) return std::string(start);
    SkipSpace();
    if (operand.kind != OperandKind::kNone) {
      if (instruction_.operand_count == isa::kMaxOperands) return std::string(start);
      instruction_.operands[instruction_.operand_count++] = operand;
    }
    if (text_.empty()) break;
    // The two addresses of LDGSTS stand side by side before sm_90.
    if (!Eat(",") && text_.front() != '[') return std::string(start);
    SkipSpace();
    if (text_.empty()) return std::string(start);
  }
  return std::nullopt;
}

bool Parser::ParseOperand(Operand& operand) {
  const bool was_float = std::exchange(previous_was_float_, false);
  if (ParseFloat(operand)) {
    if (was_float && HasHalfPairs(instruction_.op)) {
      operand = {};  // the second half of a pair: the first took the whole word
      return true;
    }
    previous_was_float_ = true;
    return true;
  }
  if (text_.starts_with("0x") || text_.starts_with("-0x")) return ParseInteger(operand);
  if (Eat("-")) operand.flags |= isa::kNegate;
  if (Eat("~") || Eat("!")) operand.flags |= isa::kInvert;
  const bool absolute = Eat("|");
  if (absolute) operand.flags |= isa::kAbsolute;
  if (!ParseBody(operand)) return false;
  if (absolute && !Eat("|")) return false;
  return ParseSuffixes(operand);
}

bool Parser::ParseBody(Operand& operand) {
  if (ParseBracketed(operand)) return true;
  if (operand.kind != OperandKind::kNone) return false;  // an unfinished bracket
  const std::string_view start = text_;
  if (text_.starts_with("SR") && ParseSpecialRegister(operand)) return true;
  text_ = start;
  operand.kind = OperandKind::kUniformRegister;
  if (Eat("UR") && UniformIndex(&operand.reg) && (AtEnd() || text_.front() == '.' || text_.front() == '|'))
    return true;
  text_ = start;
  operand.kind = OperandKind::kRegister;
  if (Eat("R") && RegisterIndex(&operand.reg) && (AtEnd() || text_.front() == '.' || text_.front() == '|'))
    return true;
  text_ = start;
  operand.kind = OperandKind::kAllPredicates;
  if (Eat("PR") && AtEnd()) return true;
  text_ = start;
  if (Eat("UPR") && AtEnd()) {
    operand.flags |= isa::kIsUniform;
    return true;
  }
  text_ = start;
  operand.kind = OperandKind::kUniformPredicate;
  if (Eat("UP") && PredicateIndex(&operand.reg) && AtEnd()) return true;
  text_ = start;
  operand.kind = OperandKind::kPredicate;
  if (Eat("P") && PredicateIndex(&operand.reg) && AtEnd()) return true;
  text_ = start;
  operand.kind = OperandKind::kConvergenceBarrier;
  if (Eat("B") && Index(16, &operand.reg) && AtEnd()) return true;
  text_ = start;
  operand.kind = OperandKind::kScoreboard;
  if (Eat("SB") && Index(6, &operand.reg) && AtEnd()) return true;
  text_ = start;
  operand.reg = 8;
  if (Eat("gsb0") && AtEnd()) return true;
  text_ = start;
  operand.kind = OperandKind::kProgramCounter;
  operand.reg = isa::kNoRegister;
  if (Eat("Rpc.LO")) return true;
  if (Eat("Rpc.HI")) {
    operand.flags |= isa::kSelectsHigh;
    return true;
  }
  return ParseSymbol(operand);
}

// Everything that starts with a bracket, brace or a word and a bracket. Sets a kind even when it fails
// half-way.
bool Parser::ParseBracketed(Operand& operand) {
  if (Eat("[")) return ParseMemory(operand);
  if (Eat("{")) return ParseScoreboardSet(operand);
  if (Eat("cx[")) return ParseConstant(operand, true);
  if (Eat("c[")) return ParseConstant(operand, false);
  if (Eat("gdesc[")) return ParseUniformIn(operand, OperandKind::kMatrixDescriptor);
  if (Eat("idesc[")) return ParseUniformIn(operand, OperandKind::kInstructionDescriptor);
  if (Eat("tmem[")) return ParseTensorMemory(operand);
  if (!Eat("desc[")) return false;
  if (!ParseUniformIn(operand, OperandKind::kDescriptor)) return false;
  if (!Eat("[")) return true;
  operand.descriptor = std::exchange(operand.uniform_reg, isa::kNoRegister);
  return ParseMemory(operand);
}

bool Parser::ParseSuffixes(Operand& operand) {
  while (Eat(".")) {
    if (Eat("reuse"))
      operand.flags |= isa::kReuse;
    else if (Eat("H0_H0"))
      operand.flags |= isa::kSelectsLow;
    else if (Eat("H1_H1"))
      operand.flags |= isa::kSelectsHigh;
    else if (Eat("H0"))
      operand.flags |= isa::kSelectsLow;
    else if (Eat("H1"))
      operand.flags |= isa::kSelectsHigh;
    else if (Eat("F32x2.HI_LO"))
      operand.flags |= isa::kPackedF32;
    else if (Eat("F32"))
      operand.flags |= isa::kAsF32;
    else if (Eat("ROW"))
      operand.flags |= isa::kRow;
    else if (Eat("COL"))
      operand.flags |= isa::kColumn;
    else if (Eat("negA"))
      operand.flags |= isa::kNegatedA;
    else if (Eat("negB"))
      operand.flags |= isa::kNegatedB;
    else if (Eat("tnspA"))
      operand.flags |= isa::kTransposedA;
    else if (Eat("tnspB"))
      operand.flags |= isa::kTransposedB;
    else if (Eat("B")) {
      operand.flags |= isa::kByteSelect;
      if (!Index(4, &operand.scale)) return false;
    } else
      return false;
  }
  return AtEnd() || text_.front() == '[';
}

// Behind "[": terms joined by "+", up to "]".
bool Parser::ParseMemory(Operand& operand) {
  operand.kind = OperandKind::kMemory;
  do {
    if (!ParseAddressTerm(operand)) return false;
  } while (Eat("+"));
  return Eat("]");
}

bool Parser::ParseAddressTerm(Operand& operand) {
  if (Eat("UR")) {
    if (operand.uniform_reg != isa::kNoRegister || !UniformIndex(&operand.uniform_reg)) return false;
    if (Eat(".64")) operand.flags |= isa::kUniform64;
    return true;
  }
  if (Eat("R")) {
    if (operand.reg != isa::kNoRegister || !RegisterIndex(&operand.reg)) return false;
    while (Eat(".")) {
      if (Eat("64"))
        operand.flags |= isa::kAddress64;
      else if (Eat("U32"))
        operand.flags |= isa::kUnsigned32;
      else if (Eat("X16"))
        operand.scale = 16;
      else if (Eat("X4"))
        operand.scale = 4;
      else if (Eat("X8"))
        operand.scale = 8;
      else
        return false;
    }
    return true;
  }
  return Number(&operand.value);
}

// Behind "c[" or "cx[": "0x0][0x10]", "0x2][R3+0xc]", "UR4][0x10]".
bool Parser::ParseConstant(Operand& operand, bool bindless) {
  operand.kind = OperandKind::kConstant;
  if (bindless) {
    operand.flags |= isa::kBindless;
    if (!Eat("UR") || !UniformIndex(&operand.descriptor)) return false;
  } else {
    int64_t bank = 0;
    if (!Number(&bank) || bank < 0 || bank > 31) return false;
    operand.bank = static_cast<uint8_t>(bank);
  }
  if (!Eat("][")) return false;
  do {
    if (Eat("UR")) {
      operand.flags |= isa::kIsUniform;
      if (!UniformIndex(&operand.uniform_reg)) return false;
    } else if (Eat("R")) {
      if (!RegisterIndex(&operand.uniform_reg)) return false;
    } else if (!Number(&operand.value)) {
      return false;
    }
  } while (Eat("+"));
  return Eat("]");
}

bool Parser::ParseUniformIn(Operand& operand, OperandKind kind) {
  operand.kind = kind;
  return Eat("UR") && UniformIndex(&operand.uniform_reg) && Eat("]");
}

bool Parser::ParseTensorMemory(Operand& operand) {
  operand.kind = OperandKind::kTensorMemory;
  do {
    if (Eat("UR") ? !UniformIndex(&operand.uniform_reg) : !Number(&operand.value)) return false;
  } while (Eat("+"));
  return Eat("]");
}

bool Parser::ParseSpecialRegister(Operand& operand) {
  const auto reg = isa::SpecialRegisterFromName(Word());
  if (!reg) return false;
  operand.kind = OperandKind::kSpecialRegister;
  operand.value = static_cast<int64_t>(*reg);
  return true;
}

bool Parser::ParseScoreboardSet(Operand& operand) {
  operand.kind = OperandKind::kScoreboardSet;
  do {
    uint8_t index = 0;
    SkipSpace();
    if (!Index(6, &index)) return false;
    operand.value |= int64_t{1} << index;
  } while (Eat(","));
  return Eat("}");
}

bool Parser::ParseInteger(Operand& operand) {
  // WARPSYNC names lanes first and, when collective, a target behind them.
  const bool is_mask = instruction_.op == Op::kWARPSYNC && instruction_.operand_count == 0;
  const bool is_target = NumbersAreTargets(instruction_.op) && !is_mask;
  operand.kind = is_target ? OperandKind::kTarget : OperandKind::kImmediate;
  return Number(&operand.value) && AtEnd();
}

// A number without 0x, +INF, -QNAN and their like. Its value is in the encoding.
bool Parser::ParseFloat(Operand& operand) {
  std::string_view rest = text_;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest.starts_with("0x")) return false;
  if (rest.starts_with("INF") || rest.starts_with("QNAN") || rest.starts_with("SNAN")) {
    rest.remove_prefix(rest.front() == 'I' ? 3 : 4);
  } else {
    if (rest.empty() || std::isdigit(static_cast<unsigned char>(rest.front())) == 0) return false;
    const auto is_part = [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == 'e' || c == '+' || c == '-';
    };
    while (!rest.empty() && is_part(rest.front())) rest.remove_prefix(1);
  }
  text_ = rest;
  if (!AtEnd()) return false;
  operand.kind = OperandKind::kImmediate;
  const uint64_t bits = ImmediateOf(instruction_.encoding[0]);
  operand.value = static_cast<int64_t>(HasDoubleImmediate(instruction_) ? bits << 32 : bits);
  return true;
}

// A function of the section, as the target of a call or the place that a return is relative to.
bool Parser::ParseSymbol(Operand& operand) {
  if (!NumbersAreTargets(instruction_.op)) return false;
  const bool quoted = Eat("`(");
  const std::string_view name = Word();
  if (name.empty() || (quoted && !Eat(")"))) return false;
  operand.kind = OperandKind::kTarget;
  operand.reg = isa::kNoRegister;
  int matches = 0;
  for (const FunctionSymbol& function : kernel_.functions) {
    if (function.name != name) continue;
    operand.value = function.offset;
    ++matches;
  }
  // Linked files repeat the names of internal functions.
  const bool is_relative = instruction_.Has(isa::Mod::kREL);
  if (matches != 1 && is_relative) operand.value = RelativeTarget(instruction_);
  return matches == 1 ||
         (is_relative && operand.value >= 0 && static_cast<uint64_t>(operand.value) < kernel_.code.size());
}

}  // namespace

std::optional<std::string> ParseOperands(std::string_view text, const CubinKernel& kernel,
                                         isa::Instruction& instruction) {
  // For sm_80 code with an eviction priority, nvdisasm's JSON has the comma on the wrong side: "R4desc,[UR4][R18.64]".
  constexpr std::string_view kMisplaced = "desc,[";
  const size_t at = text.find(kMisplaced);
  if (at == std::string_view::npos) return Parser(text, kernel, instruction).ParseAll();
  std::string mended(text);
  mended.replace(at, kMisplaced.size(), ",desc[");
  return Parser(mended, kernel, instruction).ParseAll();
}

}  // namespace heddle::sass
