// Accel-Sim 2.0's compressed instruction traces: one `.tracez` a kernel, the lines of `.traceg` with an index behind them.
// All numbers are little-endian.
//
//   header      the text's "-key = value" lines, then a byte 0
//   u32         bytes of the dictionary, 0: none
//   u32         instructions that its writer aimed at in a piece; pieces say what they hold, so that nothing depends on it
//   dictionary  zstd's, of all pieces
//   warps       u32 instructions, u32 pieces, then each piece: u32 bytes and one zstd frame, which states its length and
//               holds instruction lines with a newline between them and none at the end
//   index       u32 blocks; a block: 10 u32 (its place in the grid, cluster's place in the grid, place in the cluster: x y z
//               each; rank in the cluster), u32 warps; a warp, in the order of its number: u32 instructions, u32 pieces,
//               u64 byte offset of its data, and for each piece u32 instructions
//   u64         byte offset of the index
//
// Learned from accel-sim-framework at commit e1c2b67865ba986fef16d41071332bf864ee808c (the tracer tool's tracez_format.h)
// and the post-processing that writes such files (dbfed91a09e2bd48473f29dd3f3ab42078b49563).
#pragma once

#include <string_view>

#include "frontend/import/faults.h"
#include "frontend/import/random_file.h"
#include "frontend/import/traceg.h"
#include "sim/base/result.h"

namespace heddle::importer {

inline constexpr std::string_view kTracezSuffix = ".tracez";

// Reads a whole file, a piece of a warp at a time; the sink's calls are those for the same trace as text, with byte
// offsets for lines: of a block's place in the index, a warp's data, an instruction's piece. What lies inside one warp
// (a line, a compressed piece) is noted in `faults` and left out. An error (kTrace, with the offset) is returned where
// nothing can be made of the rest: the header, the dictionary, the index; and where warps do not stand in the file in the
// order of the index, one behind the other, as they are written.
Status ReadTracez(RandomFile* input, std::string_view file, TracegSink* sink, FaultLog* faults);

}  // namespace heddle::importer
