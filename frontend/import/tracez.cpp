#include "frontend/import/tracez.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/import/traceg_header.h"
#include "frontend/import/zstd_piece.h"

namespace heddle::importer {
namespace {

using Got = LineReader::Got;

constexpr size_t kMostHeaderBytes = 1 << 20;
constexpr uint32_t kMostDictionaryBytes = 16 << 20;  // the tracer's are at most 64 KiB
constexpr uint64_t kTailBytes = 8;
constexpr uint32_t kWarpHeaderBytes = 8;
constexpr uint32_t kMostUnknownWarps = 1;  // that are noted for each block

struct IndexedBlock {
  Dim3 place;
  uint32_t cluster_rank = 0;
  uint32_t warps = 0;
};

struct IndexedWarp {
  uint32_t instructions = 0;
  uint32_t pieces = 0;
  uint64_t offset = 0;  // of its data
};

class Reader {
 public:
  Reader(RandomFile* input, std::string_view file, TracegSink* sink, FaultLog* faults)
      : input_(input), file_(file), sink_(sink), faults_(faults), index_(input, 0, 0) {}

  Status Run() {
    RangeReader front(input_, 0, input_->size_bytes());
    HEDDLE_RETURN_IF_ERROR(ReadHeader(&front));
    HEDDLE_RETURN_IF_ERROR(ReadDictionary(&front));
    HEDDLE_RETURN_IF_ERROR(FindIndex(front.at()));
    uint32_t blocks = 0;
    HEDDLE_RETURN_IF_ERROR(Index(&blocks));
    for (uint32_t i = 0; i < blocks; ++i) HEDDLE_RETURN_IF_ERROR(Block());
    if (index_.left() != 0) return Damaged(index_.at(), "bytes follow the index of blocks");
    return Ok();
  }

 private:
  std::string At(uint64_t offset) const { return fmt::format("{} at byte {}", file_, offset); }
  Error Damaged(uint64_t offset, std::string message) const {
    return {ExitCode::kTrace, At(offset), std::move(message),
            "the file is damaged or was not written to its end: copy it again, or record the trace again"};
  }
  Error CutShort(uint64_t offset) const { return Damaged(offset, "the file ends too early"); }

  Status ReadHeader(RangeReader* front) {
    std::string text;
    for (;;) {
      char c = 0;
      HEDDLE_ASSIGN_OR_RETURN(const bool got, front->Bytes(&c, 1));
      if (!got) return Damaged(front->at(), "the file ends inside the header of the kernel");
      if (c == '\0') break;
      if (text.size() == kMostHeaderBytes) return Damaged(front->at(), "the header of the kernel has no end");
      text += c;
    }
    LineReader lines(OpenBytes(std::move(text)));
    HEDDLE_ASSIGN_OR_RETURN(header_, ReadTracegHeader(&lines, fmt::format("{}:header", file_), faults_));
    return sink_->Header(header_);
  }

  Status ReadDictionary(RangeReader* front) {
    const uint64_t at = front->at();
    uint32_t size = 0;
    uint32_t aim = 0;
    HEDDLE_RETURN_IF_ERROR(front->U32(&size));
    HEDDLE_ASSIGN_OR_RETURN(const bool got, front->U32(&aim));
    if (!got || size > front->left()) return CutShort(at);
    if (size > kMostDictionaryBytes) return Damaged(at, fmt::format("a dictionary of {} bytes", size));
    std::string bytes(size, '\0');
    HEDDLE_RETURN_IF_ERROR(front->Bytes(bytes.data(), size));
    if (!zstd_.SetDictionary(bytes)) return Damaged(at, "the dictionary of the compression is damaged");
    return Ok();
  }

  Status FindIndex(uint64_t data_begin) {
    const uint64_t size = input_->size_bytes();
    if (size - data_begin < kTailBytes) return CutShort(size);
    const uint64_t tail_at = size - kTailBytes;
    RangeReader tail(input_, tail_at, size);
    HEDDLE_RETURN_IF_ERROR(tail.U64(&data_end_));
    if (data_end_ < data_begin || data_end_ > tail_at)
      return Damaged(tail_at, fmt::format("the index of blocks cannot begin at byte {}", data_end_));
    data_at_ = data_begin;
    index_ = RangeReader(input_, data_end_, tail_at);
    return Ok();
  }

  // The next number of the index.
  Status Index(uint32_t* out) {
    HEDDLE_ASSIGN_OR_RETURN(const bool got, index_.U32(out));
    return got ? Ok() : Status(Damaged(index_.at(), "the index of blocks ends too early"));
  }
  Status Index(Dim3* out) {
    HEDDLE_RETURN_IF_ERROR(Index(&out->x));
    HEDDLE_RETURN_IF_ERROR(Index(&out->y));
    return Index(&out->z);
  }

  Status Block() {
    const uint64_t at = index_.at();
    IndexedBlock block;
    Dim3 ignored;
    HEDDLE_RETURN_IF_ERROR(Index(&block.place));
    HEDDLE_RETURN_IF_ERROR(Index(&ignored));
    HEDDLE_RETURN_IF_ERROR(Index(&ignored));
    HEDDLE_RETURN_IF_ERROR(Index(&block.cluster_rank));
    HEDDLE_RETURN_IF_ERROR(Index(&block.warps));
    if (block.cluster_rank != 0)
      faults_->Add(file_, at, "a block in a cluster of several, which a recorded launch does not have");
    sink_->BeginBlock(block.place, at);
    uint32_t unknown = 0;
    for (uint32_t w = 0; w < block.warps; ++w) {
      const bool known = w < header_.WarpsPerBlock();
      if (!known && unknown++ < kMostUnknownWarps)
        faults_->Add(file_, index_.at(), "a warp beyond those of the block");
      HEDDLE_RETURN_IF_ERROR(Warp(w, known));
    }
    sink_->EndBlock();
    return Ok();
  }

  Status Warp(uint32_t number, bool known) {
    const uint64_t at = index_.at();
    IndexedWarp warp;
    HEDDLE_RETURN_IF_ERROR(Index(&warp.instructions));
    HEDDLE_RETURN_IF_ERROR(Index(&warp.pieces));
    HEDDLE_ASSIGN_OR_RETURN(const bool got, index_.U64(&warp.offset));
    if (!got || warp.pieces > index_.left() / sizeof(uint32_t))
      return Damaged(at, "the index of blocks ends too early");
    // Also keeps an index from naming the same data again and again.
    if (warp.offset < data_at_ || warp.offset > data_end_ || data_end_ - warp.offset < kWarpHeaderBytes)
      return Damaged(at, fmt::format("a warp's data cannot begin at byte {}", warp.offset));
    if (known) sink_->BeginWarp(number, warp.offset);
    HEDDLE_RETURN_IF_ERROR(WarpData(warp, known));
    if (known) sink_->EndWarp();
    return Ok();
  }

  Status WarpData(const IndexedWarp& warp, bool known) {
    RangeReader data(input_, warp.offset, data_end_);
    uint32_t instructions = 0;
    uint32_t pieces = 0;
    HEDDLE_RETURN_IF_ERROR(data.U32(&instructions));
    HEDDLE_RETURN_IF_ERROR(data.U32(&pieces));
    if (instructions != warp.instructions || pieces != warp.pieces)
      return Damaged(warp.offset, "a warp's data and the index do not say the same of it");
    data_at_ = data.at();
    uint64_t sum = 0;
    for (uint32_t i = 0; i < warp.pieces; ++i) {
      uint32_t stated = 0;
      HEDDLE_RETURN_IF_ERROR(Index(&stated));
      sum += stated;
      HEDDLE_RETURN_IF_ERROR(Piece(stated, known));
    }
    if (known && sum != warp.instructions)
      faults_->Add(file_, warp.offset, "a warp has not as many instructions as it says",
                   fmt::format("{} of {}", sum, warp.instructions));
    return Ok();
  }

  // At data_at_; leaves it behind the piece.
  Status Piece(uint32_t stated, bool known) {
    const uint64_t at = data_at_;
    uint32_t size = 0;
    RangeReader data(input_, at, data_end_);
    HEDDLE_ASSIGN_OR_RETURN(const bool got, data.U32(&size));
    if (!got || size > data.left()) return Damaged(at, "compressed instructions reach into the index");
    const uint64_t begin = data.at();
    data_at_ = begin + size;
    if (!known) return Ok();
    LineReader lines(zstd_.Open(input_, begin, size, At(at)));
    uint64_t seen = 0;
    for (;;) {
      std::string_view line;
      const Result<Got> next = lines.Next(&line);
      if (!next.ok()) {
        faults_->Add(file_, at, next.error().message);
        return Ok();
      }
      if (*next == Got::kEnd) break;
      if (++seen > stated) break;  // and no more of what may never end
      Instruction(*next, line, at);
    }
    if (seen != stated)
      faults_->Add(file_, at, "a piece of a warp has not as many instructions as the index says",
                   fmt::format("{} of {}", seen, stated));
    return Ok();
  }

  void Instruction(Got got, std::string_view line, uint64_t at) {
    if (got == Got::kTooLong) return faults_->Add(file_, at, "a line longer than any instruction");
    if (const char* fault = ParseInstruction(line, header_, &instruction_))
      return faults_->Add(file_, at, fault, line.substr(0, 80));
    sink_->Instruction(instruction_, at);
  }

  RandomFile* input_;
  std::string_view file_;
  TracegSink* sink_;
  FaultLog* faults_;
  ZstdDecoder zstd_;
  TracegHeader header_;
  TracegInstruction instruction_;
  RangeReader index_;
  uint64_t data_at_ = 0;   // behind what has been read of the warps
  uint64_t data_end_ = 0;  // where the index begins
};

}  // namespace

Status ReadTracez(RandomFile* input, std::string_view file, TracegSink* sink, FaultLog* faults) {
  return Reader(input, file, sink, faults).Run();
}

}  // namespace heddle::importer
