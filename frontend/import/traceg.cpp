// The blocks of a file.
#include "frontend/import/traceg.h"

#include <fmt/format.h>

#include "frontend/import/text.h"
#include "frontend/import/traceg_header.h"

namespace heddle::importer {
namespace {

class Reader {
 public:
  Reader(LineReader* lines, std::string_view file, TracegSink* sink, FaultLog* faults)
      : lines_(lines), file_(file), sink_(sink), faults_(faults) {}

  Status Run() {
    HEDDLE_ASSIGN_OR_RETURN(header_, ReadTracegHeader(lines_, file_, faults_));
    HEDDLE_RETURN_IF_ERROR(sink_->Header(header_));
    for (;;) {
      std::string_view line;
      HEDDLE_ASSIGN_OR_RETURN(const bool more, NextReadable(lines_, file_, faults_, &line));
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
