#include "frontend/import/traceg_header.h"

#include <fmt/format.h>

#include "frontend/import/text.h"

namespace heddle::importer {
namespace {

using Got = LineReader::Got;

class HeaderReader {
 public:
  HeaderReader(LineReader* lines, std::string_view file, FaultLog* faults)
      : lines_(lines), file_(file), faults_(faults) {}

  Result<TracegHeader> Run() {
    HEDDLE_RETURN_IF_ERROR(ReadLines());
    HEDDLE_RETURN_IF_ERROR(Check());
    return std::move(header_);
  }

 private:
  void Fault(std::string_view kind, std::string_view detail = {}) {
    faults_->Add(file_, lines_->line_number(), kind, detail);
  }

  Status ReadLines() {
    for (;;) {
      std::string_view line;
      HEDDLE_ASSIGN_OR_RETURN(const bool more, NextReadable(lines_, file_, faults_, &line));
      if (!more) return Ok();
      if (line.empty()) continue;
      if (line.front() == '#') return Ok();
      if (line.front() != '-')
        Fault("a header line that is no '-key = value'", line.substr(0, 80));
      else if (!Line(line.substr(1)))
        Fault("a header value that is no number", line.substr(0, 80));
    }
  }

  // Keys that are not known are left alone: newer tracers add some.
  bool Line(std::string_view line) {
    if (const auto value = ValueOf(line, "kernel name")) {
      header_.kernel_name = *value;
      return true;
    }
    if (const auto value = ValueOf(line, "kernel id")) return Parse(*value, &header_.kernel_id);
    if (const auto value = ValueOf(line, "grid dim")) return has_grid_ = ParseDim(*value, &header_.grid);
    if (const auto value = ValueOf(line, "block dim")) return has_block_ = ParseDim(*value, &header_.block);
    if (const auto value = ValueOf(line, "shmem base_addr")) return Parse(*value, &header_.shared_base, 16);
    if (const auto value = ValueOf(line, "shmem")) return Parse(*value, &header_.shared_bytes);
    if (const auto value = ValueOf(line, "nregs")) return Parse(*value, &header_.registers);
    if (const auto value = ValueOf(line, "binary version")) return Parse(*value, &header_.binary_version);
    if (const auto value = ValueOf(line, "cuda stream id")) return Parse(*value, &header_.stream);
    if (const auto value = ValueOf(line, "local mem base_addr"))
      return Parse(*value, &header_.local_base, 16);
    if (const auto value = ValueOf(line, "accelsim tracer version")) return Parse(*value, &header_.version);
    if (const auto value = ValueOf(line, "enable lineinfo")) {
      uint32_t enabled = 0;
      if (!Parse(*value, &enabled)) return false;
      header_.has_line_numbers = enabled != 0;
    }
    return true;
  }

  Error Refuse(std::string message, std::string next_step) const {
    return {ExitCode::kTrace, std::string(file_), std::move(message), std::move(next_step)};
  }

  Status Check() const {
    if (header_.version > kNewestVersion)
      return Refuse(fmt::format("has version {} of the tracer's format, this heddle reads 1 to {}",
                                header_.version, kNewestVersion),
                    "record with an older tracer, or write text with its older post-processing");
    if (!has_grid_ || !has_block_)
      return Refuse("states no grid or no block: it is no trace of a kernel",
                    "give the folder that the tracer's post-processing wrote");
    const auto impossible = [](const Dim3& dim, Dim3 most) {
      return dim.x == 0 || dim.y == 0 || dim.z == 0 || dim.x > most.x || dim.y > most.y || dim.z > most.z;
    };
    if (impossible(header_.grid, {0x7fffffff, 65535, 65535}))
      return Refuse("has a grid that no GPU can start", "record the trace again");
    if (impossible(header_.block, {1024, 1024, 64}) || header_.block.Count() > kMaxThreadsPerBlock)
      return Refuse("has blocks that no GPU can start", "record the trace again");
    if (header_.binary_version < 70)
      return Refuse(
          fmt::format("holds SASS of binary version {}; instructions before Volta (70) are not known here",
                      header_.binary_version),
          "record it on Volta or later");
    return Ok();
  }

  LineReader* lines_;
  std::string_view file_;
  FaultLog* faults_;
  TracegHeader header_;
  bool has_grid_ = false;
  bool has_block_ = false;
};

}  // namespace

bool ParseDim(std::string_view text, Dim3* out) {
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  const auto parts = SplitThree(text);
  return parts && Parse(Trim((*parts)[0]), &out->x) && Parse(Trim((*parts)[1]), &out->y) &&
         Parse(Trim((*parts)[2]), &out->z);
}

std::optional<std::string_view> ValueOf(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::string_view rest = Trim(line.substr(key.size()));
  if (!rest.starts_with('=')) return std::nullopt;
  return Trim(rest.substr(1));
}

Result<bool> NextReadable(LineReader* lines, std::string_view file, FaultLog* faults,
                          std::string_view* line) {
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(const Got got, lines->Next(line));
    if (got == Got::kLine) return true;
    if (got == Got::kEnd) return false;
    faults->Add(file, lines->line_number(),
                got == Got::kNoEnd ? "the last line does not end in a newline: it may be cut short"
                                   : "a line longer than any instruction");
  }
}

Result<TracegHeader> ReadTracegHeader(LineReader* lines, std::string_view file, FaultLog* faults) {
  return HeaderReader(lines, file, faults).Run();
}

}  // namespace heddle::importer
