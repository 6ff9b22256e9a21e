#include "frontend/import/zstd_piece.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "sim/base/check.h"

namespace heddle::importer {
namespace {

constexpr size_t kInputBytes = 64 * 1024;
constexpr size_t kLongestFrameHeader = 18;  // RFC 8878, section 3.1.1.1

}  // namespace

class ZstdDecoder::Frame final : public ByteSource {
 public:
  Frame(ZSTD_DCtx* context, RandomFile* file, uint64_t offset, uint32_t size_bytes, std::string place)
      : context_(context), file_(file), at_(offset), left_(size_bytes), place_(std::move(place)) {}

  Result<size_t> Read(char* out, size_t size) override {
    ZSTD_outBuffer produced{out, size, 0};
    while (produced.pos == 0 && size != 0 && !done_) {
      if (in_.pos == in_.size && left_ != 0) HEDDLE_RETURN_IF_ERROR(Fill());
      const size_t before = in_.pos;
      const size_t more = ZSTD_decompressStream(context_, &produced, &in_);
      if (ZSTD_isError(more)) return Damaged(ZSTD_getErrorName(more));
      if (more == 0)
        done_ = true;
      else if (produced.pos == 0 && in_.pos == before && left_ == 0)
        return Damaged("it ends too early");
    }
    if (done_ && (left_ != 0 || in_.pos != in_.size)) return Damaged("bytes follow the frame");
    return produced.pos;
  }

 private:
  Error Damaged(std::string_view why) const {
    return {ExitCode::kTrace, place_, fmt::format("compressed instructions cannot be read: {}", why),
            "copy the file again, or record the trace again"};
  }

  Status Fill() {
    const bool first = input_.empty();
    input_.resize(std::min<size_t>(kInputBytes, left_));
    HEDDLE_RETURN_IF_ERROR(file_->ReadAt(at_, input_.data(), input_.size()));
    at_ += input_.size();
    left_ -= static_cast<uint32_t>(input_.size());
    in_ = {input_.data(), input_.size(), 0};
    return first ? CheckHeader() : Ok();
  }

  Status CheckHeader() const {
    const unsigned long long size = ZSTD_getFrameContentSize(input_.data(), input_.size());
    if (size == ZSTD_CONTENTSIZE_ERROR)
      return Damaged(input_.size() < kLongestFrameHeader ? "it ends too early" : "it is no zstd frame");
    if (size == ZSTD_CONTENTSIZE_UNKNOWN) return Damaged("the frame does not say how long its text is");
    if (size > kMostFrameBytes) return Damaged(fmt::format("its text has {} bytes", size));
    return Ok();
  }

  ZSTD_DCtx* context_;
  RandomFile* file_;
  uint64_t at_;
  uint32_t left_;
  std::string place_;
  std::string input_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool done_ = false;
};

ZstdDecoder::ZstdDecoder() : context_(ZSTD_createDCtx()) {
  HEDDLE_CHECK(context_ != nullptr, "import.zstd", 0, "no memory for a decompressor");
  ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, 27);
}

ZstdDecoder::~ZstdDecoder() {
  ZSTD_freeDCtx(context_);
  ZSTD_freeDDict(dictionary_);
}

bool ZstdDecoder::SetDictionary(const std::string& bytes) {
  if (bytes.empty()) return true;
  dictionary_ = ZSTD_createDDict(bytes.data(), bytes.size());
  return dictionary_ != nullptr;
}

std::unique_ptr<ByteSource> ZstdDecoder::Open(RandomFile* file, uint64_t offset, uint32_t size_bytes,
                                              std::string place) {
  ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
  ZSTD_DCtx_refDDict(context_, dictionary_);
  return std::make_unique<Frame>(context_, file, offset, size_bytes, std::move(place));
}

}  // namespace heddle::importer
