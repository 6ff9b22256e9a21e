#include "frontend/import/chunk_store.h"

#include <algorithm>

namespace heddle::importer {
namespace {

// FirstsEncoder's counterpart.
class FirstsDecoder {
 public:
  FirstsDecoder(std::string_view bytes, const RecordedCode& code, uint32_t warps)
      : reader_(bytes), code_(code), prediction_(warps) {}

  // false: what the bytes say cannot be.
  bool Read(uint32_t warp, std::vector<First>* out) {
    const uint64_t count = reader_.Next();
    if (!reader_.good() || count > code_.accesses()) return false;
    std::vector<uint32_t> list;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t header = reader_.Next();
      const uint64_t residual = reader_.Residual(header, 3);
      uint32_t access = 0;
      if ((header & 4) != 0) {
        const uint64_t key = reader_.Next();
        const uint32_t index = key <= ~CodeKey{0} ? code_.IndexOf(static_cast<CodeKey>(key)) : code_.size();
        if (index >= code_.size() || code_[index].record != RecordKind::kAccess) return false;
        access = code_[index].access;
      } else if (i < list_.size()) {
        access = list_[i];
      } else {
        return false;
      }
      First first = prediction_.Expect(warp, access);
      first.base += residual;
      if ((header & 1) != 0) first.shape = static_cast<uint32_t>(reader_.Next());
      if (!reader_.good()) return false;
      prediction_.Set(warp, access, first);
      out->push_back(first);
      list.push_back(access);
    }
    list_ = std::move(list);
    return true;
  }

 private:
  NumberReader reader_;
  const RecordedCode& code_;
  FirstsPrediction prediction_;
  std::vector<uint32_t> list_;
};

}  // namespace

Chunk::Chunk(trace::RecordingChunk stored, const RecordedCode& code, uint32_t warps_per_block)
    : stored_(std::move(stored)), warps_per_block_(warps_per_block) {
  const uint64_t warps = uint64_t{stored_.blocks} * warps_per_block;
  if (stored_.warp_bytes.size() != warps) {
    stored_.blocks = 0;
    damaged_ = true;
    return;
  }
  FirstsDecoder decoder(stored_.firsts, code, warps_per_block);
  uint64_t at = 0;
  for (uint64_t i = 0; i < warps; ++i) {
    token_start_.push_back(at);
    first_start_.push_back(firsts_.size());
    at += stored_.warp_bytes[i];
    if (damaged_ || decoder.Read(static_cast<uint32_t>(i % warps_per_block), &firsts_)) continue;
    damaged_ = true;
    firsts_.resize(first_start_.back());
  }
  token_start_.push_back(at);
  first_start_.push_back(firsts_.size());
  stored_.firsts = {};
}

WarpPart Chunk::Part(uint64_t block, uint32_t warp) const {
  if (block < stored_.first_block || block - stored_.first_block >= stored_.blocks) return {};
  const uint64_t i = (block - stored_.first_block) * warps_per_block_ + warp;
  return {std::string_view(stored_.tokens).substr(token_start_[i], token_start_[i + 1] - token_start_[i]),
          std::span(firsts_).subspan(first_start_[i], first_start_[i + 1] - first_start_[i])};
}

std::shared_ptr<const Chunk> ChunkStore::Of(uint64_t block) {
  const auto behind =
      std::upper_bound(rows_.begin(), rows_.end(), block,
                       [](uint64_t b, const trace::WarpStreamBlob& row) { return b < row.cta; });
  if (behind == rows_.begin()) return nullptr;
  const auto index = static_cast<size_t>(behind - rows_.begin()) - 1;
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<const Chunk> live = live_[index].lock()) return live;
  Result<trace::RecordingRow> row = trace::DecodeRecording(rows_[index].bytes, "");
  if (!row.ok() || !std::holds_alternative<trace::RecordingChunk>(*row)) return nullptr;
  auto chunk = std::make_shared<const Chunk>(std::get<trace::RecordingChunk>(std::move(*row)), *code_,
                                             warps_per_block_);
  live_[index] = chunk;
  kept_[oldest_++ % kKept] = chunk;
  return chunk;
}

}  // namespace heddle::importer
