#include "frontend/capture/modules.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "frontend/capture/frame.h"
#include "sim/base/digest.h"

namespace heddle::capture {
namespace {

constexpr uint64_t kMostImageBytes = uint64_t{1} << 31;

}  // namespace

const std::string& Modules::NameOf(uint32_t function) const {
  static const std::string none = "?";
  const auto found = functions_.find(function);
  return found == functions_.end() ? none : found->second.name;
}

bool Modules::Load(uint32_t id, trace::Trace* trace, std::string* why) {
  const auto found = images_.find(id);
  if (found == images_.end()) {
    *why = "its cubin was not seen";
    return false;
  }
  Image& image = found->second;
  if (image.module != trace::kNone) return true;
  *why = fmt::format("the file image-{} is missing or damaged", id);
  if (image.failed || image.size_bytes > kMostImageBytes) return false;
  image.failed = true;
  std::ifstream file(fmt::format("{}/image-{}", folder_, id), std::ios::binary);
  trace::Module module;
  module.cubin.resize(image.size_bytes);
  file.read(reinterpret_cast<char*>(module.cubin.data()), static_cast<std::streamsize>(image.size_bytes));
  if (static_cast<uint64_t>(file.gcount()) != image.size_bytes ||
      Crc32(module.cubin.data(), module.cubin.size()) != image.crc)
    return false;
  Result<trace::ModuleContents> contents = toolchain_.read_module(module.cubin, fmt::format("image-{}", id));
  if (!contents.ok()) {
    *why = contents.error().ToString();
    return false;
  }
  module.name = fmt::format("image_{}", id);
  module.sha256 = Sha256Hex(module.cubin);
  module.sm_version = contents->sm_version;
  image.contents = std::move(*contents);
  image.module = static_cast<uint32_t>(trace->modules.size());
  image.failed = false;
  trace->modules.push_back(std::move(module));
  return true;
}

std::optional<Modules::Used> Modules::Use(uint32_t id, trace::Trace* trace, std::string* why) {
  const auto found = functions_.find(id);
  if (found == functions_.end() || !found->second.image) {
    *why = "its cubin was not seen";
    return std::nullopt;
  }
  Function& function = found->second;
  if (function.used) return function.used;
  if (!Load(*function.image, trace, why)) return std::nullopt;
  const Image& image = images_.at(*function.image);
  for (uint32_t i = 0; i < trace->functions.size(); ++i) {  // another handle of the same function
    if (trace->functions[i].module != image.module || trace->functions[i].name != function.name) continue;
    function.used = Used{i, {}};
  }
  for (const trace::ModuleFunction& each : image.contents->functions) {
    if (each.function.name != function.name) continue;
    if (!function.used) {
      function.used = Used{static_cast<uint32_t>(trace->functions.size()), {}};
      trace->functions.push_back(each.function);
      trace->functions.back().module = image.module;
    }
    function.used->cluster = each.cluster;
    return function.used;
  }
  *why = "the cubin has no such kernel";
  return std::nullopt;
}

void Modules::Decode(trace::Trace* trace, std::vector<std::string>* warnings) const {
  if (!toolchain_.decode) return;
  for (uint32_t m = 0; m < trace->modules.size(); ++m) {
    std::vector<std::string> names;
    std::vector<uint32_t> indices;
    for (uint32_t f = 0; f < trace->functions.size(); ++f) {
      if (trace->functions[f].module != m) continue;
      names.push_back(trace->functions[f].name);
      indices.push_back(f);
    }
    Result<std::vector<isa::KernelCode>> codes =
        toolchain_.decode(trace->modules[m].cubin, names, trace->modules[m].name);
    if (!codes.ok()) {
      warnings->push_back(fmt::format("the SASS of {} function{} is not in the trace: {}", names.size(),
                                      names.size() == 1 ? "" : "s", codes.error().ToString()));
      continue;
    }
    for (size_t i = 0; i < indices.size(); ++i)
      trace->sass.push_back({indices[i], toolchain_.decoder_version, std::move((*codes)[i])});
  }
}

}  // namespace heddle::capture
