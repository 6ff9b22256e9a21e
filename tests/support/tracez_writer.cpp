#include "tests/support/tracez_writer.h"

#include <zdict.h>
#include <zstd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/support/shell.h"

namespace heddle::importer {
namespace {

constexpr int kLevel = 3;

void Put(uint64_t value, size_t bytes, std::string* out) {
  for (size_t i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> 8 * i & 0xff));
}

size_t Checked(size_t size) {
  if (ZSTD_isError(size) || ZDICT_isError(size)) std::abort();
  return size;
}

std::string Line(const TracegHeader& header, const TestBlock& block, size_t warp,
                 const TestInstruction& instruction) {
  std::string line = InstructionText(header, block, warp, instruction);
  line.pop_back();
  return line;
}

std::string Dictionary(const TracegHeader& header, const std::vector<TestBlock>& blocks) {
  std::string lines;
  std::vector<size_t> sizes;
  for (const TestBlock& block : blocks)
    for (size_t warp = 0; warp < block.warps.size(); ++warp)
      for (const TestInstruction& each : block.warps[warp]) {
        const std::string line = Line(header, block, warp, each);
        lines += line;
        sizes.push_back(line.size());
      }
  std::string out(64 * 1024, '\0');
  ZDICT_params_t params{};
  params.compressionLevel = kLevel;
  params.dictID = 4711;
  out.resize(
      Checked(ZDICT_finalizeDictionary(out.data(), out.size(), lines.data(), lines.size(), lines.data(),
                                       sizes.data(), static_cast<unsigned>(sizes.size()), params)));
  return out;
}

class Compressor {
 public:
  explicit Compressor(const std::string& dictionary)
      : context_(ZSTD_createCCtx(), ZSTD_freeCCtx),
        dictionary_(
            dictionary.empty() ? nullptr : ZSTD_createCDict(dictionary.data(), dictionary.size(), kLevel),
            ZSTD_freeCDict) {}

  std::string Frame(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(Checked(
        dictionary_ == nullptr
            ? ZSTD_compressCCtx(context_.get(), out.data(), out.size(), text.data(), text.size(), kLevel)
            : ZSTD_compress_usingCDict(context_.get(), out.data(), out.size(), text.data(), text.size(),
                                       dictionary_.get())));
    return out;
  }

 private:
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context_;
  std::unique_ptr<ZSTD_CDict, size_t (*)(ZSTD_CDict*)> dictionary_;
};

// A warp's data go to `out`, its row to `index`.
void PutWarp(const TracegHeader& header, const TestBlock& block, size_t warp, uint32_t piece_instructions,
             Compressor* compressor, std::string* out, std::string* index) {
  const std::vector<TestInstruction>& all = block.warps[warp];
  const size_t pieces = (all.size() + piece_instructions - 1) / piece_instructions;
  Put(all.size(), 4, index);
  Put(pieces, 4, index);
  Put(out->size(), 8, index);
  Put(all.size(), 4, out);
  Put(pieces, 4, out);
  for (size_t begin = 0; begin < all.size(); begin += piece_instructions) {
    const size_t end = std::min<size_t>(all.size(), begin + piece_instructions);
    std::string text;
    for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : "\n") + Line(header, block, warp, all[i]);
    const std::string frame = compressor->Frame(text);
    Put(frame.size(), 4, out);
    *out += frame;
    Put(end - begin, 4, index);
  }
}

}  // namespace

std::string TracezBytes(const TracegHeader& header, const std::vector<TestBlock>& blocks,
                        const TracezOptions& options) {
  const std::string dictionary = options.dictionary ? Dictionary(header, blocks) : "";
  Compressor compressor(dictionary);
  std::string out = HeaderText(header);
  out.push_back('\0');
  Put(dictionary.size(), 4, &out);
  Put(options.piece_instructions, 4, &out);
  out += dictionary;
  std::string index;
  Put(blocks.size(), 4, &index);
  for (const TestBlock& block : blocks) {
    for (const uint32_t part : {block.id.x, block.id.y, block.id.z}) Put(part, 4, &index);  // the grid
    for (const uint32_t part : {block.id.x, block.id.y, block.id.z}) Put(part, 4, &index);  // clusters of one
    for (int i = 0; i < 4; ++i) Put(0, 4, &index);  // place and rank in the cluster
    Put(block.warps.size(), 4, &index);
    for (size_t warp = 0; warp < block.warps.size(); ++warp)
      PutWarp(header, block, warp, options.piece_instructions, &compressor, &out, &index);
  }
  const uint64_t index_offset = out.size();
  out += index;
  Put(index_offset, 8, &out);
  return out;
}

uint64_t TracezIndexOffset(const std::string& bytes) {
  uint64_t offset = 0;
  for (size_t i = 0; i < 8; ++i) offset = offset << 8 | static_cast<uint8_t>(bytes[bytes.size() - 1 - i]);
  return offset;
}

Result<Imported> ImportTracez(const std::string& bytes, bool lenient) {
  const testing_support::TemporaryFolder folder;
  std::ofstream(folder / "kernel-1.tracez", std::ios::binary) << bytes;
  std::ofstream(folder / "kernelslist.g") << "MemcpyHtoD,0x00007f0000000000,4096\nkernel-1.tracez\n";
  return ImportAccelSim(folder.path(), {lenient});
}

}  // namespace heddle::importer
