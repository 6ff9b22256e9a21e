// The header and the blocks of a file.
#include "frontend/import/traceg.h"

#include <fmt/format.h>

#include <optional>

#include "frontend/import/text.h"

namespace heddle::importer {
namespace {

using Got = LineReader::Got;

// "x,y,z", with or without parentheses.
bool ParseDim(std::string_view text, Dim3* out) {
  if (text.starts_with('(') && text.ends_with(')')) text = text.substr(1, text.size() - 2);
  const auto parts = SplitThree(text);
  return parts && Parse(Trim((*parts)[0]), &out->x) && Parse(Trim((*parts)[1]), &out->y) &&
         Parse(Trim((*parts)[2]), &out->z);
}

// "key = value" behind a prefix; nothing where the line is another one.
std::optional<std::string_view> ValueOf(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  const std::string_view rest = Trim(line.substr(key.size()));
  if (!rest.starts_with('=')) return std::nullopt;
  return Trim(rest.substr(1));
}

class Reader {
 public:
  Reader(LineReader* lines, std::string_view file, TracegSink* sink, FaultLog* faults)
      : lines_(lines), file_(file), sink_(sink), faults_(faults) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(ReadHeader());
    HEDDLE_RETURN_IF_ERROR(CheckHeader());
    HEDDLE_RETURN_IF_ERROR(sink_->Header(header_));
    for (;;) {
      std::string_view line;
      HEDDLE_ASSIGN_OR_RETURN(const bool more, Next(&line));
      if (!more) break;
      if (!line.empty()) Body(line);
    }
    if (in_block_) {
      Fault("the file ends inside a thread block");
      CloseBlock();
    }
    return Ok();
  }

 private:
  void Fault(std::string_view kind, std::string_view detail = {}) {
    faults_->Add(file_, lines_->line_number(), kind, detail);
  }

  // The next line that can be looked at; false at the end.
  Result<bool> Next(std::string_view* line) {
    for (;;) {
      HEDDLE_ASSIGN_OR_RETURN(const Got got, lines_->Next(line));
      if (got == Got::kLine) return true;
      if (got == Got::kEnd) return false;
      Fault(got == Got::kNoEnd ? "the last line does not end in a newline: it may be cut short"
                               : "a line longer than any instruction");
    }
  }

  Status ReadHeader() {
    for (;;) {
      std::string_view line;
      HEDDLE_ASSIGN_OR_RETURN(const bool more, Next(&line));
      if (!more) return Ok();
      if (line.empty()) continue;
      if (line.front() == '#') return Ok();
      if (line.front() != '-')
        Fault("a header line that is no '-key = value'", line.substr(0, 80));
      else if (!HeaderLine(line.substr(1)))
        Fault("a header value that is no number", line.substr(0, 80));
    }
  }

  // Keys that are not known are left alone: newer tracers add some.
  bool HeaderLine(std::string_view line) {
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

  Error HeaderError(std::string message, std::string next_step) const {
    return {ExitCode::kTrace, std::string(file_), std::move(message), std::move(next_step)};
  }

  Status CheckHeader() const {
    if (header_.version > kNewestVersion)
      return HeaderError(fmt::format("has version {} of the tracer's format, this heddle reads 1 to {}",
                                     header_.version, kNewestVersion),
                         "record with an older tracer, or write text with its older post-processing");
    if (!has_grid_ || !has_block_)
      return HeaderError("states no grid or no block: it is no trace of a kernel",
                         "give the folder that the tracer's post-processing wrote");
    const auto impossible = [](const Dim3& dim, Dim3 most) {
      return dim.x == 0 || dim.y == 0 || dim.z == 0 || dim.x > most.x || dim.y > most.y || dim.z > most.z;
    };
    if (impossible(header_.grid, {0x7fffffff, 65535, 65535}))
      return HeaderError("has a grid that no GPU can start", "record the trace again");
    if (impossible(header_.block, {1024, 1024, 64}) || header_.block.Count() > kMaxThreadsPerBlock)
      return HeaderError("has blocks that no GPU can start", "record the trace again");
    if (header_.binary_version < 70)
      return HeaderError(
          fmt::format("holds SASS of binary version {}; instructions before Volta (70) are not known here",
                      header_.binary_version),
          "record it on Volta or later");
    return Ok();
  }

  void Body(std::string_view line) {
    if (line.front() == '#') {
      Mark(Trim(line));
    } else if (const auto block = ValueOf(line, "thread block")) {
      if (!in_block_ || began_ || !ParseDim(*block, &block_))
        return Fault("a thread block line out of place", line.substr(0, 80));
      OpenBlock();
    } else if (const auto warp = ValueOf(line, "warp")) {
      BeginWarp(*warp);
    } else if (const auto count = ValueOf(line, "insts")) {
      if (skipping_) return;
      if (!in_warp_ || counted_ || !Parse(*count, &expected_))
        return Fault("an insts line out of place", line.substr(0, 80));
      counted_ = true;
    } else {
      InstructionLine(line);
    }
  }

  void Mark(std::string_view mark) {
    if (mark == "#BEGIN_TB") {
      if (in_block_) {
        Fault("a thread block begins inside another");
        CloseBlock();
      }
      in_block_ = true;
      began_ = false;
      block_ = {};
    } else if (mark == "#END_TB") {
      if (!in_block_) return Fault("a thread block ends that has not begun");
      CloseBlock();
    }  // other comments mean nothing
  }

  void OpenBlock() {
    began_ = true;
    sink_->BeginBlock(block_, lines_->line_number());
  }

  void CloseBlock() {
    CloseWarp();
    if (!began_) {
      Fault("a thread block without its coordinates");
      OpenBlock();
    }
    sink_->EndBlock();
    in_block_ = skipping_ = false;
  }

  void BeginWarp(std::string_view text) {
    CloseWarp();
    uint32_t warp = 0;
    skipping_ = true;
    if (!in_block_ || !began_) return Fault("a warp outside a thread block");
    if (!Parse(text, &warp)) return Fault("the number of a warp is no number", text.substr(0, 80));
    if (warp >= header_.WarpsPerBlock()) return Fault("a warp beyond those of the block");
    skipping_ = false;
    in_warp_ = true;
    counted_ = false;
    expected_ = seen_ = 0;
    sink_->BeginWarp(warp, lines_->line_number());
  }

  void CloseWarp() {
    if (!in_warp_) return;
    in_warp_ = false;
    if (!counted_)
      Fault("a warp does not say how many instructions it has");
    else if (seen_ != expected_)
      Fault("a warp has not as many instructions as it says", fmt::format("{} of {}", seen_, expected_));
    sink_->EndWarp();
  }

  void InstructionLine(std::string_view line) {
    if (!in_warp_) {
      if (!skipping_) Fault("a line outside a warp", line.substr(0, 80));
      return;
    }
    ++seen_;
    if (const char* fault = ParseInstruction(line, header_, &instruction_))
      return Fault(fault, line.substr(0, 80));
    sink_->Instruction(instruction_, lines_->line_number());
  }

  LineReader* lines_;
  std::string_view file_;
  TracegSink* sink_;
  FaultLog* faults_;
  TracegHeader header_;
  TracegInstruction instruction_;
  bool has_grid_ = false;
  bool has_block_ = false;
  Dim3 block_;
  bool in_block_ = false;
  bool began_ = false;  // BeginBlock has been called
  bool in_warp_ = false;
  bool counted_ = false;
  bool skipping_ = false;  // the lines of a warp that cannot be
  uint64_t expected_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace

Status ReadTraceg(LineReader* lines, std::string_view file, TracegSink* sink, FaultLog* faults) {
  return Reader(lines, file, sink, faults).Run();
}

}  // namespace heddle::importer
