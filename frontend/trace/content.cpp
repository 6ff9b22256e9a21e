#include "frontend/trace/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace heddle::trace {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA
// 2014).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
// The numbers of the generator that a seed starts, in any order.
class Generator {
 public:
  explicit Generator(uint64_t seed) : start_(Mix(seed + kGolden)) {}
  uint64_t operator()(uint64_t n) const { return Mix(start_ + (n + 1) * kGolden); }

 private:
  uint64_t start_;
};
uint64_t Random(uint64_t seed, uint64_t n) { return Generator(seed)(n); }

double UnitInterval(uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

// What large inputs are made of is made in blocks, by loops that the compiler makes vectors of.
constexpr size_t kBlock = 64;
using Block = std::array<double, kBlock>;

// Of an integer below 2^52.
double ExactDouble(uint64_t integer) {
  return std::bit_cast<double>(integer | std::bit_cast<uint64_t>(0x1p52)) - 0x1p52;
}

// In [0, 1): elements `first` and following.
void MakeUniforms(const Generator& generator, uint64_t first, Block* out) {
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t random = generator(first + i);  // of which 53 bits are taken
    (*out)[i] = (ExactDouble(random >> 32) * 0x1p21 + ExactDouble(random >> 11 & 0x1fffff)) * 0x1p-53;
  }
}

// Irwin-Hall: the sum of twelve uniforms of 16 bits, smoothed below that by a thirteenth. Mean 0, variance 1,
// within
// +-6; additions only, hence the same bits on every machine, which a library's logarithm does not promise.
void MakeNormals(const Generator& generator, uint64_t first, Block* out) {
  for (size_t i = 0; i < kBlock; ++i) {
    const uint64_t index = (first + i) * 4;
    uint64_t sums = 0;  // of the even and of the odd 16-bit fields
    for (uint64_t word = 0; word < 3; ++word) {
      constexpr uint64_t kEven = 0x0000ffff0000ffff;
      const uint64_t random = generator(index + word);
      sums += (random & kEven) + ((random >> 16) & kEven);
    }
    const uint64_t sum = (sums & 0xffffffff) + (sums >> 32);
    const double fine = ExactDouble(generator(index + 3) >> 32) * 0x1p-32;
    // Twelve truncated uniforms have a mean of 6 - 6 / 65536, `fine` one of half a step.
    (*out)[i] = (ExactDouble(sum) + fine + 5.5) * 0x1p-16 - 6;
  }
}

// A permutation of [0, size): a Feistel network on the next even number of bits, walked until the value is in
// range.
uint64_t Permute(uint64_t seed, uint64_t index, uint64_t size) {
  const int half_bits = std::max(1, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t value = index;
  do {
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (Random(seed + round, right) & mask);
      left = right;
      right = next;
    }
    value = left << half_bits | right;
  } while (value >= size);
  return value;
}

// Element `index` of `count` sorted offsets from 0 to `total`: equal steps, each inner one moved by less than
// half a step.
double SortedOffset(uint64_t seed, uint64_t index, uint64_t count, double total, bool even) {
  if (index == 0) return 0;
  if (index + 1 >= count) return total;
  const double step = total / static_cast<double>(count - 1);
  const double jitter = even ? 0 : 0.96 * (UnitInterval(Random(seed, index)) - 0.5);
  return std::floor(step * (static_cast<double>(index) + jitter));
}

// Writes bytes of elements of `size` bytes, of which there are `count`, from `first_byte` of all on.
template <typename BitsOf>
void FillElements(uint64_t first_byte, uint32_t size, uint64_t count, std::span<std::byte> out,
                  BitsOf bits_of) {
  uint64_t index = first_byte / size;
  uint64_t skip = first_byte % size;  // bytes of the element in front of the range
  for (uint64_t done = 0; done < out.size(); ++index, skip = 0) {
    const uint64_t take = std::min<uint64_t>(size - skip, out.size() - done);
    const uint64_t bits = (index < count ? bits_of(index) : 0) >> (8 * skip);
    if (take == 2)
      std::memcpy(out.data() + done, &bits, 2);
    else
      std::memcpy(out.data() + done, &bits, take);
    done += take;
  }
}

// The same of `type`; make(first, block) makes the values of as many elements as a block has, from `first` on.
template <typename Make>
void FillReals(uint64_t first_byte, DType type, uint64_t count, std::span<std::byte> out, Make make) {
  const uint32_t size = SizeOf(type);
  uint64_t index = first_byte / size;
  uint64_t skip = first_byte % size;  // bytes of the first element in front of the range
  Block values;
  std::array<std::byte, kBlock * sizeof(uint64_t)> bytes;
  for (uint64_t done = 0; done < out.size(); index += kBlock, skip = 0) {
    const size_t inside = index < count ? static_cast<size_t>(std::min<uint64_t>(kBlock, count - index)) : 0;
    if (inside != 0) make(index, &values);
    EncodeAll(type, std::span(values).first(inside), bytes.data());
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(inside * size), bytes.end(), std::byte{0});
    const uint64_t take = std::min<uint64_t>(kBlock * size - skip, out.size() - done);
    std::memcpy(out.data() + done, bytes.data() + skip, take);
    done += take;
  }
}

Error Bad(const std::string& place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, place, std::move(message), std::move(next_step)};
}

Status CheckNumbers(const ContentRule& rule, const ContentSource::Numbers& n, uint64_t count,
                    const std::string& place) {
  const bool integers = !IsFloat(rule.type);
  const auto fits = [&](double v) {
    return std::isfinite(v) && v >= LowestOf(rule.type) && v <= HighestOf(rule.type);
  };
  switch (rule.kind) {
    case RuleKind::kConstant:
      if (!fits(n.a))
        return Bad(place, fmt::format("{} does not fit into {}", n.a, Name(rule.type)),
                   "choose another type");
      break;
    case RuleKind::kUniform:
      if (!fits(n.a) || !fits(n.b))
        return Bad(place, fmt::format("[{}, {}] does not fit into {}", n.a, n.b, Name(rule.type)),
                   "choose another range");
      if (n.b < n.a)
        return Bad(place, fmt::format("the range {} to {} is empty", n.a, n.b), "low must not be above high");
      if (integers && (n.a != std::floor(n.a) || n.b != std::floor(n.b)))
        return Bad(place, fmt::format("[{}, {}] are no integers", n.a, n.b),
                   "give integers for an integer type");
      if (integers && n.b - n.a >= 0x1p53)
        return Bad(place, "the range has more than 2^53 values", "choose a smaller one");
      break;
    case RuleKind::kNormal:
      if (!std::isfinite(n.a) || !std::isfinite(n.b) || n.b < 0)
        return Bad(place, "mean and standard deviation must be finite, the latter at least 0",
                   "correct them");
      break;
    case RuleKind::kIota:
      if (n.repeat == 0) return Bad(place, "repeat is 0", "leave it out or give at least 1");
      break;
    case RuleKind::kPermutation:
      if (n.a < static_cast<double>(count) || n.a > 0x1p53 || n.a != std::floor(n.a))
        return Bad(place, fmt::format("a permutation of [0, {}) has no {} elements", n.a, count),
                   "give a range of at least the element count");
      if (!fits(n.a - 1))
        return Bad(place, fmt::format("{} does not fit into {}", n.a - 1, Name(rule.type)),
                   "choose another type");
      break;
    case RuleKind::kOffsets:
      if (!fits(n.a) || n.a < 0 || n.a > 0x1p53 || n.a != std::floor(n.a))
        return Bad(place, fmt::format("offsets that end at {} are not possible in {}", n.a, Name(rule.type)),
                   "give a total of at least 0");
      if (count < 2)
        return Bad(place, "offsets need at least 2 elements",
                   "give the buffer one element more than there are parts");
      break;
    default:
      break;
  }
  return Ok();
}

}  // namespace

Result<std::shared_ptr<const ContentSource>> ContentSource::Make(const ContentRule& rule,
                                                                 const Numbers& numbers, uint64_t count,
                                                                 const std::string& place) {
  if (SizeOf(rule.type) == 0) return Bad(place, "contents without an element type", "give the buffer a type");
  HEDDLE_RETURN_IF_ERROR(CheckNumbers(rule, numbers, count, place));
  std::shared_ptr<ContentSource> source(new ContentSource);
  source->kind_ = rule.kind;
  source->type_ = rule.type;
  source->seed_ = rule.seed;
  source->count_ = count;
  source->numbers_ = numbers;
  source->bytes_ = rule.bytes;
  if (rule.kind == RuleKind::kConstant) source->constant_bits_ = Encode(rule.type, numbers.a);
  return std::shared_ptr<const ContentSource>(std::move(source));
}

uint64_t ContentSource::ElementBits(uint64_t index) const {
  switch (kind_) {
    case RuleKind::kConstant:
      return constant_bits_;
    case RuleKind::kIota: {
      uint64_t step = index / numbers_.repeat;
      if (numbers_.period != 0) step %= numbers_.period;
      return Encode(type_, numbers_.a + numbers_.b * static_cast<double>(step));
    }
    case RuleKind::kUniform: {  // of integers
      const auto span = static_cast<uint64_t>(numbers_.b - numbers_.a) + 1;
      const auto pick =
          static_cast<uint64_t>((static_cast<unsigned __int128>(Random(seed_, index)) * span) >> 64);
      return Encode(type_, numbers_.a + static_cast<double>(pick));
    }
    case RuleKind::kPermutation:
      return Encode(type_, static_cast<double>(Permute(seed_, index, static_cast<uint64_t>(numbers_.a))));
    case RuleKind::kOffsets:
      return Encode(type_, SortedOffset(seed_, index, count_, numbers_.a, numbers_.b != 0));
    default:
      return 0;
  }
}

bool ContentSource::FillBytes(uint64_t first_byte, std::span<std::byte> out) const {
  if (kind_ == RuleKind::kZeros || kind_ == RuleKind::kUnknown) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return true;
  }
  if (kind_ != RuleKind::kBytes) return false;
  const uint64_t available =
      first_byte < bytes_.size() ? std::min<uint64_t>(bytes_.size() - first_byte, out.size()) : 0;
  if (available > 0) std::memcpy(out.data(), bytes_.data() + first_byte, available);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(available), out.end(), std::byte{0});
  return true;
}

void ContentSource::Fill(uint64_t first_byte, std::span<std::byte> out) const {
  if (FillBytes(first_byte, out)) return;
  const uint32_t size = SizeOf(type_);
  if (kind_ == RuleKind::kNormal || (kind_ == RuleKind::kUniform && IsFloat(type_))) {
    const Generator generator(seed_);
    return FillReals(first_byte, type_, count_, out, [&, this](uint64_t first, Block* values) {
      const bool is_normal = kind_ == RuleKind::kNormal;
      is_normal ? MakeNormals(generator, first, values) : MakeUniforms(generator, first, values);
      const double scale = is_normal ? numbers_.b : numbers_.b - numbers_.a;
      for (double& value : *values) value = numbers_.a + scale * value;
    });
  }
  FillElements(first_byte, size, count_, out, [this](uint64_t index) { return ElementBits(index); });
}

bool ContentSource::IsConstant() const {
  switch (kind_) {
    case RuleKind::kZeros:
    case RuleKind::kConstant:
      return true;
    case RuleKind::kIota:
      return numbers_.b == 0 || count_ <= numbers_.repeat || numbers_.period == 1;
    case RuleKind::kUniform:
    case RuleKind::kNormal:
      return kind_ == RuleKind::kNormal ? numbers_.b == 0 : numbers_.a == numbers_.b;
    case RuleKind::kBytes: {
      const uint32_t size = SizeOf(type_);
      if (bytes_.size() <= size) return false;  // one element: nothing to compare with
      return std::memcmp(bytes_.data(), bytes_.data() + size, bytes_.size() - size) == 0;
    }
    default:
      return false;
  }
}

}  // namespace heddle::trace
