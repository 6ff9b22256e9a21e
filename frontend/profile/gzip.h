// A gzip file as a stream, unpacked while it is read.
#pragma once

#include <zlib.h>

#include <array>
#include <istream>
#include <streambuf>
#include <string>

namespace heddle::profile {

class GzipBuffer final : public std::streambuf {
 public:
  explicit GzipBuffer(std::istream* packed);
  ~GzipBuffer() override;
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;

  // What was wrong with the packed bytes; empty: nothing so far. The stream ends where that is found.
  const std::string& fault() const { return fault_; }

 protected:
  int_type underflow() override;

 private:
  std::istream* packed_;
  z_stream stream_{};
  bool finished_ = false;
  std::string fault_;
  std::array<char, 1 << 16> in_{}, out_{};
};

}  // namespace heddle::profile
