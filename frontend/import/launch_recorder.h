// Turns the trace of one kernel into the rows of a recorded launch, block after block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "frontend/import/firsts.h"
#include "frontend/import/static_code.h"
#include "frontend/import/traceg.h"
#include "frontend/import/warp_encoder.h"
#include "frontend/trace/recording.h"

namespace heddle::importer {

// Writes the firsts of a chunk.
class FirstsEncoder {
 public:
  explicit FirstsEncoder(uint32_t warps) : prediction_(warps) {}
  void Add(uint32_t warp, const std::vector<FirstAccess>& firsts, std::string* out);

 private:
  FirstsPrediction prediction_;
  std::vector<CodeKey> list_;  // of the warp before
};

class LaunchRecorder final : public TracegSink {
 public:
  // Faults beyond those of the text are noted in `faults` under the name `file`. `code` outlives the recorder; Header
  // chooses it.
  class CodeChooser {
   public:
    virtual ~CodeChooser() = default;
    virtual StaticCode* Choose(const TracegHeader& header) = 0;
  };
  LaunchRecorder(std::string_view file, CodeChooser* chooser, FaultLog* faults)
      : file_(file), chooser_(chooser), faults_(faults), encoder_(&shapes_) {}

  Status Header(const TracegHeader& header) override;
  void BeginBlock(Dim3 block, uint64_t line) override;
  void BeginWarp(uint32_t warp, uint64_t line) override;
  void Instruction(const TracegInstruction& instruction, uint64_t line) override;
  void EndWarp() override;
  void EndBlock() override;

  // After the file: what is left, and whether every block was there. No further calls but the accessors.
  void Finish();

  const TracegHeader& header() const { return header_; }
  trace::RecordingHeader& recording() { return recording_; }
  std::vector<std::vector<std::byte>>& chunks() { return chunks_; }
  const std::vector<uint64_t>& first_blocks() const { return first_blocks_; }
  uint32_t barriers() const { return barriers_; }  // that BAR instructions may name

 private:
  void NoteLocal(const TracegInstruction& instruction, isa::Op op);
  void CloseChunk();

  std::string_view file_;
  CodeChooser* chooser_;
  FaultLog* faults_;
  TracegHeader header_;
  StaticCode* code_ = nullptr;
  ShapeTable shapes_;
  WarpEncoder encoder_;

  trace::RecordingHeader recording_;
  std::vector<uint64_t> order_;
  std::unordered_set<uint64_t> recorded_;  // linear block indices
  std::vector<std::vector<std::byte>> chunks_;
  std::vector<uint64_t> first_blocks_;

  trace::RecordingChunk chunk_;
  std::optional<FirstsEncoder> firsts_;  // of the chunk; none before its first block
  std::vector<EncodedWarp> block_;       // by warp
  std::vector<bool> seen_;               // by warp
  uint32_t warp_ = 0;
  bool skips_ = false;  // a warp that stands twice
  uint64_t block_line_ = 0;
  uint64_t empty_warps_ = 0;
  uint32_t barriers_ = 1;
};

}  // namespace heddle::importer
