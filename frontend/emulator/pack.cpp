// F2FP: packs two floats into one word, or unpacks bytes into halves.
#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

using isa::Mod;

// flags of packing.
enum : uint32_t { kRelu = 1, kToBFloat = 2, kToE5M2 = 4, kFlushes = 8 };

inline float Prepare(uint32_t bits, uint32_t flags) {
  if ((flags & kFlushes) != 0) bits = FlushDenormal(bits);
  if ((flags & kRelu) != 0 && !IsNan(bits) && (bits & kFloatSign) != 0) bits = 0;
  return AsFloat(bits);
}

struct Input {
  Input(const Context& c, const Lowered& l, size_t slot)
      : lane(c.Source(l, slot).lane), keep(l.keep[slot]), flip(l.flip[slot]) {}
  uint32_t operator[](uint32_t i) const { return (lane[i] & keep) ^ flip; }
  const uint32_t* lane;
  uint32_t keep;
  uint32_t flip;
};

// Two 16-bit floats: a in the high half. imm: rounding.
void RunPack16(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const auto rounding = static_cast<Rounding>(l.imm);
  const bool to_bfloat = (l.flags & kToBFloat) != 0;
  const auto narrow = [&](uint32_t bits) -> uint32_t {
    const float value = Prepare(bits, l.flags);
    if (rounding == Rounding::kNearest) return to_bfloat ? FloatToBFloat(value) : FloatToHalf(value);
    return to_bfloat ? NarrowToBFloat(value, rounding) : NarrowToHalf(value, rounding);
  };
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) { return narrow(a[i]) << 16 | narrow(b[i]); });
}

inline uint32_t ToByte(float value, uint32_t flags) {
  return (flags & kToE5M2) != 0 ? NarrowToE5M2(value) : NarrowToE4M3(value);
}

// Two bytes, a in the higher; the low half of c comes above them.
void RunPack8(Context& c, const Lowered& l) {
  const Input a(c, l, 0), b(c, l, 1);
  const uint32_t* d = c.Source(l, 2).lane;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const uint32_t packed =
        ToByte(Prepare(a[i], l.flags), l.flags) << 8 | ToByte(Prepare(b[i], l.flags), l.flags);
    return d[i] << 16 | packed;
  });
}

// The same from the two halves of a.
void RunPack8FromHalves(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const uint32_t* d = c.Source(l, 1).lane;
  MapLanes(c.Destination(l), c.lanes, [&](uint32_t i) {
    const float high = HalfToFloat(static_cast<uint16_t>(a[i] >> 16));
    const float low = HalfToFloat(static_cast<uint16_t>(a[i]));
    const uint32_t packed =
        ToByte(Prepare(AsBits(high), l.flags), l.flags) << 8 | ToByte(Prepare(AsBits(low), l.flags), l.flags);
    return d[i] << 16 | packed;
  });
}

// Two bytes of a become two halves. imm: position of the lower one.
void RunUnpack8(Context& c, const Lowered& l) {
  const uint32_t* a = c.Source(l, 0).lane;
  const auto shift = static_cast<uint32_t>(l.imm);
  const bool e5m2 = (l.flags & kToE5M2) != 0;
  const auto widen = [&](uint32_t bits) -> uint32_t {
    const auto byte = static_cast<uint8_t>(bits);
    return FloatToHalf(e5m2 ? E5M2ToFloat(byte) : E4M3ToFloat(byte));
  };
  MapLanes(c.Destination(l), c.lanes,
           [&](uint32_t i) { return widen(a[i] >> (shift + 8)) << 16 | widen(a[i] >> shift); });
}

void LowerUnpack(Lowering& w) {
  if (!w.Take(Mod::kF16)) return w.Fail("only to F16");
  w.Destination(0);
  const isa::Operand* operand = w.Peek();
  if (operand != nullptr && operand->kind == isa::OperandKind::kRegister &&
      (operand->Has(isa::kSelectsHigh) || operand->Has(isa::kSelectsLow))) {
    w.out.imm = operand->Has(isa::kSelectsHigh) ? 16 : 0;
    w.out.source[0].row = w.layout.ReadRow(w.Next().reg);
  } else {
    w.Source(0);
  }
  w.out.run = &RunUnpack8;
}

}  // namespace

void LowerF2fp(Lowering& w) {
  const int narrow = w.TakeOneOf({Mod::kE4M3, Mod::kE5M2});
  w.out.flags =
      (w.Take(Mod::kRELU) ? kRelu : 0u) | (narrow == 1 ? kToE5M2 : 0u) | (w.Take(Mod::kFTZ) ? kFlushes : 0u);
  if (w.Take(Mod::kUNPACK_B)) {
    if (narrow < 0 || w.out.flags > kToE5M2) return w.Fail("an unknown unpacking");
    return LowerUnpack(w);
  }
  if (narrow >= 0) {
    if (!w.Take(Mod::kSATFINITE)) return w.Fail("without SATFINITE");
    const bool from_halves = w.Take(Mod::kUNPACK_B_MERGE_C);
    if (from_halves ? !w.Take(Mod::kF16) : !(w.Take(Mod::kPACK_AB_MERGE_C) && w.Take(Mod::kF32)))
      return w.Fail("an unknown packing");
    w.Destination(0);
    if (from_halves) {
      w.Source(0);
      w.Source(1);
    } else {
      w.FloatSource(0);
      w.FloatSource(1);
      w.Source(2);
    }
    w.out.run = from_halves ? &RunPack8FromHalves : &RunPack8;
    return;
  }
  if (!w.Take(Mod::kPACK_AB)) return w.Fail("an unknown packing");
  if (w.TakeOneOf({Mod::kBF16, Mod::kF16}) == 0) w.out.flags |= kToBFloat;
  w.Take(Mod::kF32);
  w.out.imm = static_cast<uint64_t>(TakeRounding(w));
  w.Destination(0);
  w.FloatSource(0);
  w.FloatSource(1);
  w.out.run = &RunPack16;
}

}  // namespace heddle::emulator
