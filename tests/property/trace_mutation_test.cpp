// Whatever happens to a trace or a description: an error with exit code 4, or the same contents; never a crash.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "frontend/trace/check.h"
#include "frontend/trace/htrace.h"
#include "tests/unit/fake_toolchain.h"

namespace heddle::trace {
namespace {

namespace fs = std::filesystem;

class TraceMutation : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("heddle_mutation_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    path_ = (folder_ / "t.htrace").string();
    ASSERT_TRUE(WriteTrace(SampleTrace(), path_).ok());
    std::ifstream in(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    digest_ = Digest(SampleTrace());
  }
  void TearDown() override { fs::remove_all(folder_); }

  // true: refused.
  bool Refused(const std::string& bytes) {
    fs::remove(path_);  // overwriting in place would wait for the disk each time
    std::ofstream(path_, std::ios::binary) << bytes;
    const Result<Trace> trace = ReadTrace(path_);
    if (trace.ok()) {
      EXPECT_EQ(Digest(*trace), digest_);
      return false;
    }
    EXPECT_EQ(trace.error().code, ExitCode::kTrace);
    EXPECT_FALSE(trace.error().next_step.empty()) << trace.error().message;
    return true;
  }

  fs::path folder_;
  std::string path_;
  std::string bytes_;
  std::string digest_;
};

TEST_F(TraceMutation, CutShortAnywhere) {
  for (size_t size = 0; size < bytes_.size(); size += 512)
    EXPECT_TRUE(Refused(bytes_.substr(0, size))) << size;
  EXPECT_TRUE(Refused(bytes_.substr(0, bytes_.size() - 1)));
}

TEST_F(TraceMutation, RandomBytesChanged) {
  std::mt19937_64 random(1);
  int refused = 0;
  constexpr int kRounds = 800;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = bytes_;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    refused += Refused(bytes);
  }
  EXPECT_GT(refused, kRounds / 10);  // most bytes of so small a file are unused space in its pages
}

TEST_F(TraceMutation, PagesExchanged) {
  std::mt19937_64 random(2);
  constexpr size_t kPage = 1024;
  for (int round = 0; round < 200; ++round) {
    std::string bytes = bytes_;
    const size_t from = random() % (bytes.size() / kPage) * kPage;
    const size_t to = random() % (bytes.size() / kPage) * kPage;
    if (from != to) {
      bytes.replace(to, kPage, bytes_.substr(from, kPage));
      Refused(bytes);
    }
  }
}

// Characters, words and lines of a description removed, doubled and exchanged.
TEST(DescriptionMutation, EveryDescriptionBuildsOrSaysWhy) {
  const std::string original = kScaleDescription;
  std::mt19937_64 random(3);
  const Toolchain toolchain = FakeToolchain();
  int built = 0;
  constexpr int kRounds = 3000;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = original;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes && !text.empty(); ++i) {
      const size_t at = random() % text.size();
      const size_t length = random() % 12;
      switch (random() % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, text.substr(random() % text.size(), length));
          break;
        case 2:
          text[at] = static_cast<char>(random());
          break;
        default:
          text.insert(at, std::to_string(random() >> (random() % 60)));
          break;
      }
    }
    const Result<Trace> trace = BuildTraceFromText(text, "d", {}, toolchain);
    built += trace.ok();
    if (trace.ok()) continue;
    EXPECT_TRUE(trace.error().code == ExitCode::kTrace || trace.error().code == ExitCode::kConfiguration);
    EXPECT_FALSE(trace.error().message.empty());
  }
  EXPECT_GT(built, kRounds / 50);
  EXPECT_LT(built, kRounds);
}

}  // namespace
}  // namespace heddle::trace
