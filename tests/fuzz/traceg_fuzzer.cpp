// Accel-Sim's formats from arbitrary bytes: the list of kernels, traces as text and compressed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "frontend/import/kernels_list.h"
#include "frontend/import/launch_recorder.h"
#include "frontend/import/shapes.h"
#include "frontend/import/traceg.h"
#include "frontend/import/tracez.h"

namespace heddle::importer {
namespace {

// Holds the order of the calls.
class Checker final : public TracegSink {
 public:
  Status Header(const TracegHeader& header) override {
    warps_ = header.WarpsPerBlock();
    Require(warps_ >= 1 && warps_ <= 32);
    return Ok();
  }
  void BeginBlock(Dim3, uint64_t) override { Enter(0, 1); }
  void BeginWarp(uint32_t warp, uint64_t) override {
    Require(warp < warps_);
    Enter(1, 2);
  }
  void Instruction(const TracegInstruction& each, uint64_t) override {
    Require(depth_ == 2 && !each.opcode.empty() && each.source_count <= kMaxSources);
  }
  void EndWarp() override { Enter(2, 1); }
  void EndBlock() override { Enter(1, 0); }

 private:
  static void Require(bool condition) {
    if (!condition) std::abort();
  }
  void Enter(int from, int to) {
    Require(depth_ == from);
    depth_ = to;
  }
  int depth_ = 0;
  uint32_t warps_ = 0;
};

}  // namespace
}  // namespace heddle::importer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heddle::importer;
  const std::string text(reinterpret_cast<const char*>(data), size);
  FaultLog faults;
  Checker checker;
  LineReader lines(OpenBytes(text));
  const heddle::Status status = ReadTraceg(&lines, "fuzz", &checker, &faults);
  if (!status.ok() && status.error().code != heddle::ExitCode::kTrace) std::abort();
  Checker packed_checker;
  const auto packed = OpenRandomBytes(text);
  const heddle::Status packed_status = ReadTracez(packed.get(), "fuzz.tracez", &packed_checker, &faults);
  if (!packed_status.ok() && packed_status.error().code != heddle::ExitCode::kTrace) std::abort();
  // The same as a recording; every way through the importer but the files.
  struct OneCode final : LaunchRecorder::CodeChooser {
    StaticCode code;
    StaticCode* Choose(const TracegHeader&) override { return &code; }
  } chooser;
  LineReader again(OpenBytes(text));
  LaunchRecorder recorder("fuzz", &chooser, &faults);
  if (ReadTraceg(&again, "fuzz", &recorder, &faults).ok()) {
    recorder.Finish();
    for (const auto& chunk : recorder.chunks())
      if (!heddle::trace::DecodeRecording(chunk, "fuzz").ok()) std::abort();
    if (!ReadShapes(recorder.recording().shapes, "fuzz").ok()) std::abort();
  }
  LineReader list(OpenBytes(text));
  if (!ReadKernelsList(&list, "fuzz", &faults).ok()) std::abort();
  if (faults.total() > 0 && faults.ToError().message.empty()) std::abort();
  return 0;
}
