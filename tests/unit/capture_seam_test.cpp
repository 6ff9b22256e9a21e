// The library that watches a process, in this process: its functions are called through the seam, with functions of the test in the
// place of CUPTI's, and what it wrote is read with the protobuf library.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "frontend/capture/frame.h"
#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/image.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/record.pb.h"
#include "frontend/capture/record_file.h"
#include "tests/support/capture_seam.h"
#include "tests/support/cubin_builder.h"
#include "tests/support/shell.h"

namespace heddle::capture {
namespace {

namespace fs = std::filesystem;
using testing_support::TemporaryFolder;

// A capture into a folder, with a module of one kernel "k" that takes (u64, u32).
class SeamTest : public ::testing::Test {
 protected:
  SeamTest() : cubin_(heddle::testing::BuildCubin({})) {
    setenv("HEDDLE_CAPTURE_FOLDER", folder_.path().c_str(), 1);
    EXPECT_TRUE(StartCapture(&cupti_, nullptr));
    abi::ModuleData module{1, cubin_.size(), reinterpret_cast<const char*>(cubin_.data())};
    Resource(abi::kModuleLoaded, &module);
  }
  ~SeamTest() override {
    StopCapture();
    AbandonImages();
  }

  template <typename Params>
  void Call(uint32_t id, const Params& params, uint32_t correlation = 1) {
    capture::Call(id, params, correlation);
  }
  void Launch(uint32_t correlation) {
    uint64_t pointer = 0x7f0000001000 + correlation;
    uint32_t number = correlation;
    void* values[] = {&pointer, &number};
    abi::LaunchParams params{this, {1, 2, 3}, {32, 1, 1}, 64, nullptr, values, nullptr};
    Call(abi::k_cuLaunchKernel, params, correlation);
  }
  void KernelRecord(uint32_t correlation) {
    const uint64_t start = 1700000000000000000u + correlation * 1000;
    capture::KernelRecord(correlation, start, start + 900);
  }

  std::string Records() const { return std::string(SinkFolder()) + "/records"; }
  std::vector<pb::Record> Read() {
    StopCapture();
    std::vector<pb::Record> records;
    const Result<RecordFileEnd> end =
        ReadRecords(Records(), [&](const pb::Record& r) { records.push_back(r); });
    EXPECT_TRUE(end.ok() && end->in_order && end->lost_bytes == 0);
    return records;
  }

  TemporaryFolder folder_;
  Cupti cupti_ = FakeCupti();
  std::vector<std::byte> cubin_;
};

template <typename Predicate>
pb::Record Only(const std::vector<pb::Record>& records, Predicate is) {
  pb::Record found;
  int count = 0;
  for (const pb::Record& each : records)
    if (is(each)) found = each, ++count;
  EXPECT_EQ(count, 1);
  return found;
}

TEST_F(SeamTest, RecordsReadBackAsTheContractSays) {
  Launch(41);
  KernelRecord(41);
  const uint64_t size[2] = {128, 16}, stride[1] = {256};
  const uint32_t box[2] = {64, 8}, step[2] = {1, 1};
  char map[128] = "map";
  Call(abi::k_cuTensorMapEncodeTiled,
       abi::TensorMapParams{map, 6, 2, 0x7f0000000000, size, stride, box, step, 1, 3, 2, 1});
  Call(abi::k_cuMemsetD8_v2, abi::FillParams{0x7f0000000000, 0xaaaaaa07, 100, nullptr});
  const std::vector<pb::Record> records = Read();
  EXPECT_EQ(records.front().start().version(), kRecordVersion);
  EXPECT_EQ(records.front().start().cupti_version(), 130001u);
  const pb::Launch launch = Only(records, [](auto& r) { return r.has_launch(); }).launch();
  EXPECT_THAT(launch.grid(), ::testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(launch.block(), ::testing::ElementsAre(32, 1, 1));
  EXPECT_EQ(launch.shared_bytes(), 64u);
  EXPECT_EQ(launch.correlation(), 41u);
  EXPECT_EQ(launch.parameters(), std::string("\x29\x10\0\0\0\x7f\0\0\x29\0\0\0", 12));
  const pb::Kernel kernel = Only(records, [](auto& r) { return r.has_kernel(); }).kernel();
  EXPECT_EQ(kernel.start_ns(), 1700000000000041000u);
  EXPECT_EQ(kernel.duration_ns(), 900u);
  const pb::TensorMap tensor = Only(records, [](auto& r) { return r.has_tensor_map(); }).tensor_map();
  EXPECT_THAT(tensor.size(), ::testing::ElementsAre(128, 16));
  EXPECT_THAT(tensor.stride_bytes(), ::testing::ElementsAre(256));
  EXPECT_THAT(tensor.box(), ::testing::ElementsAre(64, 8));
  EXPECT_EQ(tensor.swizzle(), 3u);
  EXPECT_EQ(tensor.fill(), 1u);
  EXPECT_EQ(tensor.map().size(), 128u);
  const pb::Fill fill = Only(records, [](auto& r) { return r.has_fill(); }).fill();
  EXPECT_EQ(fill.value(), 7u);  // what stands behind a byte in the call's structure is not the value
  const pb::Image image = Only(records, [](auto& r) { return r.has_image(); }).image();
  EXPECT_EQ(image.size_bytes(), cubin_.size());
  EXPECT_EQ(image.crc(), Crc32(cubin_.data(), cubin_.size()));
}

// At most 2 us of processor time and 500 bytes a launch, its kernel record with it.
TEST_F(SeamTest, ALaunchCostsAtMostTwoMicrosecondsAndFiveHundredBytes) {
  constexpr uint32_t kLaunches = 50000;
  Launch(1);  // the function is looked up once
  FlushSink();
  const auto bytes_before = fs::file_size(Records());
  timespec before{}, after{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  for (uint32_t i = 0; i < kLaunches; ++i) Launch(i);
  std::vector<uint8_t> full(kKernelRecordBytes * kLaunches);
  for (uint32_t i = 0; i < kLaunches; ++i) {
    abi::KernelActivity kernel{};
    kernel.kind = abi::kConcurrentKernel;
    kernel.correlation_id = i;
    kernel.start = 1700000000000000000u + i;
    kernel.end = kernel.start + 12345;
    kernel.name = "k";
    std::memcpy(full.data() + kKernelRecordBytes * i, &kernel, sizeof kernel);
  }
  auto* owned = static_cast<uint8_t*>(std::malloc(full.size()));
  std::memcpy(owned, full.data(), full.size());
  TakeBuffer(nullptr, 0, owned, full.size(), full.size());
  FlushSink();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  const double nanoseconds = static_cast<double>(after.tv_sec - before.tv_sec) * 1e9 +
                             static_cast<double>(after.tv_nsec - before.tv_nsec);
  const double bytes = static_cast<double>(fs::file_size(Records()) - bytes_before);
  RecordProperty("nanoseconds_per_launch", std::to_string(nanoseconds / kLaunches));
  RecordProperty("bytes_per_launch", std::to_string(bytes / kLaunches));
  std::printf("%.0f ns and %.0f bytes a launch\n", nanoseconds / kLaunches, bytes / kLaunches);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if !defined(__has_feature)
  EXPECT_LE(nanoseconds / kLaunches, 2000);
#endif
#endif
  EXPECT_LE(bytes / kLaunches, 500);
}

TEST_F(SeamTest, WhatComesAfterTheEndIsDropped) {
  Launch(1);
  CloseSink();
  Launch(2);
  std::vector<pb::Record> records;
  ASSERT_TRUE(ReadRecords(Records(), [&](const pb::Record& r) { records.push_back(r); }).ok());
  Only(records, [](auto& r) { return r.has_launch(); });
}

// Whatever bytes a process loads: the layout is right, or there is none.
TEST(CaptureLayout, AnyBytesAreSafe) {
  const std::vector<std::byte> good = heddle::testing::BuildCubin({});
  const auto read = [](const std::vector<std::byte>& bytes, ParameterLayout* layout) {
    return ReadLayout(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), "k", layout);
  };
  ParameterLayout layout;
  ASSERT_TRUE(read(good, &layout));
  ASSERT_EQ(layout.count, 2u);
  EXPECT_EQ(layout.bytes, 12u);
  EXPECT_EQ(layout.slots[1].offset, 8u);
  EXPECT_EQ(layout.slots[1].size, 4u);
  std::free(layout.slots);
  std::minstd_rand random(7);
  int read_well = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::byte> bytes = good;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    if (!read(bytes, &layout)) continue;
    ++read_well;
    for (uint32_t i = 0; i < layout.count; ++i)
      EXPECT_LE(layout.slots[i].offset + layout.slots[i].size, kMaxParameterBytes);
    std::free(layout.slots);
  }
  EXPECT_GT(read_well, 100);
}

TEST(CaptureRecords, DamageEndsTheFileWhereItIs) {
  const TemporaryFolder folder;
  const auto frame = [](uint32_t process) {
    pb::Batch batch;
    batch.add_record()->mutable_start()->set_process(process);
    const std::string payload = batch.SerializeAsString();
    const uint32_t header[2] = {static_cast<uint32_t>(payload.size()), Crc32(payload.data(), payload.size())};
    return std::string(reinterpret_cast<const char*>(header), sizeof header) + payload;
  };
  EXPECT_EQ(Crc32("123456789", 9), 0xcbf43926u);
  const std::string path = folder / "records";
  const auto count = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    int records = 0;
    const auto end = ReadRecords(path, [&](const pb::Record&) { ++records; });
    return end.ok() ? std::make_pair(records, end->lost_bytes) : std::make_pair(-1, uint64_t{0});
  };
  const std::string two = std::string(kRecordMagic) + frame(1) + frame(2);
  EXPECT_EQ(count(two), std::make_pair(2, uint64_t{0}));
  for (size_t cut = kRecordMagicBytes + frame(1).size(); cut < two.size(); ++cut)
    EXPECT_EQ(count(two.substr(0, cut)),
              std::make_pair(1, uint64_t{cut - kRecordMagicBytes - frame(1).size()}))
        << cut;
  std::string flipped = two;
  flipped.back() ^= 1;
  EXPECT_EQ(count(flipped), std::make_pair(1, uint64_t{frame(2).size()}));
  EXPECT_EQ(count("heddle").first, -1);
  EXPECT_EQ(count(std::string(kRecordMagic)).first, -1);
}

}  // namespace
}  // namespace heddle::capture
