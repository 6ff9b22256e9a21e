#include "frontend/emulator/atomics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "frontend/emulator/half.h"

namespace heddle::emulator {
namespace {

float FlushDenormal(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

template <typename T>
T Integer(AtomicOp op, T old, T operand, T swap) {
  switch (op) {
    case AtomicOp::kAdd:
      return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(operand));
    case AtomicOp::kMin:
      return std::min(old, operand);
    case AtomicOp::kMax:
      return std::max(old, operand);
    case AtomicOp::kInc:
      return old >= operand ? T{0} : static_cast<T>(old + 1);
    case AtomicOp::kDec:
      return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
    case AtomicOp::kAnd:
      return static_cast<T>(old & operand);
    case AtomicOp::kOr:
      return static_cast<T>(old | operand);
    case AtomicOp::kXor:
      return static_cast<T>(old ^ operand);
    case AtomicOp::kExch:
      return operand;
    case AtomicOp::kCas:
    case AtomicOp::kCast:
      return old == operand ? swap : old;
  }
  return old;
}

// Exchange and compare work on bits; min and max follow IEEE 754 minNum and maxNum.
template <typename F>
F Floating(AtomicOp op, F old, F operand) {
  switch (op) {
    case AtomicOp::kMin:
      return std::fmin(old, operand);
    case AtomicOp::kMax:
      return std::fmax(old, operand);
    default:
      return old + operand;
  }
}

template <typename Widen, typename Narrow>
uint32_t Halves(AtomicOp op, uint32_t old, uint32_t operand, Widen widen, Narrow narrow) {
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const float a = widen(static_cast<uint16_t>(old >> shift)),
                b = widen(static_cast<uint16_t>(operand >> shift));
    result |= uint32_t{narrow(Floating(op, a, b))} << shift;
  }
  return result;
}

bool IsBitwise(AtomicOp op) { return op >= AtomicOp::kAnd; }

}  // namespace

uint32_t BytesOf(AtomicType type) {
  switch (type) {
    case AtomicType::kU64:
    case AtomicType::kS64:
    case AtomicType::kF64:
      return 8;
    case AtomicType::kB128:
      return 16;
    default:
      return 4;
  }
}

uint64_t ApplyAtomic(AtomicOp op, AtomicType type, uint64_t old, uint64_t operand, uint64_t swap) {
  const auto old32 = static_cast<uint32_t>(old), operand32 = static_cast<uint32_t>(operand);
  if (IsBitwise(op))
    return BytesOf(type) == 4 ? Integer<uint32_t>(op, old32, operand32, static_cast<uint32_t>(swap))
                              : Integer<uint64_t>(op, old, operand, swap);
  switch (type) {
    case AtomicType::kU32:
      return Integer<uint32_t>(op, old32, operand32, 0);
    case AtomicType::kS32:
      return static_cast<uint32_t>(
          Integer<int32_t>(op, static_cast<int32_t>(old32), static_cast<int32_t>(operand32), 0));
    case AtomicType::kS64:
      return static_cast<uint64_t>(
          Integer<int64_t>(op, static_cast<int64_t>(old), static_cast<int64_t>(operand), 0));
    case AtomicType::kF32:
      return std::bit_cast<uint32_t>(
          Floating(op, std::bit_cast<float>(old32), std::bit_cast<float>(operand32)));
    case AtomicType::kF32Ftz:
      return std::bit_cast<uint32_t>(FlushDenormal(Floating(op, FlushDenormal(std::bit_cast<float>(old32)),
                                                            FlushDenormal(std::bit_cast<float>(operand32)))));
    case AtomicType::kF64:
      return std::bit_cast<uint64_t>(
          Floating(op, std::bit_cast<double>(old), std::bit_cast<double>(operand)));
    case AtomicType::kF16x2:
      return Halves(op, old32, operand32, HalfToFloat, FloatToHalf);
    case AtomicType::kBF16x2:
      return Halves(op, old32, operand32, BFloatToFloat, FloatToBFloat);
    case AtomicType::kU64:
    case AtomicType::kB128:
      return Integer<uint64_t>(op, old, operand, 0);
  }
  return old;
}

}  // namespace heddle::emulator
