// Bitwise logic, shifts, permutations, selections, moves and bit counts.
#include <algorithm>
#include <array>
#include <bit>

#include "frontend/emulator/lowering.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

inline uint32_t Bit(uint32_t mask, uint32_t i) { return mask >> i & 1; }

// A function of three bits as a polynomial over GF(2): f = XOR of the products whose coefficient is set. Evaluating it
// takes the same few operations for every look-up table.
struct Polynomial {
  explicit Polynomial(uint32_t table) {
    // Bit (a << 2 | b << 1 | c) of the table is f(a, b, c); the Moebius transform turns values into coefficients.
    for (uint32_t step = 1; step < 8; step <<= 1)
      for (uint32_t i = 0; i < 8; ++i)
        if ((i & step) != 0) table ^= (table >> (i - step) & 1) << i;
    for (uint32_t i = 0; i < 8; ++i) k[i] = (table >> i & 1) != 0 ? kAllLanes : 0;
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t bc = b & c;
    return k[0] ^ (k[1] & c) ^ (k[2] & b) ^ (k[3] & bc) ^
           (a & (k[4] ^ (k[5] & c) ^ (k[6] & b) ^ (k[7] & bc)));
  }
  uint32_t k[8];
};

// The common tables directly.
enum class Logic { kAnd, kOr, kXor, kAndOr, kOrAnd };

template <Logic kLogic>
void RunLogic(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* b = c.Source(l, 1).lane;
  const uint32_t* d = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) {
    if constexpr (kLogic == Logic::kAnd) return a[i] & b[i];
    if constexpr (kLogic == Logic::kOr) return a[i] | b[i];
    if constexpr (kLogic == Logic::kXor) return a[i] ^ b[i];
    if constexpr (kLogic == Logic::kAndOr) return (a[i] & b[i]) | d[i];
    return a[i] | (b[i] & d[i]);
  });
}

void RunLop3(Context& c, const Lowered& l) {
  const Polynomial f(Low(l.imm));
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* b = c.Source(l, 1).lane;
  const uint32_t* d = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return f(a[i], b[i], d[i]); });
}

// Predicate destination: the result is not zero, or the source predicate.
void RunLop3Predicate(Context& c, const Lowered& l) {
  const Polynomial f(Low(l.imm));
  const Row& a = c.Source(l, 0);
  const Row& b = c.Source(l, 1);
  const Row& d = c.Source(l, 2);
  Row result;
  for (uint32_t i = 0; i < kWarpLanes; ++i) result.lane[i] = f(a.lane[i], b.lane[i], d.lane[i]);
  const uint32_t other = c.SourcePredicate(l, 0);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
  c.WritePredicate(l, 0, other | MaskOf([&](uint32_t i) { return result.lane[i] != 0; }));
}

void RunPlop3(Context& c, const Lowered& l) {
  const uint32_t a = c.SourcePredicate(l, 0);
  const uint32_t b = c.SourcePredicate(l, 1);
  const uint32_t d = c.SourcePredicate(l, 2);
  const uint32_t first = Polynomial(Low(l.imm))(a, b, d);
  const uint32_t second = Polynomial(High(l.imm))(a, b, d);
  c.WritePredicate(l, 0, first);
  c.WritePredicate(l, 1, second);
}

void RunMov(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return a[i]; });
}

void RunSel(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* b = c.Source(l, 1).lane;
  const uint32_t first = c.SourcePredicate(l, 0);
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return Bit(first, i) != 0 ? a[i] : b[i]; });
}

// Shifts of one word by a clamped amount.
void RunShiftLeft(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* s = c.Source(l, 1).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return s[i] > 31 ? 0 : a[i] << (s[i] & 31); });
}

void RunShiftRight(Context& c, const Lowered& l) {
  const uint32_t* s = c.Source(l, 1).lane;
  const uint32_t* high = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return s[i] > 31 ? 0 : high[i] >> (s[i] & 31); });
}

void RunShiftRightSigned(Context& c, const Lowered& l) {
  const uint32_t* s = c.Source(l, 1).lane;
  const uint32_t* high = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes,
           [=](uint32_t i) { return static_cast<uint32_t>(Signed(high[i]) >> (s[i] > 31 ? 31 : s[i])); });
}

// flags of the general shift: it moves the 64-bit value (c:a) and returns one of its words. The amount is clamped to
// the operand's size, or wraps.
enum : uint32_t { kRight = 1, kTakesHigh = 2, kArithmetic = 4, k64 = 8, kWraps = 16 };

void RunFunnel(Context& c, const Lowered& l) {
  const Row& low = c.Source(l, 0);
  const Row& amount = c.Source(l, 1);
  const Row& high = c.Source(l, 2);
  const uint32_t flags = l.flags;
  const uint32_t size = (flags & k64) != 0 ? 64 : 32;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint64_t value = Pair(low.lane[i], high.lane[i]);
    const uint32_t s = (flags & kWraps) != 0 ? amount.lane[i] & (size - 1) : std::min(amount.lane[i], size);
    uint64_t result;
    if ((flags & kRight) == 0)
      result = s > 63 ? 0 : value << s;
    else if ((flags & kArithmetic) != 0)
      result = static_cast<uint64_t>(static_cast<int64_t>(value) >> std::min(s, 63u));
    else
      result = s > 63 ? 0 : value >> s;
    return (flags & kTakesHigh) != 0 ? High(result) : Low(result);
  });
}

// Bytes of (c:a) by a selector; bit 3 of a nibble replicates the byte's sign.
inline uint32_t Permute(uint64_t bytes, uint32_t selector) {
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t nibble = selector >> 4 * k & 0xf;
    uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (nibble & 7)) & 0xff;
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * k;
  }
  return result;
}

// The selectors of the named modes for each value of the low two bits of the selector operand.
constexpr uint16_t kModeSelectors[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543},  // F4E: four bytes forward
    {0x5670, 0x6701, 0x7012, 0x0123},  // B4E: backward
    {0x0000, 0x1111, 0x2222, 0x3333},  // RC8: one byte four times
    {0x3210, 0x3211, 0x3222, 0x3333},  // ECL: edge clamp left
    {0x0000, 0x1110, 0x2210, 0x3210},  // ECR: edge clamp right
    {0x1010, 0x3232, 0x1010, 0x3232},  // RC16: one half twice
};

// flags: 0 for selectors, else the mode's number + 1.
void RunPrmt(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& s = c.Source(l, 1);
  const Row& high = c.Source(l, 2);
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t selector = l.flags == 0 ? s.lane[i] : kModeSelectors[l.flags - 1][s.lane[i] & 3];
    return Permute(Pair(a.lane[i], high.lane[i]), selector);
  });
}

// An immediate selector without sign replication. imm holds, per byte, the source (bit 7: c) and its shift.
void RunPrmtFixed(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& high = c.Source(l, 2);
  Row result{};
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t code = Low(l.imm) >> 8 * k & 0xff;
    const uint32_t* source = (code & 0x80) != 0 ? high.lane : a.lane;
    const uint32_t shift = code & 0x1f;
    HEDDLE_LANE_LOOP
    for (uint32_t i = 0; i < kWarpLanes; ++i) result.lane[i] |= (source[i] >> shift & 0xff) << 8 * k;
  }
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return result.lane[i]; });
}

// flags of SGXT and BMSK.
enum : uint32_t { kFieldUnsigned = 1, kFieldWraps = 2 };

void RunSgxt(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& width = c.Source(l, 1);
  const bool is_unsigned = (l.flags & kFieldUnsigned) != 0;
  const bool wraps = (l.flags & kFieldWraps) != 0;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t bits = wraps ? width.lane[i] & 31 : std::min(width.lane[i], 32u);
    if (bits == 0) return 0u;
    const uint32_t up = a.lane[i] << (32 - bits);
    return is_unsigned ? up >> (32 - bits) : static_cast<uint32_t>(Signed(up) >> (32 - bits));
  });
}

void RunBmsk(Context& c, const Lowered& l) {
  const Row& position = c.Source(l, 0);
  const Row& width = c.Source(l, 1);
  const bool wraps = (l.flags & kFieldWraps) != 0;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t p = wraps ? position.lane[i] & 31 : std::min(position.lane[i], 32u);
    const uint32_t n = wraps ? width.lane[i] & 31 : std::min(width.lane[i], 32u);
    return Low(((uint64_t{1} << n) - 1) << p);
  });
}

void RunPopc(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const uint32_t flip = l.flip[0];
  MapLanes(c.Destination(l), c.lanes,
           [&](uint32_t i) { return static_cast<uint32_t>(std::popcount(a.lane[i] ^ flip)); });
}

inline uint32_t ReverseBits(uint32_t x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}

void RunBrev(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t flip = l.flip[0];
  MapLanes(c.Destination(l), c.lanes, [=](uint32_t i) { return ReverseBits(a[i] ^ flip); });
}

// Position of the highest bit that differs from the sign (signed) or from 0; all ones when there is none.
// flags 1: unsigned, 2: as a shift amount (31 - position).
void RunFlo(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const uint32_t flip = l.flip[0];
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    uint32_t x = a.lane[i] ^ flip;
    if ((l.flags & 1) == 0 && Signed(x) < 0) x = ~x;
    if (x == 0) return kAllLanes;
    const auto leading = static_cast<uint32_t>(std::countl_zero(x));
    return (l.flags & 2) != 0 ? leading : 31 - leading;
  });
}

// I2IP: imm = destination bits | signed << 8. result = c << 2 * bits | sat(a) << bits | sat(b).
void RunI2ip(Context& c, const Lowered& l) {
  const Row& a = c.Source(l, 0);
  const Row& b = c.Source(l, 1);
  const Row& d = c.Source(l, 2);
  const uint32_t bits = Low(l.imm) & 0xff;
  const bool is_signed = (l.imm >> 8 & 1) != 0;
  const int64_t least = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t most = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  const uint32_t field = (1u << bits) - 1;
  const auto saturate = [=](uint32_t x) {
    return static_cast<uint32_t>(std::clamp(int64_t{Signed(x)}, least, most)) & field;
  };
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t packed = saturate(a.lane[i]) << bits | saturate(b.lane[i]);
    return bits == 16 ? packed : d.lane[i] << 2 * bits | packed;
  });
}

}  // namespace

// LOP3.LUT [P,] R, a, b, c, table, P
void LowerLop3(Lowering& w) {
  if (!w.Take(Mod::kLUT)) return w.Fail("without a table");
  const bool predicate = w.TakeDestinationPredicate(0);
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  const uint64_t table = w.Immediate() & 0xff;
  w.SourcePredicate(0);
  w.out.imm = table;
  if (predicate) {
    w.out.run = &RunLop3Predicate;
  } else if (table == 0xc0) {
    w.out.run = &RunLogic<Logic::kAnd>;
  } else if (table == 0xfc) {
    w.out.run = &RunLogic<Logic::kOr>;
  } else if (table == 0x3c) {
    w.out.run = &RunLogic<Logic::kXor>;
  } else if (table == 0xea) {
    w.out.run = &RunLogic<Logic::kAndOr>;
  } else if (table == 0xf8) {
    w.out.run = &RunLogic<Logic::kOrAnd>;
  } else {
    w.out.run = &RunLop3;
  }
}

// PLOP3.LUT P, P, a, b, c, table, table
void LowerPlop3(Lowering& w) {
  if (!w.Take(Mod::kLUT)) return w.Fail("without a table");
  w.DestinationPredicate(0);
  w.DestinationPredicate(1);
  for (size_t slot = 0; slot < 3; ++slot) w.SourcePredicate(slot);
  const uint64_t first = w.Immediate() & 0xff;
  w.out.imm = (w.Immediate() & 0xff) << 32 | first;
  w.out.run = &RunPlop3;
}

void LowerMov(Lowering& w) {
  w.Destination(0);
  w.Source(0);
  if (w.NextIs(isa::OperandKind::kImmediate) && w.Immediate() != 0xf) w.Fail("a partial lane mask");
  w.out.run = &RunMov;
}

void LowerSel(Lowering& w) {
  w.Destination(0);
  w.Source(0);
  w.Source(1);
  w.SourcePredicate(0);
  w.out.run = &RunSel;
}

// SHF.{L,R}.{W}.{U32,S32,U64,S64}.{HI} R, low, amount, high
void LowerShf(Lowering& w) {
  const int direction = w.TakeOneOf({Mod::kL, Mod::kR});
  const int type = w.TakeOneOf({Mod::kU32, Mod::kS32, Mod::kU64, Mod::kS64});
  const bool wraps = w.Take(Mod::kW);
  const bool high = w.Take(Mod::kHI);
  if (direction < 0 || type < 0) return w.Fail("an unknown shift");
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.out.flags = (direction == 1 ? kRight : 0u) | (high ? kTakesHigh : 0u) |
                (type % 2 == 1 ? kArithmetic : 0u) | (type >= 2 ? k64 : 0u) | (wraps ? kWraps : 0u);
  w.out.run = &RunFunnel;
  if (w.out.flags == 0) w.out.run = &RunShiftLeft;
  if (w.out.flags == (kRight | kTakesHigh)) w.out.run = &RunShiftRight;
  if (w.out.flags == (kRight | kTakesHigh | kArithmetic)) w.out.run = &RunShiftRightSigned;
}

void LowerPrmt(Lowering& w) {
  const int mode = w.TakeOneOf({Mod::kF4E, Mod::kB4E, Mod::kRC8, Mod::kECL, Mod::kECR, Mod::kRC16});
  w.out.flags = static_cast<uint32_t>(mode + 1);
  w.Destination(0);
  w.Source(0);
  const isa::Operand* selector = w.Peek();
  w.Source(1);
  w.Source(2);
  w.out.run = &RunPrmt;
  if (selector == nullptr || selector->kind != isa::OperandKind::kImmediate || mode >= 0) return;
  const auto value = static_cast<uint32_t>(selector->value);
  if ((value & 0x8888) != 0) return;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t byte = value >> 4 * k & 7;
    w.out.imm |= uint64_t{(byte >= 4 ? 0x80u : 0u) | (byte & 3) * 8} << 8 * k;
  }
  w.out.run = &RunPrmtFixed;
}

void LowerSgxt(Lowering& w) {
  w.out.flags = (w.Take(Mod::kU32) ? kFieldUnsigned : 0u) | (w.Take(Mod::kW) ? kFieldWraps : 0u);
  w.Destination(0);
  w.Source(0);
  w.Source(1);
  w.out.run = &RunSgxt;
}

void LowerBmsk(Lowering& w) {
  w.out.flags = w.Take(Mod::kW) ? kFieldWraps : 0u;
  w.Destination(0);
  w.Source(0);
  w.Source(1);
  w.out.run = &RunBmsk;
}

void LowerPopc(Lowering& w) {
  w.Destination(0);
  if (w.IntegerSource(0) != 0) w.Fail("a negated source");
  w.out.run = &RunPopc;
}

void LowerBrev(Lowering& w) {
  w.Destination(0);
  if (w.IntegerSource(0) != 0) w.Fail("a negated source");
  w.out.run = &RunBrev;
}

void LowerFlo(Lowering& w) {
  w.out.flags = (w.Take(Mod::kU32) ? 1u : 0u) | (w.Take(Mod::kSH) ? 2u : 0u);
  w.Destination(0);
  w.TakeDestinationPredicate(0);
  if (w.out.destination_predicate[0] != kDiscardPredicate) w.Fail("a predicate result");
  if (w.IntegerSource(0) != 0) w.Fail("a negated source");
  w.out.run = &RunFlo;
}

void LowerI2ip(Lowering& w) {
  const int type = w.TakeOneOf({Mod::kS8, Mod::kU8, Mod::kS16, Mod::kU16, Mod::kS4, Mod::kU4});
  if (type < 0 || !w.Take(Mod::kS32) || !w.Take(Mod::kSAT)) return w.Fail("an unknown packing");
  constexpr std::array<uint32_t, 3> kBits{8, 16, 4};
  w.out.imm = kBits[static_cast<size_t>(type) / 2] | (type % 2 == 0 ? 1u << 8 : 0u);
  w.Destination(0);
  for (size_t slot = 0; slot < 3; ++slot) w.Source(slot);
  w.out.run = &RunI2ip;
}

}  // namespace heddle::emulator
