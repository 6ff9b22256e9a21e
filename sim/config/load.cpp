#include "sim/config/load.h"

#include <fmt/core.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>

#include "sim/base/digest.h"
#include "sim/base/suggest.h"
#include "sim/config/convert.h"
#include "sim/config/draft.h"
#include "sim/config/override.h"
#include "sim/config/text_parser.h"
#include "sim/config/validate.h"

namespace heddle::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".textproto";

struct Source {
  std::string text;
  std::string file;                 // as it stands in messages
  std::optional<std::string> stem;  // what `name` must be; none for text without a file
};

Error ConfigurationError(std::string place, std::string message, std::string next_step) {
  return {ExitCode::kConfiguration, std::move(place), std::move(message), std::move(next_step)};
}

Result<Source> ReadSource(const fs::path& path) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  std::ifstream in;
  if (is_file) in.open(path, std::ios::binary);
  std::string text;
  if (in.is_open()) text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) {
    return ConfigurationError(path.string(), is_file ? "cannot be read" : "no such file",
                              "`heddle arch list` shows the descriptions there are");
  }
  return Source{std::move(text), path.string(), path.stem().string()};
}

Result<Source> FindSource(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(kSuffix)) {
    return ReadSource(fs::path(name_or_path));
  }
  std::vector<std::string> names;
  for (const ArchFile& arch : ListArchs()) {
    if (arch.name == name_or_path) return ReadSource(arch.path);
    names.push_back(arch.name);
  }
  return ConfigurationError(
      "",
      fmt::format("no machine description is named \"{}\"{}", name_or_path, DidYouMean(name_or_path, names)),
      "`heddle arch list` shows the descriptions there are");
}

Error Failure(const Draft& draft) {
  return ConfigurationError("", draft.FaultsToString(), "docs/params.md lists all fields with their ranges");
}

constexpr int kMostBases = 4;  // a board on a family on a die is two

// The file's text, upon that of its base where it has one; `levels` more bases may follow.
Result<Draft> ReadWithBase(const Source& source, int levels) {
  Draft draft(source.file);
  if (!ParseText(source.text, source.file, &draft)) return Failure(draft);
  if (!draft.gpu.has_base()) return draft;
  const std::string base_name = draft.gpu.base();
  const auto bad_base = [&](const std::string& message) {
    draft.Report("base", message);
    return Failure(draft);
  };
  if (levels == 0) {
    return bad_base(fmt::format("\"{}\" is one base too many: {} are all there may be, one upon the other",
                                base_name, kMostBases));
  }
  const Result<Source> base = FindSource(base_name);
  if (!base.ok()) return bad_base(base.error().place + base.error().message);
  HEDDLE_ASSIGN_OR_RETURN(Draft inherited, ReadWithBase(*base, levels - 1));
  if (inherited.gpu.has_board()) inherited.gpu.mutable_board()->clear_names();
  inherited.SetLocation("", {source.file, 0, 0});
  if (!draft.gpu.has_name())
    inherited.ReportAt({source.file, 0, 0}, "name",
                       "missing: a description that inherits has a name of its own");
  ParseText(source.text, source.file, &inherited);
  return inherited;
}

// An SM count without a layout: whole TPCs, dealt to the GPCs in turn.
void SpreadSms(Draft* draft) {
  for (const char* path : {"sms_per_gpc", "gpc_count", "sm.count", "sm.sms_per_tpc"}) {
    if (draft->IsBroken(path)) return;
  }
  pb::Gpu& gpu = draft->gpu;
  if (gpu.sms_per_gpc_size() > 0) return;
  const uint32_t per_tpc = gpu.sm().sms_per_tpc(), gpcs = gpu.gpc_count(), tpcs = gpu.sm().count() / per_tpc;
  for (uint32_t i = 0; i < gpcs; ++i)
    gpu.add_sms_per_gpc((tpcs / gpcs + (i < tpcs % gpcs ? 1 : 0)) * per_tpc);
}

enum class Origin { kDescription, kOldResults };

Result<Gpu> Resolve(const Source& source, std::span<const std::string> overrides,
                    Origin origin = Origin::kDescription) {
  HEDDLE_ASSIGN_OR_RETURN(Draft draft, ReadWithBase(source, kMostBases));
  if (origin == Origin::kOldResults) FillOldResults(&draft.gpu);
  if (source.stem && draft.gpu.has_name() && draft.gpu.name() != *source.stem) {
    draft.Report("name",
                 fmt::format("must be \"{}\" like the file, not \"{}\"", *source.stem, draft.gpu.name()));
  }
  for (const std::string& text : overrides) ApplyOverride(text, &draft);
  CheckRules(&draft);
  SpreadSms(&draft);
  Gpu gpu;
  FromProto(draft.gpu, &gpu);
  CheckRelations(gpu, &draft);
  if (!draft.ok()) return Failure(draft);
  return gpu;
}

}  // namespace

Result<Gpu> LoadGpu(std::string_view name_or_path, std::span<const std::string> overrides) {
  HEDDLE_ASSIGN_OR_RETURN(const Source source, FindSource(name_or_path));
  return Resolve(source, overrides);
}

Result<Gpu> ParseGpu(std::string_view text, std::string_view file, std::span<const std::string> overrides) {
  return Resolve(Source{std::string(text), std::string(file), std::nullopt}, overrides);
}

Result<Gpu> ParseStoredGpu(std::string_view text, std::string_view file,
                           std::span<const std::string> overrides) {
  return Resolve(Source{std::string(text), std::string(file), std::nullopt}, overrides, Origin::kOldResults);
}

std::string CanonicalText(const Gpu& gpu) {
  pb::Gpu message;
  ToProto(gpu, &message);
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(message, &text);
  return text;
}

std::string Digest(const Gpu& gpu) { return Sha256Hex(CanonicalText(gpu)); }

std::vector<fs::path> SearchPath() {
  std::vector<fs::path> path;
  if (const char* dir = std::getenv("HEDDLE_ARCH_DIR"); dir != nullptr && *dir != '\0')
    path.emplace_back(dir);
  path.emplace_back(HEDDLE_ARCH_SOURCE_DIR);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) path.push_back(program.parent_path().parent_path() / "share" / "heddle" / "arch_configs");
  return path;
}

std::vector<ArchFile> ListArchs() {
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : SearchPath()) {
    for (const fs::path& place : {folder, folder / "future"}) {
      std::error_code error;
      for (fs::directory_iterator it(place, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == kSuffix) found.emplace(it->path().stem().string(), it->path());
      }
    }
  }
  std::vector<ArchFile> archs;
  for (const auto& [name, path] : found) archs.push_back({name, path});
  return archs;
}

std::vector<std::string> ArchsOfBoard(std::string_view board) {
  std::vector<std::string> names;
  for (const ArchFile& arch : ListArchs()) {
    const Result<Gpu> gpu = LoadGpu(arch.name);
    if (gpu.ok() &&
        std::find(gpu->board.names.begin(), gpu->board.names.end(), board) != gpu->board.names.end())
      names.push_back(arch.name);
  }
  return names;
}

}  // namespace heddle::config
