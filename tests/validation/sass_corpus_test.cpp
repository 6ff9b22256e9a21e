// Does every real kernel decode without a gap, and do the registers that heddle says an instruction reads and
// writes agree with the live ranges that nvdisasm prints?
//
// The corpus is a folder of cubins, HEDDLE_CORPUS_DIR; without it, or without nvdisasm, the tests are
// skipped. HEDDLE_CORPUS_FULL=1 takes every file (minutes), otherwise a spread of small ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "sim/isa/registers.h"
#include "tests/validation/live_ranges.h"

namespace heddle::sass {
namespace {

namespace fs = std::filesystem;

constexpr size_t kQuickFiles = 14;
constexpr uintmax_t kQuickMaxBytes = 60000;

struct CorpusFile {
  std::string path;
  std::string name;  // relative to the corpus
};

// The files to decode, and nvdisasm. Skips where it lacks either.
class SassFiles : public testing::Test {
 protected:
  void Gather(const fs::path& directory, uintmax_t max_bytes) {
    auto found = FindDisassembler();
    if (!found.ok()) GTEST_SKIP() << found.error().ToString();
    nvdisasm_ = *found;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (entry.path().extension() != ".cubin" || entry.file_size() > max_bytes) continue;
      files_.push_back({entry.path().string(), fs::relative(entry.path(), directory).string()});
    }
    std::sort(files_.begin(), files_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  void ExpectEveryKernelDecodes() const;
  void ExpectRegistersAgree() const;

  std::string nvdisasm_;
  std::vector<CorpusFile> files_;
};

class SassCorpus : public SassFiles {
 protected:
  void SetUp() override {
    const char* directory = std::getenv("HEDDLE_CORPUS_DIR");
    if (directory == nullptr || !fs::is_directory(directory))
      GTEST_SKIP() << "HEDDLE_CORPUS_DIR names no folder";
    const bool full = std::getenv("HEDDLE_CORPUS_FULL") != nullptr;
    Gather(directory, full ? std::numeric_limits<uintmax_t>::max() : kQuickMaxBytes);
    if (full || files_.size() <= kQuickFiles) return;
    std::vector<CorpusFile> spread;
    for (size_t i = 0; i < kQuickFiles; ++i) spread.push_back(files_[i * files_.size() / kQuickFiles]);
    files_ = spread;
  }
};

// tests/validation/data/opcode_zoo.cu, where the build found nvcc.
class OpcodeZoo : public SassFiles {
 protected:
  void SetUp() override {
    const fs::path directory = fs::path(HEDDLE_BINARY_DIR) / "tests" / "validation";
    Gather(directory, std::numeric_limits<uintmax_t>::max());
    if (files_.empty() && !IsSkipped()) GTEST_SKIP() << "built without nvcc";
  }
};

void SassFiles::ExpectEveryKernelDecodes() const {
  size_t instructions = 0;
  size_t kernels = 0;
  for (const CorpusFile& file : files_) {
    const auto bytes = ReadFileBytes(file.path);
    ASSERT_TRUE(bytes.ok());
    const auto cubin = ReadCubin(*bytes, file.name);
    if (!cubin.ok()) {
      ADD_FAILURE() << cubin.error().ToString();
      continue;
    }
    EXPECT_FALSE(cubin->kernels.empty()) << file.name;
    const auto listing = RunDisassembler(nvdisasm_, {"-json"}, *bytes, file.name);
    if (!listing.ok()) {
      ADD_FAILURE() << listing.error().ToString();
      continue;
    }
    for (const CubinKernel& kernel : cubin->kernels) {
      const auto code = DecodeListing(*listing, kernel, cubin->sm_version, file.name);
      if (!code.ok()) {
        ADD_FAILURE() << code.error().ToString();
        continue;
      }
      ++kernels;
      instructions += code->instructions.size();
    }
  }
  fmt::print("{} files, {} kernels, {} instructions\n", files_.size(), kernels, instructions);
}

TEST_F(SassCorpus, EveryKernelDecodes) { ExpectEveryKernelDecodes(); }
TEST_F(OpcodeZoo, EveryKernelDecodes) { ExpectEveryKernelDecodes(); }

struct Tally {
  size_t fields = 0;
  size_t misses = 0;
  size_t set_aside = 0;  // fields that nvdisasm's table does not cover
};

// What nvdisasm's table leaves out or marks against the code's own evidence:
// - the predicate file of P2R, R2P and UP2UR shows no marks at all;
// - the source predicate of LDGSTS is marked as written too, though code goes on to use its value;
// - uniform registers from UR63 on have no column.
bool IsSetAside(const isa::Instruction& instruction, const LiveMark& mark) {
  const bool is_predicate = mark.file == "P" || mark.file == "UP";
  switch (instruction.op) {
    case isa::Op::kP2R:
    case isa::Op::kR2P:
    case isa::Op::kUP2UR:
      return is_predicate && !mark.read && !mark.written;
    case isa::Op::kLDGSTS:
      return is_predicate && mark.read && mark.written;
    default:
      return mark.file == "UR" && mark.index >= 63;
  }
}

// A miss as "sm_90 HGMMA.64x128x16.F32: R3 read by heddle alone".
std::string Describe(uint32_t sm_version, const isa::Instruction& instruction, const LiveMark& mark,
                     bool reads, bool writes) {
  return fmt::format("sm_{} {:#x} {}: {}{} heddle {}{} oracle {}{}", sm_version, instruction.pc,
                     isa::ToString(instruction), mark.file, mark.index, reads ? "r" : "-", writes ? "w" : "-",
                     mark.read ? "r" : "-", mark.written ? "w" : "-");
}

// Every register that either side names is two fields: read and written.
void Compare(uint32_t sm_version, const isa::Instruction& instruction, const std::vector<LiveMark>& marks,
             Tally& tally, std::map<std::string, std::vector<std::string>>& misses) {
  const isa::RegisterUse use = isa::RegistersOf(instruction);
  isa::RegisterUse seen;
  const auto check = [&](const LiveMark& mark, auto& reads, auto& writes, auto& seen_reads) {
    const bool reads_it = reads.test(mark.index);
    const bool writes_it = writes.test(mark.index);
    seen_reads.set(mark.index);
    if (IsSetAside(instruction, mark)) {
      tally.set_aside += 2;
      return;
    }
    tally.fields += 2;
    const size_t wrong = (reads_it != mark.read ? 1u : 0u) + (writes_it != mark.written ? 1u : 0u);
    if (wrong == 0) return;
    tally.misses += wrong;
    misses[fmt::format("sm_{} {}", sm_version, isa::Name(instruction.op))].push_back(
        Describe(sm_version, instruction, mark, reads_it, writes_it));
  };
  const auto dispatch = [&](const LiveMark& mark) {
    if (mark.file == "R") check(mark, use.reads.r, use.writes.r, seen.reads.r);
    if (mark.file == "P") check(mark, use.reads.p, use.writes.p, seen.reads.p);
    if (mark.file == "UR") check(mark, use.reads.ur, use.writes.ur, seen.reads.ur);
    if (mark.file == "UP") check(mark, use.reads.up, use.writes.up, seen.reads.up);
  };
  for (const LiveMark& mark : marks) dispatch(mark);
  const auto add_unseen = [&](const char* file, auto ours, auto theirs) {
    const auto rest = ours & ~theirs;
    for (uint32_t i = 0; i < rest.size(); ++i)
      if (rest.test(i)) dispatch({file, i, false, false});
  };
  add_unseen("R", use.reads.r | use.writes.r, seen.reads.r);
  add_unseen("P", use.reads.p | use.writes.p, seen.reads.p);
  add_unseen("UR", use.reads.ur | use.writes.ur, seen.reads.ur);
  add_unseen("UP", use.reads.up | use.writes.up, seen.reads.up);
}

void SassFiles::ExpectRegistersAgree() const {
  std::map<uint32_t, Tally> tallies;
  std::map<std::string, std::vector<std::string>> misses;
  size_t without = 0;
  for (const CorpusFile& file : files_) {
    const auto bytes = ReadFileBytes(file.path);
    const auto cubin = ReadCubin(*bytes, file.name);
    ASSERT_TRUE(cubin.ok()) << cubin.error().ToString();
    const auto ranges = RunDisassembler(nvdisasm_, {"-c", "-lrm", "wide"}, *bytes, file.name);
    if (!ranges.ok() || ranges->find("UGPR") == std::string::npos) {
      ++without;
      continue;
    }
    const auto listing = RunDisassembler(nvdisasm_, {"-json"}, *bytes, file.name);
    ASSERT_TRUE(listing.ok()) << listing.error().ToString();
    const auto marks = ParseLiveRanges(*ranges);
    for (const CubinKernel& kernel : cubin->kernels) {
      const auto code = DecodeListing(*listing, kernel, cubin->sm_version, file.name);
      ASSERT_TRUE(code.ok()) << code.error().ToString();
      const auto section = marks.find(kernel.code_section);
      if (section == marks.end()) continue;
      for (const isa::Instruction& instruction : code->instructions) {
        if (instruction.op == isa::Op::kCALL) continue;  // marks what the callee touches
        const auto entry = section->second.find(instruction.pc);
        if (entry != section->second.end())
          Compare(cubin->sm_version, instruction, entry->second, tallies[cubin->sm_version], misses);
      }
    }
  }
  for (const auto& [op, list] : misses) {
    fmt::print("{} misses of {}\n", list.size(), op);
    for (size_t i = 0; i < std::min<size_t>(list.size(), 6); ++i) fmt::print("  {}\n", list[i]);
  }
  fmt::print("{} files, {} of them without live ranges\n", files_.size(), without);
  for (const auto& [sm_version, tally] : tallies) {
    const double agreement =
        100.0 - 100.0 * static_cast<double>(tally.misses) / static_cast<double>(tally.fields);
    fmt::print("sm_{}: {} fields, {} misses, {:.4f} % agree; {} fields set aside\n", sm_version, tally.fields,
               tally.misses, agreement, tally.set_aside);
    EXPECT_GE(agreement, 99.9) << "sm_" << sm_version;
    EXPECT_LT(tally.set_aside, tally.fields / 50) << "sm_" << sm_version;
  }
  EXPECT_FALSE(tallies.empty()) << "nvdisasm printed live ranges for no file";
}

TEST_F(SassCorpus, RegistersAgreeWithLiveRanges) { ExpectRegistersAgree(); }
TEST_F(OpcodeZoo, RegistersAgreeWithLiveRanges) { ExpectRegistersAgree(); }

}  // namespace
}  // namespace heddle::sass
