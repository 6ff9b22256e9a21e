// Writes the instructions of one warp as tokens (recorded_format.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import/firsts.h"
#include "frontend/import/recorded_format.h"
#include "frontend/import/shapes.h"
#include "frontend/import/static_code.h"

namespace heddle::importer {

// The first access of an instruction in a warp.
struct FirstAccess {
  uint32_t id = 0;  // of the instruction in its StaticCode
  CodeKey key = 0;
  First first;
};

struct EncodedWarp {
  std::string tokens;
  std::vector<FirstAccess> firsts;
};

class WarpEncoder {
 public:
  explicit WarpEncoder(ShapeTable* shapes) : shapes_(shapes) {}

  void Begin();
  // The next instruction; `line` is what `found` was found for.
  void Add(const StaticCode::Found& found, const TracegInstruction& line);
  EncodedWarp End();

 private:
  struct Access {       // the last one of an instruction in this warp
    uint32_t warp = 0;  // whose it is; another number: none yet
    uint32_t shape = 0;
    uint64_t base = 0;
    uint64_t step = 0;
  };
  void FlushRun();
  void PutAccess(const StaticCode::Found& found, const TracegInstruction& line);
  void PutBarrier(const TracegInstruction& line);

  ShapeTable* shapes_;
  EncodedWarp out_;
  uint32_t warp_ = 0;
  CodeKey start_ = 0;  // of the run
  uint32_t count_ = 0;
  uint32_t run_mask_ = 0;
  std::string records_;  // of the run
  uint32_t expected_place_ = 0;
  uint32_t variant_ = 0;
  uint32_t mask_ = 0;
  std::vector<Access> accesses_;  // by instruction

  // Lanes that have arrived at the barrier whose record is still open, and where it stands.
  uint32_t arrived_ = 0;
  uint64_t barrier_ = 0;  // which one it is, as far as lines say
  std::optional<size_t> open_barrier_;
  bool open_in_records_ = false;
};

}  // namespace heddle::importer
