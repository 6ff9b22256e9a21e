// Accel-Sim's instruction traces as text: one `.traceg` a kernel, versions 1 to 5 of the tracer.
//
// A file is a header of "-key = value" lines, a line that starts with '#', and then block after block:
// "#BEGIN_TB", "thread block = x,y,z", for each warp "warp = w", "insts = n" and n instruction lines, "#END_TB". An
// instruction line:
//
//   [cta_x cta_y cta_z warp] [line] pc mask dests [R..] opcode sources [R..] width [mode addresses] [immediate]
//
// with the first four only before version 3, `line` only where the header enables it, mode and addresses only where
// width is not 0, and the immediate from version 5 on. Numbers with a size in their name are decimal; pc and mask are
// hexadecimal; the mask is that of the lanes that execute (active and not predicated off).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/import/faults.h"
#include "frontend/import/line_reader.h"
#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::importer {

inline constexpr uint32_t kNewestVersion = 5;
inline constexpr size_t kMaxSources = 5;  // the tracer's own limit
inline constexpr uint32_t kMaxThreadsPerBlock = 1024;

struct TracegHeader {
  std::string kernel_name;  // mangled
  uint32_t kernel_id = 0;
  Dim3 grid;
  Dim3 block;
  uint32_t shared_bytes = 0;  // static and dynamic
  uint32_t registers = 0;     // per thread
  uint32_t binary_version = 0;
  uint64_t stream = 0;
  uint64_t shared_base = 0;  // of the generic windows; 0: not known
  uint64_t local_base = 0;
  uint32_t version = 1;  // of the tracer; files of the first two state none
  bool has_line_numbers = false;

  uint32_t WarpsPerBlock() const { return CeilDiv(static_cast<uint32_t>(block.Count()), kWarpLanes); }
};

enum class AddressMode : uint8_t { kNone, kList, kStride, kDelta };

struct TracegInstruction {
  uint32_t pc = 0;    // byte offset in its function
  uint32_t mask = 0;  // lanes that execute
  bool has_destination = false;
  uint8_t destination = 0;  // 255: RZ
  uint8_t source_count = 0;
  std::array<uint8_t, kMaxSources> sources{};
  std::string_view opcode;  // with its modifiers; points into the line
  AddressMode mode = AddressMode::kNone;
  std::array<uint64_t, kWarpLanes> address{};  // by lane, of lanes in `mask`; valid where mode is not kNone
  int64_t immediate = 0;
};

// Reads one instruction line. Returns nullptr, or what is wrong with the line.
const char* ParseInstruction(std::string_view line, const TracegHeader& header, TracegInstruction* out);

// What ReadTraceg finds, in the order of the file. Calls come in the order Header (BeginBlock (BeginWarp Instruction*
// EndWarp)* EndBlock)*; places are (file, line), or
// (file, byte offset) of a `.tracez` (tracez.h).
class TracegSink {
 public:
  virtual ~TracegSink() = default;
  virtual Status Header(const TracegHeader& header) = 0;
  virtual void BeginBlock(Dim3 block, uint64_t line) = 0;
  virtual void BeginWarp(uint32_t warp, uint64_t line) = 0;  // below the header's WarpsPerBlock
  virtual void Instruction(const TracegInstruction& instruction, uint64_t line) = 0;
  virtual void EndWarp() = 0;
  virtual void EndBlock() = 0;
};

// Reads a whole file. Lines that cannot be read are noted in `faults` under the name `file` and left out; an error is
// returned only where nothing can be made of the rest: a header that lacks what a launch needs, damaged compression.
Status ReadTraceg(LineReader* lines, std::string_view file, TracegSink* sink, FaultLog* faults);

}  // namespace heddle::importer
