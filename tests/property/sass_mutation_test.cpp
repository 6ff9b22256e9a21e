// Damaged cubins and listings lead to an error or to a sane result, never to a crash. Seeds are fixed: a failure repeats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "tests/support/sass_seeds.h"
#include "tests/support/sass_targets.h"

namespace heddle::testing {
namespace {

using Bytes = std::vector<std::byte>;

// One to eight edits: a bit, a byte, a word of an interesting value, a cut, a repeated stretch.
Bytes Mutate(Bytes bytes, std::mt19937_64& random) {
  constexpr uint64_t kValues[] = {
      0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, ~uint64_t{0}};
  const uint64_t edits = 1 + random() % 8;
  for (uint64_t i = 0; i < edits && !bytes.empty(); ++i) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] ^= std::byte{1} << (random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random());
        break;
      case 2:
      case 3: {
        const size_t size = std::min<size_t>(size_t{1} << (random() % 4), bytes.size() - at);
        std::memcpy(bytes.data() + at, &kValues[random() % std::size(kValues)], size);
        break;
      }
      case 4:
        if (random() % 8 == 0) bytes.resize(at);
        break;
      default: {
        const Bytes stretch(
            bytes.begin() + static_cast<ptrdiff_t>(at),
            bytes.begin() + static_cast<ptrdiff_t>(std::min(at + random() % 24, bytes.size())));
        bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(random() % bytes.size()), stretch.begin(),
                     stretch.end());
      }
    }
  }
  return bytes;
}

Bytes BytesOf(const ListingSeed& seed) {
  Bytes bytes(16 + seed.text.size());
  std::memcpy(bytes.data(), &seed.low, 8);
  std::memcpy(bytes.data() + 8, &seed.high, 8);
  std::memcpy(bytes.data() + 16, seed.text.data(), seed.text.size());
  return bytes;
}

TEST(SassMutation, SeedsAreValid) {
  for (const auto& seed : CubinSeeds()) EXPECT_TRUE(TryCubin(seed));
  for (const auto& seed : ListingSeeds()) EXPECT_TRUE(TryListing(BytesOf(seed))) << seed.text;
}

TEST(SassMutation, DamagedCubins) {
  std::mt19937_64 random(1);
  int accepted = 0;
  const auto seeds = CubinSeeds();
  for (int i = 0; i < 20000; ++i)
    accepted += TryCubin(Mutate(seeds[static_cast<size_t>(i) % seeds.size()], random)) ? 1 : 0;
  // Neither all harmless nor all fatal, or the mutations test nothing.
  EXPECT_GT(accepted, 200);
  EXPECT_LT(accepted, 18000);
}

TEST(SassMutation, EveryPrefixOfACubin) {
  const Bytes whole = CubinSeeds().front();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(TryCubin(std::span(whole).first(size))) << size;
}

TEST(SassMutation, DamagedListings) {
  std::mt19937_64 random(2);
  int accepted = 0;
  const auto seeds = ListingSeeds();
  for (int i = 0; i < 20000; ++i)
    accepted += TryListing(Mutate(BytesOf(seeds[static_cast<size_t>(i) % seeds.size()]), random)) ? 1 : 0;
  EXPECT_GT(accepted, 200);
  EXPECT_LT(accepted, 18000);
}

}  // namespace
}  // namespace heddle::testing
