#include "frontend/import/launch_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "frontend/import/recorded_barrier.h"

namespace heddle::importer {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;  // of tokens: a replay decodes that much at once
constexpr uint32_t kChunkBlocks = 4096;
constexpr uint64_t kMostBlocks = uint64_t{1} << 31;

}  // namespace

void FirstsEncoder::Add(uint32_t warp, const std::vector<FirstAccess>& firsts, std::string* out) {
  PutNumber(firsts.size(), out);
  std::vector<CodeKey> list;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const FirstAccess& each = firsts[i];
    const First expected = prediction_.Expect(warp, each.id);
    const bool stated = each.first.shape == 0 || each.first.shape != expected.shape;
    const bool named = i >= list_.size() || list_[i] != each.key;
    PutResidual(each.first.base - expected.base, 3, (named ? 4u : 0u) | (stated ? 1u : 0u), out);
    if (named) PutNumber(each.key, out);
    if (stated) PutNumber(each.first.shape, out);
    prediction_.Set(warp, each.id, each.first);
    list.push_back(each.key);
  }
  list_ = std::move(list);
}

Status LaunchRecorder::Header(const TracegHeader& header) {
  if (header.grid.Count() > kMostBlocks)
    return Error{ExitCode::kTrace, std::string(file_), fmt::format("has {} blocks", header.grid.Count()),
                 "such a grid was never recorded whole: record a smaller one"};
  header_ = header;
  code_ = chooser_->Choose(header);
  recording_.shared_base = header.shared_base;
  recording_.local_base = header.local_base;
  recording_.source = fmt::format("accel-sim {}", header.version);
  recording_.local_low = ~0u;
  block_.resize(header.WarpsPerBlock());
  return Ok();
}

void LaunchRecorder::BeginBlock(Dim3 block, uint64_t line) {
  block_line_ = line;
  const Dim3& grid = header_.grid;
  uint64_t index = block.x + uint64_t{grid.x} * (block.y + uint64_t{grid.y} * block.z);
  const bool inside = block.x < grid.x && block.y < grid.y && block.z < grid.z;
  if (!inside || !recorded_.insert(index).second) {
    faults_->Add(file_, line, inside ? "a block that stands twice" : "a block outside the grid");
    index = ~uint64_t{0};
  }
  order_.push_back(index);
  for (EncodedWarp& warp : block_) warp = {};
  seen_.assign(block_.size(), false);
}

void LaunchRecorder::BeginWarp(uint32_t warp, uint64_t line) {
  warp_ = warp;
  skips_ = seen_[warp];
  if (skips_) faults_->Add(file_, line, "a warp that stands twice in its block");
  seen_[warp] = true;
  encoder_.Begin();
}

void LaunchRecorder::Instruction(const TracegInstruction& line, uint64_t number) {
  if (skips_) return;
  const StaticCode::Found found = code_->Find(line);
  if (found.fault != nullptr) faults_->Add(file_, number, found.fault, line.opcode);
  if (found.key == StaticCode::kNone) return;
  encoder_.Add(found, line);
  ++recording_.warp_instructions;
  recording_.thread_instructions += static_cast<uint64_t>(std::popcount(line.mask));
  const isa::Instruction& instruction = code_->instruction(found.id);
  if (found.record == RecordKind::kAccess && line.mask != 0) NoteLocal(line, instruction.op);
  if (found.record == RecordKind::kBarrier) barriers_ = std::max(barriers_, BarrierOf(instruction).id + 1u);
}

void LaunchRecorder::NoteLocal(const TracegInstruction& line, isa::Op op) {
  const bool local = op == isa::Op::kLDL || op == isa::Op::kSTL;
  const bool generic = op == isa::Op::kLD || op == isa::Op::kST || op == isa::Op::kATOM;
  if (!local && !generic) return;
  for (uint32_t left = line.mask; left != 0; left &= left - 1) {
    const uint64_t address = line.address[static_cast<size_t>(std::countr_zero(left))];
    if (!local && !InWindow(address, header_.local_base)) continue;
    const uint32_t offset = LocalOffset(address, header_.local_base);
    recording_.local_low = std::min(recording_.local_low, offset & ~15u);
    recording_.local_high = std::max(recording_.local_high, (offset | 15u) + 1);
  }
}

void LaunchRecorder::EndWarp() {
  if (!skips_) block_[warp_] = encoder_.End();
}

void LaunchRecorder::EndBlock() {
  if (order_.back() == ~uint64_t{0}) {  // no place for it
    order_.pop_back();
    return;
  }
  if (!firsts_) {
    firsts_.emplace(header_.WarpsPerBlock());
    chunk_ = {};
    chunk_.first_block = recording_.blocks;
  }
  for (uint32_t w = 0; w < block_.size(); ++w) {
    const EncodedWarp& warp = block_[w];
    empty_warps_ += warp.tokens.empty();
    chunk_.warp_bytes.push_back(static_cast<uint32_t>(warp.tokens.size()));
    chunk_.tokens += warp.tokens;
    firsts_->Add(w, warp.firsts, &chunk_.firsts);
  }
  ++chunk_.blocks;
  ++recording_.blocks;
  if (chunk_.tokens.size() + chunk_.firsts.size() >= kChunkBytes || chunk_.blocks == kChunkBlocks)
    CloseChunk();
}

void LaunchRecorder::CloseChunk() {
  first_blocks_.push_back(chunk_.first_block);
  chunks_.push_back(trace::EncodeRecording(chunk_));
  firsts_.reset();
}

void LaunchRecorder::Finish() {
  if (firsts_) CloseChunk();
  const uint64_t expected = header_.grid.Count();
  if (recording_.blocks != expected)
    faults_->Add(file_, 0, "not as many blocks as the grid has",
                 fmt::format("{} of {}", recording_.blocks, expected));
  bool in_order = true;
  for (size_t i = 0; i < order_.size(); ++i) in_order &= order_[i] == i;
  if (!in_order) recording_.order = order_;
  if (recording_.local_low >= recording_.local_high) recording_.local_low = recording_.local_high = 0;
  recording_.shapes = shapes_.bytes();
  const uint64_t warps = empty_warps_ + (expected - std::min(expected, recording_.blocks)) * block_.size();
  if (warps != 0)
    recording_.notes.push_back(
        {"warps_not_recorded", "end at once, with one EXIT that is not in the recording", warps});
}

}  // namespace heddle::importer
