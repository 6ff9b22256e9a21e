#include "frontend/trace/recording.h"

#include <cstring>
#include <numeric>

#include "frontend/trace/blob.h"
#include "frontend/trace/payload.h"
#include "frontend/trace/payload.pb.h"

namespace heddle::trace {
namespace {

constexpr uint64_t kMostRowBytes = uint64_t{1} << 31;  // what one protobuf message can be

std::vector<std::byte> Pack(const pb::StoredRecording& row) {
  const std::string bytes = Serialize(row);
  const uint64_t size = bytes.size();
  std::vector<std::byte> out(sizeof size);
  for (size_t i = 0; i < sizeof size; ++i) out[i] = static_cast<std::byte>(size >> (8 * i));
  const std::vector<std::byte> compressed = Compress(std::as_bytes(std::span(bytes)));
  out.insert(out.end(), compressed.begin(), compressed.end());
  return out;
}

RecordingHeader FromStored(const pb::StoredRecording::Header& in) {
  RecordingHeader out;
  out.code_stride = in.code_stride();
  out.blocks = in.blocks();
  out.order.assign(in.order().begin(), in.order().end());
  out.shapes = in.shapes();
  out.shared_base = in.shared_base();
  out.local_base = in.local_base();
  out.local_low = in.local_low();
  out.local_high = in.local_high();
  out.warp_instructions = in.warp_instructions();
  out.thread_instructions = in.thread_instructions();
  out.source = in.source();
  for (const auto& note : in.note()) out.notes.push_back({note.kind(), note.detail(), note.count()});
  return out;
}

RecordingChunk FromStored(const pb::StoredRecording::Chunk& in) {
  RecordingChunk out;
  out.first_block = in.first_block();
  out.blocks = in.blocks();
  out.warp_bytes.assign(in.warp_bytes().begin(), in.warp_bytes().end());
  out.tokens = in.tokens();
  out.firsts = in.firsts();
  return out;
}

}  // namespace

std::vector<std::byte> EncodeRecording(const RecordingHeader& in) {
  pb::StoredRecording row;
  pb::StoredRecording::Header& out = *row.mutable_header();
  out.set_code_stride(in.code_stride);
  out.set_blocks(in.blocks);
  out.mutable_order()->Assign(in.order.begin(), in.order.end());
  out.set_shapes(in.shapes);
  out.set_shared_base(in.shared_base);
  out.set_local_base(in.local_base);
  out.set_local_low(in.local_low);
  out.set_local_high(in.local_high);
  out.set_warp_instructions(in.warp_instructions);
  out.set_thread_instructions(in.thread_instructions);
  out.set_source(in.source);
  for (const RecordingNote& note : in.notes) {
    pb::StoredRecording::Note& stored = *out.add_note();
    stored.set_kind(note.kind);
    stored.set_detail(note.detail);
    stored.set_count(note.count);
  }
  return Pack(row);
}

std::vector<std::byte> EncodeRecording(const RecordingChunk& in) {
  pb::StoredRecording row;
  pb::StoredRecording::Chunk& out = *row.mutable_chunk();
  out.set_first_block(in.first_block);
  out.set_blocks(in.blocks);
  out.mutable_warp_bytes()->Assign(in.warp_bytes.begin(), in.warp_bytes.end());
  out.set_tokens(in.tokens);
  out.set_firsts(in.firsts);
  return Pack(row);
}

Result<RecordingRow> DecodeRecording(std::span<const std::byte> bytes, const std::string& place) {
  const Error damaged{ExitCode::kTrace, place, "the recorded instructions cannot be read",
                      "the file is damaged: copy it again, or import the trace again"};
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return damaged;
  for (size_t i = 0; i < sizeof size; ++i) size |= uint64_t{std::to_integer<uint8_t>(bytes[i])} << (8 * i);
  if (size >= kMostRowBytes) return damaged;
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> raw,
                          Decompress(bytes.subspan(sizeof size), size, place));
  pb::StoredRecording row;
  if (!row.ParseFromArray(raw.data(), static_cast<int>(raw.size()))) return damaged;
  if (row.has_header()) return RecordingRow(FromStored(row.header()));
  if (!row.has_chunk()) return damaged;
  RecordingChunk chunk = FromStored(row.chunk());
  const uint64_t tokens = std::accumulate(chunk.warp_bytes.begin(), chunk.warp_bytes.end(), uint64_t{0});
  if (tokens != chunk.tokens.size()) return damaged;
  return RecordingRow(std::move(chunk));
}

}  // namespace heddle::trace
