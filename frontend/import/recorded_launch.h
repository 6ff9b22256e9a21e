// A recorded launch, ready to run: the simulator drives it as it drives executed SASS.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/import/chunk_store.h"
#include "frontend/import/recorded_code.h"
#include "frontend/import/shapes.h"
#include "frontend/trace/recording.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/isa/warp_stream.h"

namespace heddle::importer {

bool IsRecorded(const trace::Trace& trace, uint32_t launch);

// The header row of a recorded launch.
Result<trace::RecordingHeader> ReadRecordingHeader(const trace::Trace& trace, uint32_t launch);

class RecordedLaunch final : public isa::LaunchProgram {
 public:
  // `trace` outlives the launch. Errors (kTrace): rows that cannot be read.
  static Result<std::unique_ptr<RecordedLaunch>> Open(const trace::Trace& trace,
                                                      const trace::ResolvedLaunch& resolved, uint32_t launch);

  const isa::KernelCode& code() const override { return *kernel_; }
  const isa::LaunchShape& shape() const override { return shape_; }
  isa::MemoryImage& memory() override { return memory_; }
  std::unique_ptr<isa::WarpStream> OpenOnSm(uint32_t sm) override;
  // Parts of the recording that could not be read; empty for every recording that the importer wrote.
  std::vector<isa::StreamIssue> Issues() const override;

  const trace::RecordingHeader& recording() const { return header_; }

 private:
  friend class RecordedWarps;
  class NoMemory final : public isa::MemoryImage {
   public:
    void PublishStores() override {}
  };

  RecordedLaunch() = default;
  // The position of a block in the recording; ~0 where it was not recorded.
  uint64_t PositionOf(Dim3 block) const;
  void NoteDamage();

  const isa::KernelCode* kernel_ = nullptr;
  isa::LaunchShape shape_;
  NoMemory memory_;
  trace::RecordingHeader header_;
  RecordedCode code_;
  std::vector<Shape> shapes_;
  std::map<uint64_t, uint64_t> position_;  // by linear index; only where the blocks are not in order
  std::unique_ptr<ChunkStore> chunks_;
  mutable std::mutex mutex_;
  uint64_t damaged_warps_ = 0;
};

}  // namespace heddle::importer
