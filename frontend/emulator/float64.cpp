// Double precision. Results that are NaN keep the payload that the host's IEEE arithmetic gives them.
#include "frontend/emulator/float_format.h"

namespace heddle::emulator {
namespace {

enum class Operation { kAdd, kMultiply, kFused };

struct DoubleRow {
  double lane[kWarpLanes];
};

DoubleRow Load(const Context& c, const Lowered& l, size_t slot) {
  DoubleRow row;
  const uint32_t* low = c.Source(l, slot, 0).lane;
  const uint32_t* high = c.Source(l, slot, 1).lane;
  const uint32_t keep = l.keep[slot], flip = l.flip[slot];
  for (uint32_t i = 0; i < kWarpLanes; ++i) row.lane[i] = AsDouble(Pair(low[i], (high[i] & keep) ^ flip));
  return row;
}

// Not inlined: see ScopedRounding.
template <Operation kOperation>
[[gnu::noinline]] void ComputeRow(const DoubleRow& a, const DoubleRow& b, const DoubleRow& c,
                                  DoubleRow& result) {
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    if constexpr (kOperation == Operation::kAdd) result.lane[i] = a.lane[i] + b.lane[i];
    if constexpr (kOperation == Operation::kMultiply) result.lane[i] = a.lane[i] * b.lane[i];
    if constexpr (kOperation == Operation::kFused) result.lane[i] = std::fma(a.lane[i], b.lane[i], c.lane[i]);
  }
}

template <Operation kOperation>
void RunDouble(Context& c, const Lowered& l) {
  const DoubleRow a = Load(c, l, 0);
  const DoubleRow b = Load(c, l, 1);
  const DoubleRow d = Load(c, l, 2);
  DoubleRow result;
  if (l.imm == 0) {
    ComputeRow<kOperation>(a, b, d, result);
  } else {
    const ScopedRounding rounding(static_cast<Rounding>(l.imm));
    ComputeRow<kOperation>(a, b, d, result);
  }
  MapLanes64(c.Destination(l, 0, 0), c.Destination(l, 0, 1), c.lanes,
             [&](uint32_t i) { return AsBits(result.lane[i]); });
}

template <Operation kOperation>
void Lower(Lowering& w) {
  w.out.imm = static_cast<uint64_t>(TakeRounding(w));
  w.Destination(0);
  w.DoubleSource(0);
  w.DoubleSource(1);
  if constexpr (kOperation == Operation::kFused) w.DoubleSource(2);
  w.out.run = &RunDouble<kOperation>;
}

}  // namespace

void LowerDadd(Lowering& w) { Lower<Operation::kAdd>(w); }
void LowerDmul(Lowering& w) { Lower<Operation::kMultiply>(w); }
void LowerDfma(Lowering& w) { Lower<Operation::kFused>(w); }

}  // namespace heddle::emulator
