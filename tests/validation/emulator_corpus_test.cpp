// Does the emulator have a meaning for every instruction, with its modifiers, of real kernels of sm_80 to sm_90a?
//
// The corpus is a folder of cubins, HEDDLE_CORPUS_DIR; without it, or without nvdisasm, the test is skipped.
// HEDDLE_CORPUS_FULL=1 takes every file (minutes), otherwise a spread of small ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "frontend/emulator/program.h"
#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"

namespace heddle::emulator {
namespace {

namespace fs = std::filesystem;

constexpr size_t kQuickFiles = 12;
constexpr uintmax_t kQuickMaxBytes = 60000;

// Left out on purpose: multimem loads combine the memories of several GPUs.
bool NeedsSeveralGpus(isa::Op op) { return op == isa::Op::kLDGMC; }

TEST(EmulatorCorpus, EveryInstructionLowers) {
  const char* directory = std::getenv("HEDDLE_CORPUS_DIR");
  if (directory == nullptr || !fs::is_directory(directory))
    GTEST_SKIP() << "HEDDLE_CORPUS_DIR names no folder";
  const auto nvdisasm = sass::FindDisassembler();
  if (!nvdisasm.ok()) GTEST_SKIP() << nvdisasm.error().ToString();
  const bool full = std::getenv("HEDDLE_CORPUS_FULL") != nullptr;

  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().extension() != ".cubin" || (!full && entry.file_size() > kQuickMaxBytes)) continue;
    const auto bytes = sass::ReadFileBytes(entry.path().string());
    if (!bytes.ok()) continue;
    const auto cubin = sass::ReadCubin(*bytes, entry.path().string());
    if (cubin.ok() && cubin->sm_version >= 80 && cubin->sm_version <= 90) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (!full && files.size() > kQuickFiles) {
    std::vector<fs::path> spread;
    for (size_t i = 0; i < kQuickFiles; ++i) spread.push_back(files[i * files.size() / kQuickFiles]);
    files = spread;
  }

  struct Census {
    size_t instructions = 0;
    size_t several_gpus = 0;
    size_t missing = 0;
  };
  std::map<std::string, Census> by_architecture;
  std::map<std::string, size_t> reasons;
  for (const fs::path& file : files) {
    const auto bytes = sass::ReadFileBytes(file.string());
    ASSERT_TRUE(bytes.ok());
    const auto cubin = sass::ReadCubin(*bytes, file.string());
    const auto listing = sass::RunDisassembler(*nvdisasm, {"-json"}, *bytes, file.string());
    ASSERT_TRUE(cubin.ok() && listing.ok());
    for (const sass::CubinKernel& kernel : cubin->kernels) {
      const auto code = sass::DecodeListing(*listing, kernel, cubin->sm_version, file.string());
      if (!code.ok()) {
        ADD_FAILURE() << code.error().ToString();
        continue;
      }
      Census& census =
          by_architecture["sm_" + std::to_string(cubin->sm_version) + (cubin->accelerated ? "a" : "")];
      census.instructions += code->instructions.size();
      const Program program(*code);
      for (const std::string& text : program.unsupported()) {
        const auto pc = static_cast<uint32_t>(std::stoul(text, nullptr, 16));
        const isa::Instruction& instruction = code->instructions[code->IndexOf(pc)];
        if (NeedsSeveralGpus(instruction.op)) {
          ++census.several_gpus;
          continue;
        }
        ++census.missing;
        if (++reasons[std::string(isa::Name(instruction.op)) + text.substr(text.rfind(": "))] == 1)
          ADD_FAILURE() << file.string() << " " << kernel.name.substr(0, 60) << " " << text;
      }
    }
  }
  for (const auto& [architecture, census] : by_architecture)
    std::printf("%s: %zu instructions, %zu without a meaning, %zu for several GPUs\n", architecture.c_str(),
                census.instructions, census.missing, census.several_gpus);
  RecordProperty("files", static_cast<int>(files.size()));
}

}  // namespace
}  // namespace heddle::emulator
