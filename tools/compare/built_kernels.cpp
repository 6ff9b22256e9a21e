#include "tools/compare/built_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "frontend/trace/htrace.h"
#include "sim/base/digest.h"
#include "tools/compare/kernel_name.h"

namespace heddle::compare {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What stands in quotes behind the first `key`; empty: nothing does.
std::string QuotedBehind(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = text.find('"', at + key.size());
  if (begin == std::string::npos || begin > at + key.size() + 4) return "";
  const size_t end = text.find('"', begin + 1);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

std::vector<fs::path> Descriptions(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code ec;
  for (fs::recursive_directory_iterator entry(folder, ec), end; !ec && entry != end; entry.increment(ec)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".launch.textproto") && name.find(".bench.") == std::string::npos)
      found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Hopper's own instructions need a target of their own.
std::vector<std::string> Targets(uint32_t sm_version) {
  const std::string plain = fmt::format("sm_{}", sm_version);
  return sm_version >= 90 ? std::vector<std::string>{plain + "a", plain} : std::vector<std::string>{plain};
}

Status BuildInto(const fs::path& description, const std::string& target, const trace::Toolchain& toolchain,
                 const std::string& file) {
  trace::BuildOptions options;
  options.target = target;
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace,
                          trace::BuildTrace(description.string(), options, toolchain));
  return trace::WriteTrace(trace, file);
}

}  // namespace

std::string KernelOfDescription(const std::string& text) {
  const std::string launch = text.substr(std::min(text.find("\nlaunch {"), text.size()));
  if (std::string name = QuotedBehind(launch, "kernel:"); !name.empty()) return name;
  const size_t triton = text.find("triton {");
  if (triton == std::string::npos) return "";
  return fs::path(QuotedBehind(text.substr(triton), "path:")).stem().string();
}

BuiltKernels BuildKernels(const std::string& folder, const std::string& cache,
                          const std::set<std::string>& names, uint32_t sm_version,
                          const trace::Toolchain& toolchain) {
  BuiltKernels built;
  std::error_code ec;
  for (const fs::path& description : Descriptions(folder)) {
    const std::string text = ReadText(description);
    const std::string kernel = KernelOfDescription(text);
    if (kernel.empty() || !names.contains(FunctionName(CanonicalKernelName(kernel)))) continue;
    const std::string source = QuotedBehind(text, "file:");
    const std::string contents = text + (source.empty() ? "" : ReadText(description.parent_path() / source));
    std::string why;
    bool made = false;
    for (const std::string& target : Targets(sm_version)) {
      const std::string name = description.filename().string();
      const std::string file = fmt::format("{}/{}.{}.{}.htrace", cache, name.substr(0, name.find('.')),
                                           target, Sha256Hex(contents + '\n' + target).substr(0, 16));
      made = fs::exists(file, ec);
      if (!made) {
        fs::create_directories(cache, ec);
        const Status status = BuildInto(description, target, toolchain, file);
        made = status.ok();
        if (!made) why = status.error().ToString();
      }
      if (!made) continue;
      built.files.push_back(file);
      break;
    }
    if (!made) built.notes.push_back(fmt::format("{} is not built: {}", description.string(), why));
  }
  return built;
}

std::string KernelFolder() {
  const char* folder = std::getenv("HEDDLE_KERNELS");
  return folder != nullptr && *folder != '\0' ? folder : HEDDLE_KERNEL_SOURCE_DIR;
}

std::string TraceCacheFolder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return fmt::format("{}/heddle/traces", cache);
  return fmt::format("{}/.cache/heddle/traces", home == nullptr ? "/tmp" : home);
}

}  // namespace heddle::compare
