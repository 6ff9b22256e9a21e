// Contents of memory as rules: each element is a function of the rule and its own index, so pages can be made
// when they are touched, in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/trace/dtype.h"
#include "sim/base/result.h"

namespace heddle::trace {

// The numbers are stored in traces.
enum class RuleKind : uint8_t {
  kUnknown = 0,  // not given
  kZeros = 1,
  kConstant = 2,     // a
  kIota = 3,         // a + b * ((index / repeat) % period), period 0: no wrap
  kUniform = 4,      // integers: a to b, both included; reals: [a, b)
  kNormal = 5,       // mean a, standard deviation b
  kPermutation = 6,  // of [0, a): element i is the i-th entry
  kOffsets = 7,      // sorted, first 0, last a; b != 0: equal steps
  kBytes = 8,        // given
  kCopy = 9,         // what another range of device memory holds at that moment
};

// a, b, period and repeat are real expressions (see expression.h), "" meaning the rule's default.
struct ContentRule {
  RuleKind kind = RuleKind::kUnknown;
  DType type = DType::kU8;
  uint64_t seed = 0;
  std::string a;
  std::string b;
  std::string period;
  std::string repeat;
  std::vector<std::byte> bytes;  // kBytes
  uint32_t copy_buffer = 0;      // kCopy: index of the buffer, offset in it, and how much
  uint64_t copy_offset_bytes = 0;
  uint64_t copy_bytes = 0;       // kUnknown: how much, 0: up to the buffer's end
  bool operator==(const ContentRule&) const = default;
};

// A rule with its numbers, for a range of `count` elements. Immutable: may be used by several threads.
class ContentSource {
 public:
  struct Numbers {
    double a = 0;
    double b = 0;
    uint64_t period = 0;
    uint64_t repeat = 1;
  };
  // Errors: numbers that the rule or the type cannot take; their place is `place`. `rule` must be neither
  // kUnknown nor kCopy.
  static Result<std::shared_ptr<const ContentSource>> Make(const ContentRule& rule, const Numbers& numbers,
                                                           uint64_t count, const std::string& place);

  // Writes the bytes [first_byte, first_byte + out.size()) of the range; bytes behind its end are 0.
  void Fill(uint64_t first_byte, std::span<std::byte> out) const;

  RuleKind kind() const { return kind_; }
  // Every element has the same value: such an input checks nothing.
  bool IsConstant() const;

 private:
  ContentSource() = default;
  uint64_t ElementBits(uint64_t index) const;  // of the rules that Fill does not see to itself
  bool FillBytes(uint64_t first_byte, std::span<std::byte> out) const;

  RuleKind kind_ = RuleKind::kZeros;
  DType type_ = DType::kU8;
  uint64_t seed_ = 0;
  uint64_t count_ = 0;
  Numbers numbers_;
  uint64_t constant_bits_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace heddle::trace
