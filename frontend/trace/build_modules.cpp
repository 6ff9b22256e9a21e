#include "frontend/trace/build_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/trace/blob.h"
#include "sim/base/digest.h"

namespace heddle::trace {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxFileBytes = uintmax_t{1} << 32;

Error Bad(std::string place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

// "sm_90a" -> 90; 0 when it is none.
uint32_t SmVersion(std::string_view target) {
  uint32_t version = 0;
  if (!target.starts_with("sm_")) return 0;
  for (const char c : target.substr(3)) {
    if (c < '0' || c > '9') break;
    version = version * 10 + static_cast<uint32_t>(c - '0');
    if (version > 9999) return 0;
  }
  return version;
}

// The metadata file of a Triton output, given its folder or either of its two files.
Result<fs::path> FindMetadata(const fs::path& path, const std::string& place) {
  std::error_code ec;
  if (!fs::is_directory(path, ec)) {
    fs::path json = path;
    json.replace_extension(".json");
    if (fs::exists(json, ec)) return json;
    return Bad(place, fmt::format("there is no Triton output '{}'", json.string()),
               "compile the kernel first: kernels/triton/compile.py");
  }
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ec)) {
    fs::path cubin = entry.path();
    if (cubin.extension() == ".json" && fs::exists(cubin.replace_extension(".cubin"), ec))
      found.push_back(entry.path());
  }
  if (found.size() == 1) return found[0];
  return Bad(place, fmt::format("'{}' holds {} pairs of .cubin and .json", path.string(), found.size()),
             "give the path of the kernel's .json file");
}

uint32_t Unsigned(const nlohmann::json& json, const char* key, uint32_t otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() && found->get<uint64_t>() <= 0x7fffffff
             ? found->get<uint32_t>()
             : otherwise;
}

Result<TritonLaunch> ReadMetadata(const fs::path& path, const std::string& place) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFile(path.string(), place));
  const char* begin = reinterpret_cast<const char*>(bytes.data());
  const nlohmann::json json = nlohmann::json::parse(begin, begin + bytes.size(), nullptr, false);
  const auto bad = [&](const char* what) {
    return Bad(place, fmt::format("'{}' {}", path.string(), what),
               "it must be the metadata that Triton wrote beside the cubin");
  };
  if (!json.is_object()) return bad("is no JSON object");
  TritonLaunch launch;
  if (json.contains("name") && json["name"].is_string()) launch.kernel = json["name"].get<std::string>();
  launch.threads = Unsigned(json, "num_warps", 0) * kWarpLanes;
  launch.shared_bytes = Unsigned(json, "shared", 0);
  launch.cluster.x = Unsigned(json, "num_ctas", 1);
  if (launch.kernel.empty() || launch.threads == 0 || launch.threads > 1024)
    return bad("states no name or no possible num_warps");
  if (Unsigned(json, "global_scratch_size", 0) != 0)
    return bad("asks for global scratch memory, which is not supported");
  return launch;
}

Result<std::vector<std::byte>> LoadCubin(const pb::Module& module, const Locator& at,
                                         const std::string& target, const Toolchain& toolchain,
                                         std::optional<TritonLaunch>* triton) {
  switch (module.source_case()) {
    case pb::Module::kCubin:
      return ReadFile(ResolvePath(module.cubin(), at.file(), target), at.Place("cubin"));
    case pb::Module::kCuda: {
      CudaCompilation compilation{ResolvePath(module.cuda().file(), at.file(), target), {}, target};
      for (const std::string& flag : module.cuda().flag()) compilation.flags.push_back(flag);
      if (target.empty())
        return Bad(at.Place("cuda"), "which architecture to compile for is not stated",
                   "add `target: \"sm_80\"`, or give --target");
      return toolchain.compile_cuda(compilation, at.Place("cuda"));
    }
    case pb::Module::kTriton: {
      const std::string place = at.Place("triton");
      HEDDLE_ASSIGN_OR_RETURN(fs::path metadata,
                              FindMetadata(ResolvePath(module.triton().path(), at.file(), target), place));
      HEDDLE_ASSIGN_OR_RETURN(*triton, ReadMetadata(metadata, place));
      return ReadFile(metadata.replace_extension(".cubin").string(), place);
    }
    case pb::Module::SOURCE_NOT_SET:
      break;
  }
  return Bad(at.Place("source"), "the module has no source", "add `cubin`, `cuda` or `triton`");
}

}  // namespace

Result<std::vector<std::byte>> ReadFile(const std::string& path, const std::string& place) {
  std::error_code ec;
  const uintmax_t size = fs::file_size(path, ec);
  if (ec || !fs::is_regular_file(path, ec))
    return Bad(place, fmt::format("there is no file '{}'", path),
               "relative paths start at the description's folder");
  if (size > kMaxFileBytes)
    return Bad(place, fmt::format("'{}' has {} bytes, more than 4 GiB", path, size), "give a smaller file");
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size))
    return Bad(place, fmt::format("'{}' cannot be read", path), "check its permissions");
  return bytes;
}

std::string ResolvePath(const std::string& path, const std::string& description, const std::string& target) {
  std::string text = path;
  for (size_t at = text.find("{target}"); at != std::string::npos;
       at = text.find("{target}", at + target.size()))
    text.replace(at, 8, target);
  const fs::path relative(text);
  return relative.is_absolute()
             ? text
             : (fs::path(description).parent_path() / relative).lexically_normal().string();
}

Result<LoadedModule> LoadModule(const pb::Module& module, const Locator& at, const std::string& target,
                                const Toolchain& toolchain) {
  LoadedModule loaded;
  loaded.module.name = module.name();
  HEDDLE_ASSIGN_OR_RETURN(loaded.module.cubin, LoadCubin(module, at, target, toolchain, &loaded.triton));
  loaded.module.sha256 = Sha256Hex(loaded.module.cubin);
  const std::string place = at.Place(module.has_cubin() ? "cubin" : module.has_cuda() ? "cuda" : "triton");
  HEDDLE_ASSIGN_OR_RETURN(loaded.contents, toolchain.read_module(loaded.module.cubin, place));
  loaded.module.sm_version = loaded.contents.sm_version;
  const uint32_t asked = SmVersion(target);
  if (!target.empty() && asked != loaded.contents.sm_version)
    return Bad(place,
               fmt::format("the cubin is for sm_{}, the target is '{}'", loaded.contents.sm_version, target),
               "name another cubin or another target");
  return loaded;
}

}  // namespace heddle::trace
