// Constant banks: LDC, ULDC, LDCU. A direct constant of whole words is a row that all warps share; narrow and
// indexed ones are read from the bank.
#include <fmt/format.h>

#include <cstring>

#include "frontend/emulator/access.h"
#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

constexpr uint32_t kBankShift = 24;
constexpr uint32_t kIndexed = 1u << 30;

// source 0: the words.
void RunMoveConstant(Context& c, const Lowered& l) {
  for (uint32_t k = 0; k < l.width; ++k) Blend(c.Destination(l, 0, k), c.Source(l, 0, k), c.lanes);
}

// source 0: index; imm: offset; the bank in flags.
void RunLoadConstant(Context& c, const Lowered& l) {
  const uint32_t bank = l.flags >> kBankShift & 15;
  const std::span<const uint8_t> bytes = c.launch->banks[bank];
  const uint32_t count = BytesPerLane(l);
  const Row index = c.Source(l, 0);
  const bool sign_extend = (l.flags & kSignExtends) != 0;
  if (c.step != nullptr && (l.flags & kIndexed)) {
    isa::MemoryAccess& access = BeginAccess(c, l, isa::MemorySpace::kConstant, isa::AccessKind::kLoad);
    access.lanes = c.executing;
    for (uint32_t i = 0; i < kWarpLanes; ++i)
      access.address[i] = c.memory->bank_address[bank] + (index.lane[i] + Low(l.imm));
  }
  if (l.flags & kDataSkipped) return;
  ForLanes(c.lanes, [&](uint32_t i) {
    const uint64_t at = uint64_t{index.lane[i]} + Low(l.imm);
    uint32_t words[4] = {};
    if (at + count <= bytes.size())
      std::memcpy(words, bytes.data() + at, count);
    else if (c.executing >> i & 1)
      c.issues->Report("out_of_bounds", l.index,
                       fmt::format("constant bank {} offset 0x{:x} of 0x{:x} bytes", bank, at, bytes.size()));
    words[0] = Extend(words[0], count, sign_extend);
    for (uint32_t k = 0; k < l.width; ++k) c.Destination(l, 0, k).lane[i] = words[k];
  });
}

}  // namespace

void LowerLdc(Lowering& w) {
  TakeWidth(w);
  w.Destination(0);
  const isa::Operand* operand = w.Peek();
  if (operand == nullptr || operand->kind != isa::OperandKind::kConstant)
    return w.Fail("the source is no constant");
  if (operand->Has(isa::kBindless) || operand->bank >= kConstantBanks)
    return w.Fail("an unknown constant bank");
  const bool indexed = operand->uniform_reg != isa::kNoRegister;
  const bool whole_words = (w.out.flags & kLogBytesMask) >= 2 && operand->value % 4 == 0;
  if (!indexed && whole_words) {
    isa::Operand direct = w.Next();
    w.out.source[0] = {w.pool.Constant(direct.bank, static_cast<uint32_t>(direct.value), w.out.width),
                       RowBase::kPool};
    w.out.run = &RunMoveConstant;
    return;
  }
  w.Next();
  w.out.flags |= uint32_t{operand->bank} << kBankShift;
  if (indexed) w.out.flags |= kIndexed;
  if (indexed)
    w.out.source[0].row = operand->Has(isa::kIsUniform) ? w.layout.UniformReadRow(operand->uniform_reg)
                                                        : w.layout.ReadRow(operand->uniform_reg);
  w.out.imm = Low(static_cast<uint64_t>(operand->value));
  w.out.run = &RunLoadConstant;
}

}  // namespace heddle::emulator
