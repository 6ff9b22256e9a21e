// A file whose bytes can be read anywhere: for formats with an index at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/base/result.h"

namespace heddle::importer {

class RandomFile {
 public:
  virtual ~RandomFile() = default;
  virtual uint64_t size_bytes() const = 0;
  // Exactly `size` bytes from `offset` on; the range lies inside the file. Errors (kTrace): the disk, or a file that has
  // become shorter meanwhile.
  virtual Status ReadAt(uint64_t offset, void* out, size_t size) = 0;
};

// Errors have ExitCode::kTrace.
Result<std::unique_ptr<RandomFile>> OpenRandomFile(const std::string& path);
std::unique_ptr<RandomFile> OpenRandomBytes(std::string bytes);

// Reads little-endian numbers one after the other from a range of a file, in larger pieces.
class RangeReader {
 public:
  RangeReader(RandomFile* file, uint64_t begin, uint64_t end) : file_(file), at_(begin), end_(end) {}

  uint64_t at() const { return at_; }  // byte offset of what comes next
  uint64_t left() const { return end_ - at_; }
  // False where the range ends before.
  Result<bool> Bytes(void* out, size_t size);
  Result<bool> U32(uint32_t* out);
  Result<bool> U64(uint64_t* out);

 private:
  RandomFile* file_;
  uint64_t at_;
  uint64_t end_;
  std::string buffer_;
  uint64_t buffer_begin_ = 0;  // its offset in the file
};

}  // namespace heddle::importer
