// The library that watches a process, called by several threads at once, with what CUPTI and the driver may do at the same time: for the
// thread sanitizer, and for what must come out whatever the order. Reads the records without the protobuf library, so that few files are
// built for it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "frontend/capture/frame.h"
#include "frontend/capture/inject/capture.h"
#include "frontend/capture/inject/image.h"
#include "frontend/capture/inject/sink.h"
#include "frontend/capture/inject/snapshot.h"
#include "tests/support/capture_seam.h"
#include "tests/support/cubin_builder.h"

namespace heddle::capture {
namespace {

namespace fs = std::filesystem;

// What one thread of a process does: loads code, launches it, moves memory, builds a graph and runs it.
void Work(uint32_t thread, uint32_t rounds, const std::vector<std::byte>& cubin) {
  for (uint32_t i = 0; i < rounds; ++i) {
    const uint32_t number = thread * 100000 + i;
    abi::ModuleData module{number, cubin.size(), reinterpret_cast<const char*>(cubin.data())};
    if (i % 16 == 0) Resource(abi::kModuleLoaded, &module);
    uint64_t pointer = 0x7f0000001000 + number;
    uint32_t value = number;
    void* values[] = {&pointer, &value};
    auto* const function = reinterpret_cast<abi::Handle>(uintptr_t{0x1000} + thread * 64 + i % 4);
    Call(abi::k_cuLaunchKernel,
         abi::LaunchParams{function, {1, 1, 1}, {32, 1, 1}, 0, nullptr, values, nullptr}, number);
    KernelRecord(number, 1, 0);
    uint64_t address = 0x7f0000000000 + number * 4096;
    Call(abi::k_cuMemAlloc_v2, abi::AllocParams{&address, 4096}, number);
    Call(abi::k_cuMemcpyDtoDAsync_v2, abi::CopyParams{address, address + 64, 64, nullptr}, number);
    abi::GraphData node{};
    node.graph = reinterpret_cast<abi::Handle>(uintptr_t{0x9000} + thread);
    node.node = reinterpret_cast<abi::Handle>(uintptr_t{0x90000} + number);
    Resource(abi::kGraphNodeCreated, &node);
    Call(abi::k_cuGraphLaunch, abi::GraphLaunchParams{node.graph, nullptr}, number);
    if (i % 16 == 15) Resource(abi::kModuleUnloadStarting, &module);
  }
}

// Frames that are whole, and how often this byte string is in their payloads.
struct File {
  size_t frames = 0;
  bool whole = true;
  std::string payload;
};
File ReadFrames(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  File file;
  for (size_t at = 8; at < bytes.size();) {
    uint32_t length = 0, crc = 0;
    if (at + 8 > bytes.size()) return file.whole = false, file;
    std::memcpy(&length, &bytes[at], 4);
    std::memcpy(&crc, &bytes[at + 4], 4);
    if (at + 8 + length > bytes.size() || Crc32(&bytes[at + 8], length) != crc)
      return file.whole = false, file;
    file.payload += bytes.substr(at + 8, length);
    ++file.frames;
    at += 8 + length;
  }
  return file;
}

TEST(CaptureThreads, ThreadsTheFlusherAndTheEndDoNotDisturbEachOther) {
  constexpr uint32_t kThreads = 4, kRounds = 400;
  const std::vector<std::byte> cubin = heddle::testing::BuildCubin({});
  const fs::path folder = fs::temp_directory_path() / ("heddle_threads_" + std::to_string(getpid()));
  fs::create_directories(folder);
  setenv("HEDDLE_CAPTURE_FOLDER", folder.c_str(), 1);
  setenv("HEDDLE_CAPTURE_SNAPSHOT", "index", 1);
  const Cupti cupti = FakeCupti();
  ASSERT_TRUE(StartCapture(&cupti, nullptr));
  const std::string records = std::string(SinkFolder()) + "/records";
  std::atomic<bool> done{false};
  std::thread flusher([&] {
    while (!done) FlushSink();
  });
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t <= kThreads; ++t) threads.emplace_back([&, t] { Work(t, kRounds, cubin); });
  for (std::thread& each : threads) each.join();
  done = true;
  flusher.join();
  // Threads that go on while the capture ends.
  for (uint32_t t = 1; t <= kThreads; ++t)
    threads[t - 1] = std::thread([&, t] { Work(t, kRounds / 4, cubin); });
  StopCapture();
  for (std::thread& each : threads) each.join();
  const File file = ReadFrames(records);
  EXPECT_TRUE(file.whole);
  EXPECT_GT(file.frames, 1u);
  // The parameters of every launch before the end: the pointer and the number, once each.
  for (uint32_t t = 1; t <= kThreads; ++t)
    for (uint32_t i = 0; i < kRounds; ++i) {
      const uint32_t number = t * 100000 + i;
      const uint64_t pointer = 0x7f0000001000 + number;
      std::string bytes(12, '\0');
      std::memcpy(bytes.data(), &pointer, 8);
      std::memcpy(bytes.data() + 8, &number, 4);
      ASSERT_NE(file.payload.find(bytes), std::string::npos) << number;
    }
  AbandonImages();
  fs::remove_all(folder);
}

}  // namespace
}  // namespace heddle::capture
