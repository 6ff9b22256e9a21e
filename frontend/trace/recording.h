// The rows of the table warp_stream: recorded instructions of one launch.
//
// The launch's code (table sass) holds every instruction once; a warp is a string of tokens that walk over it. What the
// bytes in `tokens`, `firsts` and `shapes` mean is the importer's business (frontend/import/recorded_format.h); here they
// are packed. Rows are compressed one by one, so that a replay needs no more of them in memory than it is at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/result.h"

namespace heddle::trace {

// Something about the recording that a run's results must say.
struct RecordingNote {
  std::string kind;  // stable identifier
  std::string detail;
  uint64_t count = 0;
  bool operator==(const RecordingNote&) const = default;
};

struct RecordingHeader {
  uint32_t code_stride = 0;     // instructions of one variant of the code
  uint64_t blocks = 0;          // that were recorded
  std::vector<uint64_t> order;  // linear block index of the i-th recorded block; empty: i
  std::string shapes;
  uint64_t shared_base = 0;  // of the generic windows; 0: not known
  uint64_t local_base = 0;
  uint32_t local_low = 0;  // offsets in local memory that are used: [low, high)
  uint32_t local_high = 0;
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  std::string source;  // "accel-sim 5"
  std::vector<RecordingNote> notes;
  bool operator==(const RecordingHeader&) const = default;
};

struct RecordingChunk {
  uint64_t first_block = 0;
  uint32_t blocks = 0;
  std::vector<uint32_t> warp_bytes;  // of `tokens`: block after block, warp after warp
  std::string tokens;
  std::string firsts;
  bool operator==(const RecordingChunk&) const = default;
};

std::vector<std::byte> EncodeRecording(const RecordingHeader& header);
std::vector<std::byte> EncodeRecording(const RecordingChunk& chunk);

using RecordingRow = std::variant<RecordingHeader, RecordingChunk>;
// The bytes are not trusted: sizes are checked, what the strings hold is not.
Result<RecordingRow> DecodeRecording(std::span<const std::byte> bytes, const std::string& place);

}  // namespace heddle::trace
