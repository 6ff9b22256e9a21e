// How recorded warps are written down (trace/recording.h holds the strings).
//
// Code. The launch's code has every recorded instruction once, at the place of its pc. Where functions alias (each has
// its own pc from 0 on) or a pc was seen with different operands, further variants of the code follow, each as long as
// the first (`code_stride` instructions); behind the last one stands an EXIT, for warps of which nothing was recorded.
// A CodeKey names an instruction by variant and place.
//
// Tokens of a warp. Numbers are variable-length (7 bits a byte, lowest first); signed ones are zigzag. A token is a run
// of consecutive instructions with one mask:
//   header     count << 3 | variant changes << 2 | mask changes << 1 | jump
//   [jump]     signed distance from the instruction behind the previous run, within the variant
//   [variant]  number
//   [mask]     exclusive or with the previous mask
//   records    of the instructions of the run that have one, in order: memory accesses and barriers with a lane
// The first run starts with variant 0, place 0 and a full mask.
//
// Record of a barrier: one byte, 1 if the warp arrives, 0 if other lanes of it are still to come.
//
// Record of an access: base address (of the first active lane) and shape (the other lanes' distances from it). Warps
// repeat themselves and their neighbours, so both are predicted.
//   later ones of an instruction in the warp: the base moves on by the last step, the shape stays
//     header   residual << 2 | wide << 1 | shape is stated
//     [wide]   the residual as a number of its own, where it has more than 61 bits
//     [shape]  0: stated here, else its number in the table + 1
//     [deltas] of a shape stated here: signed distance of each further active lane from the one before
//   the first of an instruction in the warp: in `firsts`, which is read when the chunk is, block after block and warp
//   after warp, so that each may be predicted from the same warp of the block before and its neighbour:
//     count    of the warp's first accesses, in the order of their execution
//     header   residual << 3 | instruction is stated << 2 | wide << 1 | shape is stated
//     [instruction] its CodeKey; else the one at this place in the list of the warp before
//     [wide] [shape] as above; the deltas of a shape stated here are in the warp's tokens
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::importer {

// variant << kPlaceBits | pc / 16.
using CodeKey = uint32_t;
inline constexpr uint32_t kPlaceBits = 18;
inline constexpr uint32_t kMostPlaces = 1u << kPlaceBits;  // 4 MiB of code
inline constexpr uint32_t kMostVariants = 256;
inline constexpr uint32_t kMostInstructions = 1u << 20;  // of all variants together

inline constexpr uint32_t kMostShapes = 1u << 16;

constexpr uint32_t PlaceOf(CodeKey key) { return key & (kMostPlaces - 1); }
constexpr uint32_t VariantOf(CodeKey key) { return key >> kPlaceBits; }

constexpr uint64_t Zigzag(uint64_t value) { return value << 1 ^ (value >> 63 != 0 ? ~uint64_t{0} : 0); }
constexpr uint64_t Unzigzag(uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

inline void PutNumber(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// A residual behind a few flags, of which bit 1 says that it did not fit there.
inline constexpr uint64_t kWide = 2;
inline void PutResidual(uint64_t residual, uint32_t flag_bits, uint64_t flags, std::string* out) {
  const uint64_t zigzag = Zigzag(residual);
  const bool wide = zigzag >> (64 - flag_bits) != 0;
  PutNumber((wide ? 0 : zigzag << flag_bits) | (wide ? kWide : 0) | flags, out);
  if (wide) PutNumber(zigzag, out);
}

// Reads numbers from bytes that are not trusted: behind the end, or of a number that is too long, all is 0 and `good`
// false.
class NumberReader {
 public:
  NumberReader() = default;
  explicit NumberReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool good() const { return good_; }
  bool AtEnd() const { return at_ == end_; }

  uint64_t Next() {
    if (at_ != end_ && (*at_ & 0x80) == 0) return static_cast<uint8_t>(*at_++);
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    good_ = false;
    at_ = end_;
    return 0;
  }
  uint64_t NextSigned() { return Unzigzag(Next()); }
  // Behind a header with flags.
  uint64_t Residual(uint64_t header, uint32_t flag_bits) {
    return Unzigzag((header & kWide) != 0 ? Next() : header >> flag_bits);
  }

 private:
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool good_ = true;
};

}  // namespace heddle::importer
