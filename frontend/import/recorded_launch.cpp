#include "frontend/import/recorded_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "frontend/import/recorded_warps.h"

namespace heddle::importer {
namespace {

// Where things lie that a trace does not place: far from what a process is given.
constexpr uint64_t kCodeAddress = 0x7d00'0000'0000;
constexpr uint64_t kCodeBytes = uint64_t{64} << 20;  // of a function, with its constants
constexpr uint64_t kConstantsAt = uint64_t{32} << 20;
constexpr uint64_t kConstantBankBytes = 64 * 1024;
constexpr uint32_t kMostBarriers = 16;

Error Damaged(const trace::Trace& trace, uint32_t launch, std::string message) {
  return {ExitCode::kTrace, fmt::format("{}, launch {}", trace.name, launch), std::move(message),
          "the file is damaged: copy it again, or import the trace again"};
}

std::span<const trace::WarpStreamBlob> RowsOf(const trace::Trace& trace, uint32_t launch) {
  const auto& rows = trace.warp_streams;  // in the order of the launches
  const auto first =
      std::partition_point(rows.begin(), rows.end(), [&](const auto& row) { return row.launch < launch; });
  const auto end =
      std::partition_point(first, rows.end(), [&](const auto& row) { return row.launch == launch; });
  return {first, end};
}

}  // namespace

bool IsRecorded(const trace::Trace& trace, uint32_t launch) {
  return trace.modules[trace.functions[trace.launches[launch].function].module].recorded();
}

Result<trace::RecordingHeader> ReadRecordingHeader(const trace::Trace& trace, uint32_t launch) {
  const std::span<const trace::WarpStreamBlob> rows = RowsOf(trace, launch);
  if (!rows.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(trace::RecordingRow decoded,
                            trace::DecodeRecording(rows.front().bytes, trace.name));
    if (auto* header = std::get_if<trace::RecordingHeader>(&decoded)) return std::move(*header);
  }
  return Damaged(trace, launch, "holds neither a cubin nor recorded instructions");
}

Result<std::unique_ptr<RecordedLaunch>> RecordedLaunch::Open(const trace::Trace& trace,
                                                             const trace::ResolvedLaunch& resolved,
                                                             uint32_t launch) {
  std::unique_ptr<RecordedLaunch> out(new RecordedLaunch());
  HEDDLE_ASSIGN_OR_RETURN(out->header_, ReadRecordingHeader(trace, launch));
  const trace::Function& function = trace.functions[resolved.function];
  for (const trace::Sass& sass : trace.sass)
    if (sass.function == resolved.function) out->kernel_ = &sass.code;
  if (out->kernel_ == nullptr) return Damaged(trace, launch, "has no code");
  HEDDLE_ASSIGN_OR_RETURN(out->code_,
                          RecordedCode::Make(*out->kernel_, out->header_.code_stride, trace.name));
  HEDDLE_ASSIGN_OR_RETURN(out->shapes_, ReadShapes(out->header_.shapes, trace.name));
  out->header_.shapes = {};
  for (size_t i = 0; i < out->header_.order.size(); ++i) out->position_.emplace(out->header_.order[i], i);

  const std::span<const trace::WarpStreamBlob> chunks =
      RowsOf(trace, launch).subspan(1);  // behind the header
  if (!std::is_sorted(chunks.begin(), chunks.end(),
                      [](const auto& a, const auto& b) { return a.cta < b.cta; }))
    return Damaged(trace, launch, "its chunks are not in order");
  isa::LaunchShape& shape = out->shape_;
  shape.grid = resolved.grid;
  shape.block = resolved.block;
  shape.cluster = resolved.cluster;
  shape.registers_per_thread = function.registers;
  shape.shared_bytes_per_cta = function.static_shared_bytes + resolved.dynamic_shared_bytes;
  shape.barriers_per_cta = std::min(std::max(function.barriers, 1u), kMostBarriers);
  shape.code_address = kCodeAddress + resolved.function * kCodeBytes;
  for (size_t bank = 0; bank < shape.constant_bank_address.size(); ++bank)
    shape.constant_bank_address[bank] = shape.code_address + kConstantsAt + bank * kConstantBankBytes;
  out->chunks_ = std::make_unique<ChunkStore>(chunks, &out->code_, shape.WarpsPerCta());
  return out;
}

uint64_t RecordedLaunch::PositionOf(Dim3 block) const {
  const uint64_t index = block.x + uint64_t{shape_.grid.x} * (block.y + uint64_t{shape_.grid.y} * block.z);
  if (position_.empty()) return index;
  const auto found = position_.find(index);
  return found == position_.end() ? ~uint64_t{0} : found->second;
}

std::unique_ptr<isa::WarpStream> RecordedLaunch::OpenOnSm(uint32_t sm) {
  return std::make_unique<RecordedWarps>(this, sm);
}

void RecordedLaunch::NoteDamage() {
  const std::lock_guard lock(mutex_);
  ++damaged_warps_;
}

std::vector<isa::StreamIssue> RecordedLaunch::Issues() const {
  const std::lock_guard lock(mutex_);
  if (damaged_warps_ == 0) return {};
  return {
      {"damaged_recording", "parts of the recording cannot be read: their warps end early", damaged_warps_}};
}

}  // namespace heddle::importer
