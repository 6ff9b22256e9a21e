// Machine descriptions: from a file in protobuf text format (gpu.proto) to plain structs (gpu_description.h).
//
// Nothing about a machine is assumed: a field that is missing, unknown, out of its range, or in contradiction
// with another is an error, and all of them are reported at once, each with file:line:column. A syntax error
// is reported alone. `base: "name"` inherits from another description, which may inherit itself, up to four levels deep;
// a list given again replaces the inherited one. `name` and `board.names` are never inherited.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"
#include "sim/config/gpu_description.h"

namespace heddle::config {

// `name_or_path`: a name looked for in SearchPath(), or the path of a .textproto file (anything with a '/' or
// that suffix). `overrides`: "path=value", applied in order before the checks: "l2.size_bytes=100Mi",
// "sms_per_gpc[0]=18", "sm.operations[LDS.64.regular].result_cycles=30". Numbers take k M G T (powers of
// 1000) and Ki Mi Gi Ti (powers of 1024). Errors have ExitCode::kConfiguration; their message holds one line
// for each fault.
Result<Gpu> LoadGpu(std::string_view name_or_path, std::span<const std::string> overrides = {});

// The same for text that has no file; `file` stands in messages, and `base` is looked for in SearchPath().
Result<Gpu> ParseGpu(std::string_view text, std::string_view file,
                     std::span<const std::string> overrides = {});

// The same for what CanonicalText wrote, perhaps before some fields existed: they get what their rule calls
// in_old_results.
Result<Gpu> ParseStoredGpu(std::string_view text, std::string_view file,
                           std::span<const std::string> overrides = {});

// The resolved description in text format, fields in the order of gpu.proto. Loading it gives the same Gpu.
std::string CanonicalText(const Gpu& gpu);

// SHA-256 of the canonical text, 64 hexadecimal digits: equal for equal machines, whatever their files look
// like.
std::string Digest(const Gpu& gpu);

// Folders that are searched for "<name>.textproto" and "future/<name>.textproto", in this order:
// $HEDDLE_ARCH_DIR, then the folder arch_configs of the sources, then that of the installation.
std::vector<std::filesystem::path> SearchPath();

struct ArchFile {
  std::string name;  // as LoadGpu takes it
  std::filesystem::path path;
};

// All descriptions in SearchPath(), by name; of two with one name, the one that LoadGpu would take.
std::vector<ArchFile> ListArchs();

// The descriptions whose board.names hold this name, as measurements write it ("A100-SXM4-80GB"); one, if it is known.
// Reads every description: ask once for each name.
std::vector<std::string> ArchsOfBoard(std::string_view board);

}  // namespace heddle::config
