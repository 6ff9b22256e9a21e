#include "frontend/trace/blob.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "sim/base/check.h"

namespace heddle::trace {
namespace {

constexpr int kLevel = 9;

Error Corrupt(const std::string& place, std::string message) {
  return Error{ExitCode::kTrace, place, std::move(message),
               "the file is damaged: copy it again, or build the trace again"};
}

}  // namespace

std::vector<std::byte> Compress(std::span<const std::byte> bytes) {
  std::vector<std::byte> out(ZSTD_compressBound(bytes.size()));
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  HEDDLE_CHECK(!ZSTD_isError(size), "trace.zstd", 0, "compression failed");
  out.resize(size);
  return out;
}

Result<std::vector<std::byte>> Decompress(std::span<const std::byte> compressed, uint64_t size_bytes,
                                          const std::string& place) {
  if (size_bytes > kMaxBlobBytes)
    return Corrupt(place, fmt::format("a blob of {} bytes is larger than is ever written", size_bytes));
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(),
                                                                        ZSTD_freeDStream);
  ZSTD_DCtx_setParameter(stream.get(), ZSTD_d_windowLogMax, 27);
  std::vector<std::byte> out;
  std::vector<std::byte> chunk(ZSTD_DStreamOutSize());
  ZSTD_inBuffer in{compressed.data(), compressed.size(), 0};
  for (;;) {
    ZSTD_outBuffer produced{chunk.data(), chunk.size(), 0};
    const size_t left = ZSTD_decompressStream(stream.get(), &produced, &in);
    if (ZSTD_isError(left))
      return Corrupt(place, fmt::format("a compressed blob cannot be read ({})", ZSTD_getErrorName(left)));
    if (out.size() + produced.pos > size_bytes)
      return Corrupt(place, fmt::format("a blob is longer than the stated {} bytes", size_bytes));
    out.insert(out.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(produced.pos));
    if (left == 0) break;
    if (in.pos == in.size && produced.pos == 0) return Corrupt(place, "a compressed blob ends too early");
  }
  if (in.pos != in.size) return Corrupt(place, "bytes follow a compressed blob");
  if (out.size() != size_bytes)
    return Corrupt(place, fmt::format("a blob has {} of the stated {} bytes", out.size(), size_bytes));
  return out;
}

}  // namespace heddle::trace
