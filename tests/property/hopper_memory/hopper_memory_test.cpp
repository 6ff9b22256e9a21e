// Do clusters, mbarriers and bulk copies do what the PTX manual says, and is a missing wait noticed?
#include "tests/property/hopper_memory/hopper_fixture.h"

namespace heddle::emulator {
namespace {

TEST_F(HopperMemory, MulticastsToTheCluster) {
  for (const uint32_t ctas : {2u, 4u}) {
    constexpr uint32_t kRows = 16, kRowBytes = 128, kClusters = 3;
    const auto tensor = Random<uint8_t>(kClusters * kRows * kRowBytes, 0, 255);
    TensorMap map;
    map.rank = 2;
    map.element = TensorElement::kU8;
    map.address = Buffer("tensor", tensor);
    map.size = {kRowBytes, kClusters * kRows, 1, 1, 1};
    map.stride_bytes[1] = kRowBytes;
    map.box = {kRowBytes, kRows / ctas, 1, 1, 1};
    const uint64_t out = Buffer("out", std::vector<uint8_t>(ctas * tensor.size()));
    LaunchDescription launch = Describe("Multicast", {ctas * kClusters}, {64}, Encode(map), out,
                                        static_cast<int>(kRows), static_cast<int>(kRowBytes));
    launch.cluster = Dim3{ctas};
    launch.dynamic_shared_bytes = kRows * kRowBytes + 1024;
    RunAllWays(launch, [&](DeviceMemory& memory) {
      const auto got = Read<uint8_t>(memory, out, ctas * tensor.size());
      for (size_t cta = 0; cta < ctas * kClusters; ++cta)
        for (size_t i = 0; i < kRows * kRowBytes; ++i)
          ASSERT_EQ(got[cta * kRows * kRowBytes + i], tensor[cta / ctas * kRows * kRowBytes + i])
              << cta << " " << i;
    });
  }
}

// ---- Clusters

TEST_F(HopperMemory, CountsInTheSharedMemoryOfTheCluster) {
  constexpr int kCount = 2000, kBins = 64;
  const auto in = Random<int>(kCount, 0, kBins - 1);
  std::vector<unsigned> want(kBins);
  for (const int bin : in) ++want[static_cast<size_t>(bin)];
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<unsigned>(kBins));
  LaunchDescription launch = Describe("ClusterHistogram", {8}, {128}, x, kCount, y, kBins);
  launch.cluster = Dim3{4};
  launch.dynamic_shared_bytes = 2048;
  RunAllWays(launch, [&](DeviceMemory& memory) { EXPECT_EQ(Read<unsigned>(memory, y, kBins), want); });
}

TEST_F(HopperMemory, PassesValuesRoundTheCluster) {
  constexpr uint32_t kCtas = 4, kRounds = 6;
  const uint64_t out = Buffer("out", std::vector<int>(kCtas * 128));
  LaunchDescription launch = Describe("Ring", {kCtas}, {32}, out, static_cast<int>(kRounds));
  launch.cluster = Dim3{kCtas};
  RunAllWays(launch, [&](DeviceMemory& memory) {
    const auto got = Read<int>(memory, out, kCtas * 128);
    for (uint32_t rank = 0; rank < kCtas; ++rank) {
      const uint32_t origin = (rank + 4 * kCtas - kRounds) % kCtas;
      for (uint32_t i = 0; i < 32; ++i) {
        ASSERT_EQ(got[rank * 128 + i], static_cast<int>(origin * 100 + i + kRounds));
        // What the next CTA received last is what this one sent.
        ASSERT_EQ(got[rank * 128 + 32 + i], static_cast<int>((origin + 1) % kCtas * 100 + i + kRounds - 1));
      }
      EXPECT_EQ(got[rank * 128 + 64], 31 * 32 / 2);
      EXPECT_EQ(got[rank * 128 + 65], 32);
    }
  });
}

TEST_F(HopperMemory, StoresAsynchronouslyIntoTheCluster) {
  const uint64_t out = Buffer("out", std::vector<int>(2 * 128));
  LaunchDescription launch = Describe("AsyncStore", {2}, {32}, out);
  launch.cluster = Dim3{2};
  RunAllWays(launch, [&](DeviceMemory& memory) {
    const auto got = Read<int>(memory, out, 2 * 128);
    for (int rank = 0; rank < 2; ++rank)
      for (int i = 0; i < 32; ++i) {
        const int value = (1 - rank) * 1000 + i;
        ASSERT_EQ(got[static_cast<size_t>(rank * 128 + i)], value);
        ASSERT_EQ(got[static_cast<size_t>(rank * 128 + 64 + 2 * i)], value);
        ASSERT_EQ(got[static_cast<size_t>(rank * 128 + 65 + 2 * i)], -value);
      }
  });
}

TEST_F(HopperMemory, KnowsItsPlaceInTheCluster) {
  const Dim3 grid{6, 4}, cluster{3, 2};
  const uint64_t out = Buffer("out", std::vector<uint32_t>(24 * 12));
  LaunchDescription launch = Describe("Places", grid, {1}, out);
  launch.cluster = cluster;
  RunAllWays(launch, [&](DeviceMemory& memory) {
    const auto got = Read<uint32_t>(memory, out, 24 * 12);
    for (uint32_t y = 0; y < 4; ++y)
      for (uint32_t x = 0; x < 6; ++x) {
        const std::vector<uint32_t> have(got.begin() + (y * 6 + x) * 12, got.begin() + (y * 6 + x + 1) * 12);
        const std::vector<uint32_t> want = {x % 3, y % 2, 3, 2, x / 3, y / 2, 2, 2, x % 3 + 3 * (y % 2),
                                            6,     1,     1};
        EXPECT_EQ(have, want) << x << "," << y;
      }
  });
}

// ---- mbarriers and bulk copies

TEST_F(HopperMemory, Pipelines) {
  constexpr uint32_t kCtas = 3, kTiles = 10, kTile = 96;
  const auto in = Random<float>(kCtas * kTiles * kTile, -100, 100);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<float>(kCtas * kTile));
  RunAllWays(Describe("Pipeline", {kCtas}, {128}, x, y, static_cast<int>(kTiles)), [&](DeviceMemory& memory) {
    const auto got = Read<float>(memory, y, kCtas * kTile);
    for (uint32_t cta = 0; cta < kCtas; ++cta)
      for (uint32_t i = 0; i < kTile; ++i) {
        float want = 0;
        for (uint32_t t = 0; t < kTiles; ++t) want = want * 0.5f + in[(cta * kTiles + t) * kTile + i];
        ASSERT_EQ(got[cta * kTile + i], want);
      }
  });
}

TEST_F(HopperMemory, MbarriersCountArrivalsAndTransactions) {
  const uint64_t out = Buffer("out", std::vector<uint32_t>(14));
  const std::vector<uint32_t> want = {5, 4, 0, 1, 2, 1, 0, 0, 1, 1, 4, 0, 1, 0};
  RunAllWays(Describe("MbarrierOperations", {1}, {32}, out),
             [&](DeviceMemory& memory) { EXPECT_EQ(Read<uint32_t>(memory, out, 14), want); });
}

TEST_F(HopperMemory, ArrivesBehindAsynchronousCopies) {
  const auto in = Random<int>(256, -1000, 1000);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<int>(256));
  RunAllWays(Describe("ArriveBehindCopies", {1}, {128}, x, y, 0), [&](DeviceMemory& memory) {
    const auto got = Read<int>(memory, y, 256);
    for (size_t i = 0; i < 256; ++i) ASSERT_EQ(got[i], in[i / 128 * 128 + 127 - i % 128]) << i;
  });
}

TEST_F(HopperMemory, CopiesInBulkInEveryDirection) {
  constexpr uint32_t kCtas = 4;
  const auto in = Random<uint32_t>(kCtas * 256, 0, 1 << 20);
  const std::vector<long long> most(128, (1ll << 62));
  const uint64_t x = Buffer("in", in), copied = Buffer("copied", std::vector<uint32_t>(kCtas * 256)),
                 added = Buffer("added", std::vector<uint32_t>(256)),
                 summed = Buffer("summed", std::vector<float>(256)),
                 halves = Buffer("halves", std::vector<uint16_t>(256)), least = Buffer("least", most),
                 exchanged = Buffer("exchanged", std::vector<uint32_t>(kCtas * 512));
  LaunchDescription launch =
      Describe("BulkCopies", {kCtas}, {256}, x, copied, added, summed, halves, least, exchanged);
  launch.cluster = Dim3{2};
  RunAllWays(launch, [&](DeviceMemory& memory) {
    EXPECT_EQ(Read<uint32_t>(memory, copied, kCtas * 256), in);
    const auto sum = Read<uint32_t>(memory, added, 256);
    const auto real = Read<float>(memory, summed, 256);
    const auto half = Read<uint16_t>(memory, halves, 256);
    const auto low = Read<long long>(memory, least, 128);
    const auto boxes = Read<uint32_t>(memory, exchanged, kCtas * 512);
    for (size_t i = 0; i < 256; ++i) {
      uint32_t want = 0;
      float want_real = 0;
      for (uint32_t cta = 0; cta < kCtas; ++cta) {
        const uint32_t received = in[(cta ^ 1) * 256 + i];
        want += in[cta * 256 + i];
        want_real += static_cast<float>(received & 255) * 0.25f;
        ASSERT_EQ(boxes[cta * 512 + i], received);
        ASSERT_EQ(boxes[cta * 512 + 256 + i], received + 7);
      }
      ASSERT_EQ(sum[i], want);
      ASSERT_EQ(real[i], want_real);
      ASSERT_EQ(half[i], FloatToHalf(kCtas));
      if (i >= 128) continue;
      long long want_low = most[i];
      for (uint32_t cta = 0; cta < kCtas; ++cta)
        want_low = std::min(want_low, static_cast<long long>(in[cta * 256 + 2 * i] |
                                                             uint64_t{in[cta * 256 + 2 * i + 1]} << 32));
      ASSERT_EQ(low[i], want_low);
    }
  });
}

TEST_F(HopperMemory, DependentLaunchesRunAlone) {
  const uint64_t out = Buffer("out", std::vector<int>(64));
  RunAllWays(Describe("Dependent", {1}, {64}, out), [&](DeviceMemory& memory) {
    const auto got = Read<int>(memory, out, 64);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], 3 * i);
  });
}

// ---- Faults of kernels

TEST_F(HopperMemory, WhatIsSentToACtaThatHasEndedIsSaid) {
  const uint64_t out = Buffer("out", std::vector<int>(32, -1));
  LaunchDescription launch = Describe("TalksToTheDead", {2}, {32}, out);
  launch.cluster = Dim3{2};
  const Coupled run = RunOnGpu(launch, {});
  ASSERT_TRUE(run.stats.ok()) << run.stats.error().ToString();
  EXPECT_EQ(Read<int>(*run.memory, out, 32), std::vector<int>(32, 0));  // the load came back
  ASSERT_EQ(issues_.size(), 2u);  // the load and the store
  for (const isa::StreamIssue& issue : issues_) EXPECT_EQ(issue.kind, "remote_access_after_exit");
}

TEST_F(HopperMemory, AnArrivalThatNeverComesIsADeadlock) {
  const Coupled run = RunOnGpu(Describe("WaitsForTwo", {1}, {32}, Buffer("out", std::vector<int>(1))), {});
  ASSERT_FALSE(run.stats.ok());
  EXPECT_EQ(run.stats.error().code, ExitCode::kDidNotFinish);
  EXPECT_NE(run.stats.error().message.find("mbarrier"), std::string::npos) << run.stats.error().ToString();
}

// ---- Races: what a missing wait does is seen when effects are held back, and only then.

TEST_F(HopperMemory, CatchesMissingWaits) {
  const auto in = Random<int>(4 * 256, 1, 1000);
  const uint64_t x = Buffer("in", in), y = Buffer("out", std::vector<int>(4 * 256));
  const auto wrong = [&](const LaunchDescription& launch, const std::vector<int>& want) {
    uint32_t failures = 0;
    for (uint64_t seed = 0; seed <= 4; ++seed) {
      const bool same = Read<int>(*RunOnce(launch, seed), y, want.size()) == want;
      if (seed == 0) {
        EXPECT_TRUE(same) << "without delay";
      }
      failures += same ? 0 : 1;
    }
    return failures;
  };
  EXPECT_EQ(wrong(Describe("LoadWithWait", {4}, {256}, x, y), in), 0u);
  EXPECT_GE(wrong(Describe("LoadWithoutWait", {4}, {256}, x, y), in), 2u);

  std::vector<int> stored(512);
  for (size_t i = 0; i < 512; ++i) stored[i] = static_cast<int>(i / 256 * 1000 + i % 256);
  EXPECT_EQ(wrong(Describe("StoreWithWait", {1}, {256}, y), stored), 0u);
  EXPECT_GE(wrong(Describe("StoreWithoutWait", {1}, {256}, y), stored), 2u);

  std::vector<int> reversed(128);
  for (size_t i = 0; i < 128; ++i) reversed[i] = in[127 - i];
  EXPECT_EQ(wrong(Describe("CopyAsyncWithWait", {1}, {128}, x, y), reversed), 0u);
  EXPECT_GE(wrong(Describe("CopyAsyncWithoutWait", {1}, {128}, x, y), reversed), 2u);
}

}  // namespace
}  // namespace heddle::emulator
