#include "tests/support/kernel_traces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "frontend/sass/disassembler.h"
#include "frontend/trace/build.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::test {
namespace {

namespace fs = std::filesystem;

constexpr char kSuffix[] = ".launch.textproto";

fs::path KernelFolder() { return fs::path(HEDDLE_SOURCE_DIR) / "kernels"; }
bool Succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

bool HaveNvcc() {
  static const bool have = std::getenv("HEDDLE_NVCC") != nullptr || Succeeds("command -v nvcc") ||
                           fs::exists("/usr/local/cuda/bin/nvcc");
  return have;
}

// The target that the description states.
std::string StatedTarget(const fs::path& description) {
  std::ifstream file(description);
  const std::string key = "target: \"";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(key.size(), line.find('"', key.size()) - key.size());
  return "";
}

std::string TextOf(const fs::path& description) {
  std::ifstream file(description);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Whether the kernel is compiled from what is here, rather than fetched.
bool HasSource(const fs::path& description) {
  return TextOf(description).find("build/cubins/") == std::string::npos;
}

// The first Triton output that the description names, for `target`; empty where it names none.
fs::path TritonOutput(const fs::path& description, const std::string& target) {
  const std::string text = TextOf(description), root = "build/triton/", placeholder = "{target}";
  const size_t begin = text.find(root);
  if (begin == std::string::npos) return {};
  std::string path = text.substr(begin, text.find('"', begin) - begin);
  if (const size_t at = path.find(placeholder); at != std::string::npos)
    path.replace(at, placeholder.size(), target);
  return fs::path(HEDDLE_SOURCE_DIR) / path;
}

// Folders of kernels have a compile.py each, and a folder of their own below build/triton unless they are triton/.
bool CompileTriton(const fs::path& output, const std::string& target) {
  if (fs::exists(output)) return true;
  const std::string owner = output.parent_path().parent_path().filename().string();
  const std::string script = (KernelFolder() / owner / "compile.py").string();
  std::vector<std::string> pythons;
  if (const char* named = std::getenv("HEDDLE_PYTHON")) pythons.emplace_back(named);
  pythons.push_back(HEDDLE_SOURCE_DIR "/build/venv/bin/python");
  pythons.emplace_back("python3");
  return std::any_of(pythons.begin(), pythons.end(), [&](const std::string& python) {
    return Succeeds("'" + python + "' '" + script + "' --arch " + target.substr(3) + " --out '" +
                    output.parent_path().string() + "'");
  });
}

// Kernels of cuda/ that do without asynchronous copies and bf16 products, compiled for Turing as well.
constexpr std::string_view kTuring[] = {"embedding",    "fp8_quant", "fused_add_rms_norm", "gemm_f16_turing",
                                        "grid_barrier", "histogram", "layer_norm",         "moe_permute",
                                        "rms_norm",     "rope",      "silu_and_mul",       "softmax",
                                        "topk_gating"};
// The same SASS but for details as for sm_80: one kernel with products, and one that converts in hardware from sm_89 on.
constexpr std::string_view kConsumer[] = {"gemm", "fp8_quant"};

// Minutes of compilation, with templates and tiles that differ in sizes alone: checked where HEDDLE_SLOW_KERNELS is set, by hand.
constexpr std::string_view kSlow[] = {"validation/hopper_gemm_bf16", "validation/hopper_gemm_fp8",
                                      "validation/moe", "validation/moe_fp8", "validation/moe_hopper"};

bool IsLeftOut(std::string_view name) {
  return std::getenv("HEDDLE_SLOW_KERNELS") == nullptr &&
         std::find(std::begin(kSlow), std::end(kSlow), name) != std::end(kSlow);
}

bool IsOneOf(std::string_view name, std::span<const std::string_view> names) {
  return name.starts_with("cuda/") && std::find(names.begin(), names.end(), name.substr(5)) != names.end();
}

}  // namespace

std::vector<KernelCase> AllKernelCases() {
  std::vector<KernelCase> cases;
  for (const auto& entry : fs::recursive_directory_iterator(KernelFolder())) {
    std::string name = fs::relative(entry.path(), KernelFolder()).string();
    if (!name.ends_with(kSuffix)) continue;
    if (!HasSource(entry.path())) continue;  // tools/verify_kernels checks those
    name.resize(name.size() - sizeof(kSuffix) + 1);
    if (name.ends_with(".bench") || IsLeftOut(name)) continue;
    // What is stated for Hopper needs Hopper, and fp8 products Ada.
    if (const std::string target = StatedTarget(entry.path());
        target.starts_with("sm_90") || target == "sm_89") {
      cases.push_back({name, target});
      continue;
    }
    if (IsOneOf(name, kTuring)) cases.push_back({name, "sm_75"});
    cases.push_back({name, "sm_80"});
    if (IsOneOf(name, kConsumer)) cases.insert(cases.end(), {{name, "sm_86"}, {name, "sm_89"}});
    cases.push_back({name, "sm_90"});
  }
  std::sort(cases.begin(), cases.end(), [](const KernelCase& a, const KernelCase& b) {
    return std::tie(a.description, a.target) < std::tie(b.description, b.target);
  });
  return cases;
}

std::optional<std::string> MissingTool(const KernelCase& kernel) {
  if (!sass::FindDisassembler().ok()) return "nvdisasm is not here";
  const fs::path triton = TritonOutput(KernelFolder() / (kernel.description + kSuffix), kernel.target);
  if (!triton.empty()) {
    if (!CompileTriton(triton, kernel.target)) return "no Python with Triton is here";
  } else if (!HaveNvcc()) {
    return "nvcc is not here";
  }
  return std::nullopt;
}

std::optional<trace::Trace> BuildKernel(const KernelCase& kernel) {
  trace::BuildOptions options;
  options.target = kernel.target;
  const std::string path = (KernelFolder() / (kernel.description + kSuffix)).string();
  auto trace = trace::BuildTrace(path, options, toolchain::Default());
  if (!trace.ok()) {
    ADD_FAILURE() << trace.error().ToString();
    return std::nullopt;
  }
  return std::move(trace).value();
}

}  // namespace heddle::test
