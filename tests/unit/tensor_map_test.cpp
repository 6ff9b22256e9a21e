// Are the fields of a tensor map where ptxas puts them, and do they survive?
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "sim/isa/tensor_map.h"

namespace heddle::isa {
namespace {

TensorMap Sample() {
  TensorMap map;
  map.element = TensorElement::kBF16;
  map.rank = 3;
  map.swizzle = TensorSwizzle::k64B;
  map.fill = TensorFill::kNan;
  map.promotion = TensorPromotion::k128B;
  map.address = 0x7f0012345670;
  map.size = {1000, 70000, uint64_t{1} << 32, 1, 1};
  map.stride_bytes = {0, 2048, (uint64_t{1} << 40) - 16, 0, 0};
  map.box = {32, 256, 7, 1, 1};
  map.element_stride = {1, 8, 2, 1, 1};
  return map;
}

// Word by word, from the stores that ptxas makes of tensormap.replace.
TEST(TensorMap, LiesWhereKernelsEditIt) {
  const TensorMapBytes bytes = Encode(Sample());
  uint32_t words[32];
  std::memcpy(words, bytes.data(), sizeof words);
  EXPECT_EQ(words[0], 0x12345670u);
  EXPECT_EQ(words[1], 0x7f00u);
  // rank - 1, bf16 = 10, 64-byte swizzle = 2, NaN, then the promotion
  EXPECT_EQ(words[2], 2u << 4 | 10u << 7 | 2u << 13 | 1u << 15 | 2u << 17);
  EXPECT_EQ(words[3], 2048u / 16);
  EXPECT_EQ(words[4], 0xffffffffu);
  EXPECT_EQ(words[7], 0xf0u);  // high bits of the second stride
  EXPECT_EQ(words[8], 999u);
  EXPECT_EQ(words[9], 69999u);
  EXPECT_EQ(words[10], 0xffffffffu);
  EXPECT_EQ(words[13], 31u << 24 | 7u << 3 | 1u << 6);
  EXPECT_EQ(words[14], 255u | 6u << 8);
}

TEST(TensorMap, SurvivesEncoding) {
  EXPECT_EQ(DecodeTensorMap(Encode(Sample())), Sample());
  for (uint8_t e = 0; e <= static_cast<uint8_t>(TensorElement::kTF32Ftz); ++e) {
    TensorMap map = Sample();
    map.element = static_cast<TensorElement>(e);
    EXPECT_EQ(DecodeTensorMap(Encode(map)), map) << Name(map.element);
  }
}

// A kernel may hand over anything: what is decoded is in range or refused.
TEST(TensorMap, AnyBytesAreRefusedOrInRange) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    TensorMapBytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % (i % 4 == 0 ? 4 : 256));
    const TensorMap map = DecodeTensorMap(bytes);
    if (!CheckTensorMap(map).empty()) continue;
    ASSERT_LE(map.rank, kMaxTensorDimensions);
    ASSERT_LE(map.RowBytes(), 2048u);
    for (uint32_t d = 0; d < map.rank; ++d) {
      ASSERT_GE(map.element_stride[d], 1u);
      ASSERT_LE(map.box[d], 256u);
    }
  }
}

TEST(TensorMap, SaysWhatIsWrong) {
  const auto fault = [](auto change) {
    TensorMap map = Sample();
    map.element_stride = {1, 1, 1, 1, 1};
    change(&map);
    return CheckTensorMap(map);
  };
  EXPECT_EQ(fault([](TensorMap*) {}), "");
  EXPECT_EQ(fault([](TensorMap* m) { m->rank = 6; }), "rank 6");
  EXPECT_EQ(fault([](TensorMap* m) { m->address += 8; }), "address 0x7f0012345678 is no multiple of 16");
  EXPECT_EQ(fault([](TensorMap* m) { m->box[0] = 33; }), "rows of the box have 66 bytes, no multiple of 16");
  EXPECT_NE(fault([](TensorMap* m) { m->interleave = TensorInterleave::k16B; }).find("interleaved"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::isa
