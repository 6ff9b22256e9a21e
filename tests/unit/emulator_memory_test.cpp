// Does the emulated memory hold what was written, refuse what is not memory, and show stores to the right SM
// in the right order?
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "frontend/emulator/device_memory.h"

namespace heddle::emulator {
namespace {

uint32_t Word(DeviceMemory& memory, uint64_t address) {
  uint32_t word = 0;
  EXPECT_TRUE(memory.Read(address, std::as_writable_bytes(std::span(&word, 1))).ok());
  return word;
}

void Append(StorePort& port, Cycle cycle, uint64_t address, uint32_t word) {
  port.Append(cycle, address, reinterpret_cast<const uint8_t*>(&word), 4);
}

// Byte i of the buffer is i mod 251.
void FillPattern(uint64_t offset, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((offset + i) % 251);
}

TEST(DeviceMemory, PagesAppearWhenTouched) {
  DeviceMemory memory;
  const uint64_t base =
      memory.Allocate({.name = "x", .size_bytes = uint64_t{8} << 30, .fill = FillPattern}).value();
  EXPECT_EQ(memory.MaterialisedBytes(), 0u);
  const uint64_t offset = (uint64_t{5} << 30) + 12345;
  std::array<std::byte, 3> bytes{};
  ASSERT_TRUE(memory.Read(base + offset, bytes).ok());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(static_cast<uint64_t>(bytes[i]), (offset + i) % 251);
  EXPECT_EQ(memory.MaterialisedBytes(), kPageBytes);
}

TEST(DeviceMemory, BoundsAreExactToTheByte) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "x", .size_bytes = 100}).value();
  EXPECT_NE(memory.Locate(base + 96, 4), nullptr);
  EXPECT_EQ(memory.Locate(base + 100, 1), nullptr);
  EXPECT_EQ(memory.Locate(base + 97, 4), nullptr);
  EXPECT_EQ(memory.Locate(base - 1, 1), nullptr);
  EXPECT_EQ(memory.Locate(0, 4), nullptr);
  EXPECT_EQ(memory.Locate(~uint64_t{0}, 1), nullptr);
  EXPECT_TRUE(memory.RangeAround(base + 99).contains(base, base + 100));
  EXPECT_FALSE(memory.RangeAround(base + 100).contains(base, base + 1));
}

TEST(DeviceMemory, NeighboursInOnePageKeepTheirBoundsAndBytes) {
  DeviceMemory memory;
  const uint64_t page = uint64_t{0x7f} << 32;
  ASSERT_TRUE(memory.Allocate({.name = "a", .size_bytes = 64, .address = page + 512}).ok());
  memory.Store(page + 512, reinterpret_cast<const uint8_t*>("abcd"), 4);
  ASSERT_TRUE(
      memory.Allocate({.name = "b", .size_bytes = 64, .address = page + 1024, .fill = FillPattern}).ok());
  EXPECT_NE(memory.Locate(page + 512 + 60, 4), nullptr);
  EXPECT_EQ(memory.Locate(page + 512 + 64, 4), nullptr);
  EXPECT_EQ(std::memcmp(memory.Locate(page + 512, 4), "abcd", 4), 0);
  EXPECT_EQ(*memory.Locate(page + 1024 + 7, 1), 7);
  EXPECT_FALSE(memory.Allocate({.name = "c", .size_bytes = 8, .address = page + 1080}).ok());
}

TEST(DeviceMemory, FreedMemoryIsGone) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "x", .size_bytes = 100}).value();
  memory.Store(base, reinterpret_cast<const uint8_t*>("abcd"), 4);
  memory.Free(base);
  EXPECT_EQ(memory.Locate(base, 4), nullptr);
  EXPECT_EQ(memory.MaterialisedBytes(), 0u);
  ASSERT_TRUE(memory.Allocate({.name = "y", .size_bytes = 100, .address = base}).ok());
  EXPECT_EQ(Word(memory, base), 0u);
}

TEST(DeviceMemory, BytesOfUnknownContentsBecomeKnownWhenWritten) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "x", .size_bytes = 100, .known = false}).value();
  EXPECT_FALSE(memory.IsKnown(base, 4));
  memory.Store(base + 4, reinterpret_cast<const uint8_t*>("abcd"), 4);
  EXPECT_TRUE(memory.IsKnown(base + 4, 4));
  EXPECT_FALSE(memory.IsKnown(base + 2, 4));
  EXPECT_FALSE(memory.IsKnown(base + 8, 1));
}

TEST(DeviceMemory, ACloneGoesItsOwnWay) {
  DeviceMemory memory;
  const uint64_t base =
      memory.Allocate({.name = "x", .size_bytes = 3 * kPageBytes, .fill = FillPattern}).value();
  memory.Store(base, reinterpret_cast<const uint8_t*>("abcd"), 4);
  const std::unique_ptr<DeviceMemory> clone = memory.Clone();
  EXPECT_EQ(clone->MaterialisedBytes(), kPageBytes);
  memory.Store(base, reinterpret_cast<const uint8_t*>("efgh"), 4);
  clone->Store(base + 4, reinterpret_cast<const uint8_t*>("ijkl"), 4);
  EXPECT_EQ(std::memcmp(clone->Locate(base, 8), "abcdijkl", 8), 0);
  EXPECT_EQ(std::memcmp(memory.Locate(base, 4), "efgh", 4), 0);
  EXPECT_EQ(*memory.Locate(base + 4, 1), 4);
  EXPECT_EQ(*clone->Locate(base + 2 * kPageBytes, 1), 2 * kPageBytes % 251);
}

TEST(DeviceMemory, AClonePageIsCopiedWhenItIsTouched) {
  DeviceMemory memory;
  const uint64_t base =
      memory.Allocate({.name = "x", .size_bytes = 3 * kPageBytes, .fill = FillPattern}).value();
  const uint64_t unknown = memory.Allocate({.name = "y", .size_bytes = kPageBytes, .known = false}).value();
  memory.Store(base, reinterpret_cast<const uint8_t*>("abcd"), 4);
  memory.Store(unknown, reinterpret_cast<const uint8_t*>("abcd"), 4);
  const std::unique_ptr<DeviceMemory> clone = memory.CloneOnTouch();
  EXPECT_EQ(clone->MaterialisedBytes(), 0);
  EXPECT_TRUE(clone->IsKnown(unknown, 4));
  EXPECT_FALSE(clone->IsKnown(unknown + 4, 1));
  clone->Store(base + 4, reinterpret_cast<const uint8_t*>("ijkl"), 4);
  clone->Store(unknown + 4, reinterpret_cast<const uint8_t*>("ijkl"), 4);
  EXPECT_EQ(clone->MaterialisedBytes(), 2 * kPageBytes);
  EXPECT_EQ(std::memcmp(clone->Locate(base, 8), "abcdijkl", 8), 0);
  EXPECT_EQ(*clone->Locate(base + 2 * kPageBytes, 1), 2 * kPageBytes % 251);
  EXPECT_TRUE(clone->IsKnown(unknown, 8));
  EXPECT_FALSE(clone->IsKnown(unknown + 8, 1));
  EXPECT_EQ(*memory.Locate(base + 4, 1), 4);
  EXPECT_FALSE(memory.IsKnown(unknown + 4, 1));
  const std::unique_ptr<DeviceMemory> whole = clone->Clone();
  EXPECT_EQ(std::memcmp(whole->Locate(base, 8), "abcdijkl", 8), 0);
}

TEST(DeviceMemory, OwnStoresAreSeenAtOnceOthersAfterPublishing) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "x", .size_bytes = 64}).value();
  StorePort& mine = memory.PortOfSm(3);
  StorePort& other = memory.PortOfSm(0);
  EXPECT_EQ(&memory.PortOfSm(3), &mine);
  Append(mine, 10, base + 4, 0x11223344);
  std::array<uint8_t, 16> bytes{};
  EXPECT_FALSE(mine.Misses(base, base + 16));
  EXPECT_TRUE(mine.Misses(base + 8, base + 16));
  mine.Overlay(base, bytes.data(), 16);
  EXPECT_EQ(bytes[3], 0);
  EXPECT_EQ(bytes[4], 0x44);
  EXPECT_EQ(bytes[7], 0x11);
  EXPECT_EQ(bytes[8], 0);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(Word(memory, base + 4), 0u);
  memory.PublishStores();
  EXPECT_TRUE(mine.empty());
  EXPECT_EQ(Word(memory, base + 4), 0x11223344u);
}

TEST(DeviceMemory, RacingStoresArePublishedByCycleThenSmThenSequence) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "x", .size_bytes = 64}).value();
  Append(memory.PortOfSm(0), 20, base, 1);
  Append(memory.PortOfSm(1), 19, base, 2);  // earlier: loses to SM 0
  Append(memory.PortOfSm(0), 30, base + 4, 3);
  Append(memory.PortOfSm(1), 30, base + 4, 4);  // same cycle: the higher SM wins
  Append(memory.PortOfSm(2), 40, base + 8, 5);
  Append(memory.PortOfSm(2), 40, base + 8, 6);  // same cycle and SM: the later one wins
  memory.PublishStores();
  EXPECT_EQ(Word(memory, base), 1u);
  EXPECT_EQ(Word(memory, base + 4), 4u);
  EXPECT_EQ(Word(memory, base + 8), 6u);
}

TEST(StorePort, RemembersManyStores) {
  StorePort port;
  constexpr uint32_t kStores = 5000;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < kStores; ++i) Append(port, i, 0x1000 + 24 * uint64_t{i} / 4 * 4, i + 1);
    for (uint32_t i = 0; i < kStores; ++i) {
      uint32_t word = 0;
      port.Overlay(0x1000 + 24 * uint64_t{i} / 4 * 4, reinterpret_cast<uint8_t*>(&word), 4);
      ASSERT_EQ(word, i + 1);
    }
    port.Clear();
    uint32_t word = 77;
    port.Overlay(0x1000, reinterpret_cast<uint8_t*>(&word), 4);
    EXPECT_EQ(word, 77u);
  }
}

// Across pages whose borders lie elsewhere on the two sides: the bytes, and what is known of them, arrive at the same distance.
TEST(DeviceMemory, CopiesBringBytesAndWhetherTheyAreKnown) {
  DeviceMemory memory;
  constexpr uint64_t kBytes = 3 * kPageBytes;
  const uint64_t from = memory.Allocate({.name = "from", .size_bytes = kBytes, .known = false}).value();
  const uint64_t to = memory.Allocate({.name = "to", .size_bytes = kBytes, .fill = FillPattern}).value();
  const std::vector<std::byte> written(kPageBytes + 100, std::byte{7});
  ASSERT_TRUE(memory.Write(from + 50, written).ok());
  ASSERT_TRUE(memory.Copy(to + 1000, from + 40, kPageBytes + 200).ok());
  EXPECT_EQ(*memory.Locate(to + 999, 1), 999 % 251);
  EXPECT_TRUE(memory.IsKnown(to + 999, 1));
  EXPECT_FALSE(memory.IsKnown(to + 1009, 1));  // ten bytes that nobody wrote
  for (const uint64_t at : {uint64_t{0}, kPageBytes - 1, kPageBytes + 99}) {
    EXPECT_EQ(*memory.Locate(to + 1010 + at, 1), 7) << at;
    EXPECT_TRUE(memory.IsKnown(to + 1010 + at, 1)) << at;
  }
  EXPECT_FALSE(memory.IsKnown(to + 1010 + kPageBytes + 100, 1));
  EXPECT_TRUE(memory.IsKnown(to + 1000 + kPageBytes + 200, 1));
  ASSERT_TRUE(memory.Copy(to, to + 2000, 100).ok());
  EXPECT_TRUE(memory.IsKnown(to, 100));
  EXPECT_EQ(*memory.Locate(to + 5, 1), 7);
  EXPECT_FALSE(memory.Copy(to, from + kBytes - 10, 20).ok());
  memory.MarkStale(from, 4);
  ASSERT_TRUE(memory.Copy(to + 2 * kPageBytes, from, 10).ok());
  EXPECT_TRUE(memory.IsStale(to + 2 * kPageBytes));
}

// Small tensors share a page; of two of them, 256 bytes each, a kernel leaves out one. So do bytes of one buffer, a pool's segment.
TEST(DeviceMemory, WhatStoresLeftOutIsStaleAndNotWhatLiesBeside) {
  DeviceMemory memory;
  const uint64_t base = memory.Allocate({.name = "output", .size_bytes = 256}).value();
  ASSERT_TRUE(memory.Allocate({.name = "table", .size_bytes = 256, .address = base + 256}).ok());
  EXPECT_FALSE(memory.AnyStale());
  memory.MarkStale(base + 252, 4);
  EXPECT_TRUE(memory.AnyStale());
  EXPECT_TRUE(memory.IsStale(base));
  EXPECT_FALSE(memory.IsStale(base + 256));
  EXPECT_FALSE(memory.IsStale(base - 1));
  EXPECT_TRUE(memory.Clone()->IsStale(base + 255));

  // A copy takes the mark along, what the host writes over a whole run takes it away.
  const uint64_t pool = memory.Allocate({.name = "pool", .size_bytes = 2 * kPageBytes}).value();
  memory.MarkStale(pool + kPageBytes - 1, 2);  // two runs of two pages
  ASSERT_TRUE(memory.Copy(pool + 1024, pool + kPageBytes - 512, 512).ok());
  EXPECT_FALSE(memory.IsStale(pool + 1024));
  EXPECT_TRUE(memory.IsStale(pool + 1024 + 256));
  EXPECT_FALSE(memory.IsStale(pool + 1024 + 512));
  EXPECT_TRUE(memory.IsStale(pool + kPageBytes));
  ASSERT_TRUE(memory.Write(pool + kPageBytes, std::vector<std::byte>(255)).ok());
  EXPECT_TRUE(memory.IsStale(pool + kPageBytes));
  ASSERT_TRUE(memory.Write(pool + kPageBytes, std::vector<std::byte>(256)).ok());
  EXPECT_FALSE(memory.IsStale(pool + kPageBytes));
  EXPECT_FALSE(memory.IsStale(pool + kPageBytes + 256));

  // A buffer that comes where another one was starts anew.
  memory.Free(base);
  ASSERT_TRUE(memory.Allocate({.name = "next", .size_bytes = 256, .address = base}).ok());
  EXPECT_FALSE(memory.IsStale(base));
}

// In a buffer that is known from its start, and in one that is not: the bytes are unknown until somebody writes them, the others stay.
TEST(DeviceMemory, ForgottenBytesAreUnknown) {
  DeviceMemory memory;
  const uint64_t known =
      memory.Allocate({.name = "known", .size_bytes = 3 * kPageBytes, .fill = FillPattern}).value();
  const uint64_t given =
      memory.Allocate({.name = "given", .size_bytes = 3 * kPageBytes, .known = false}).value();
  ASSERT_TRUE(memory.Write(given, std::vector<std::byte>(3 * kPageBytes, std::byte{7})).ok());
  for (const uint64_t base : {known, given}) {
    ASSERT_TRUE(memory.Forget(base + kPageBytes - 4, kPageBytes + 8).ok());
    EXPECT_TRUE(memory.IsKnown(base + kPageBytes - 8, 4));
    for (const uint64_t at : {kPageBytes - 4, kPageBytes + 100, 2 * kPageBytes}) {
      EXPECT_FALSE(memory.IsKnown(base + at, 1)) << at;
      EXPECT_EQ(*memory.Locate(base + at, 1), 0) << at;
    }
    EXPECT_TRUE(memory.IsKnown(base + 2 * kPageBytes + 4, 4));
    ASSERT_TRUE(memory.Write(base + kPageBytes, std::vector<std::byte>(2, std::byte{9})).ok());
    EXPECT_TRUE(memory.IsKnown(base + kPageBytes, 2));
    EXPECT_FALSE(memory.IsKnown(base + kPageBytes, 3));
  }
  EXPECT_EQ(*memory.Locate(known + kPageBytes - 5, 1), (kPageBytes - 5) % 251);
  EXPECT_EQ(*memory.Locate(given + kPageBytes - 5, 1), 7);
  const uint64_t never = memory.Allocate({.name = "never", .size_bytes = kPageBytes, .known = false}).value();
  const uint64_t before = memory.MaterialisedBytes();
  ASSERT_TRUE(memory.Forget(never, kPageBytes).ok());
  EXPECT_EQ(memory.MaterialisedBytes(), before);
  EXPECT_FALSE(memory.IsKnown(never, 1));
  EXPECT_FALSE(memory.Forget(known + 3 * kPageBytes - 4, 8).ok());
}

TEST(DeviceMemory, PagesAreGeneratedOnceWhenThreadsRace) {
  DeviceMemory memory;
  std::atomic<int> fills{0};
  const uint64_t base = memory
                            .Allocate({.name = "x",
                                       .size_bytes = 8 * kPageBytes,
                                       .fill =
                                           [&](uint64_t offset, std::span<std::byte> out) {
                                             ++fills;
                                             FillPattern(offset, out);
                                           }})
                            .value();
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 8 * kPageBytes; i += 4096)
        EXPECT_EQ(*memory.Locate(base + i, 1), static_cast<uint8_t>(i % 251));
    });
  threads.clear();
  EXPECT_EQ(fills.load(), 8);
}

}  // namespace
}  // namespace heddle::emulator
