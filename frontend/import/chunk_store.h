// Chunks of a recorded launch, unpacked when a block of theirs starts and kept while one runs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/import/firsts.h"
#include "frontend/import/recorded_code.h"
#include "frontend/trace/recording.h"
#include "frontend/trace/trace.h"

namespace heddle::importer {

// What one warp has of a chunk.
struct WarpPart {
  std::string_view tokens;
  std::span<const First> firsts;
};

class Chunk {
 public:
  // Reads the firsts. Parts that cannot be read are empty, and counted.
  Chunk(trace::RecordingChunk stored, const RecordedCode& code, uint32_t warps_per_block);

  WarpPart Part(uint64_t block, uint32_t warp) const;
  bool damaged() const { return damaged_; }

 private:
  trace::RecordingChunk stored_;
  uint32_t warps_per_block_;
  std::vector<uint64_t> token_start_;  // by block and warp; one more
  std::vector<uint64_t> first_start_;
  std::vector<First> firsts_;
  bool damaged_ = false;
};

// May be used by several threads at once.
class ChunkStore {
 public:
  // `rows` are the launch's chunks in order; they outlive the store.
  ChunkStore(std::span<const trace::WarpStreamBlob> rows, const RecordedCode* code, uint32_t warps_per_block)
      : rows_(rows), live_(rows_.size()), code_(code), warps_per_block_(warps_per_block) {}

  // The chunk that holds the `block`-th recorded block; null where none does, or it cannot be read.
  std::shared_ptr<const Chunk> Of(uint64_t block);

 private:
  static constexpr size_t kKept = 4;  // the latest ones, though no block of them runs

  std::span<const trace::WarpStreamBlob> rows_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<const Chunk>> live_;
  std::array<std::shared_ptr<const Chunk>, kKept> kept_;
  size_t oldest_ = 0;
  const RecordedCode* code_;
  uint32_t warps_per_block_;
};

}  // namespace heddle::importer
