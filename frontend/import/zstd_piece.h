// Text out of zstd frames that may share a dictionary.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "frontend/import/line_reader.h"
#include "frontend/import/random_file.h"
#include "sim/base/result.h"

struct ZSTD_DCtx_s;
struct ZSTD_DDict_s;

namespace heddle::importer {

// One dictionary, and a context that one frame after the other uses.
class ZstdDecoder {
 public:
  static constexpr uint64_t kMostFrameBytes = uint64_t{1} << 32;  // decompressed

  ZstdDecoder();
  ~ZstdDecoder();
  ZstdDecoder(const ZstdDecoder&) = delete;
  ZstdDecoder& operator=(const ZstdDecoder&) = delete;

  // Of zstd's trainer, or any bytes; none where empty. False: it is damaged.
  bool SetDictionary(const std::string& bytes);

  // The text of the one frame that lies in [offset, offset + size_bytes) of `file`, decompressed as it is read: memory
  // depends on zstd's window (at most 128 MiB), not on the length of the text. The frame states its length; its own
  // errors have `place`. Only one frame at a time; `file` and this outlive the source.
  std::unique_ptr<ByteSource> Open(RandomFile* file, uint64_t offset, uint32_t size_bytes, std::string place);

 private:
  class Frame;
  ZSTD_DCtx_s* context_;
  ZSTD_DDict_s* dictionary_ = nullptr;
};

}  // namespace heddle::importer
