// The lines of a text file, which may be compressed with xz: read piece by piece, whatever the size of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::importer {

// Where the bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Up to `size` bytes; 0 at the end.
  virtual Result<size_t> Read(char* out, size_t size) = 0;
};

// A file as it is, or decompressed where its name ends in ".xz". Errors have ExitCode::kTrace.
Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path);
std::unique_ptr<ByteSource> OpenBytes(std::string bytes);

class LineReader {
 public:
  static constexpr size_t kMaxLineBytes = 64 * 1024;

  explicit LineReader(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}

  enum class Got : uint8_t {
    kLine,
    kTooLong,  // more than kMaxLineBytes; skipped, the next call goes on behind it
    kNoEnd,    // the last line, which does not end in a newline
    kEnd,
  };
  // `line` is valid until the next call. Errors: what the source says.
  Result<Got> Next(std::string_view* line);

  uint64_t line_number() const { return line_number_; }  // of the line returned last, from 1

 private:
  Result<bool> Fill();

  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t line_number_ = 0;
};

}  // namespace heddle::importer
