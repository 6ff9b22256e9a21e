#include "frontend/profile/gzip.h"

namespace heddle::profile {

constexpr int kGzipOnly = 16;  // zlib: added to the window bits

GzipBuffer::GzipBuffer(std::istream* packed) : packed_(packed) {
  if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) {
    fault_ = "zlib cannot be set up";
    finished_ = true;
  }
}

GzipBuffer::~GzipBuffer() { inflateEnd(&stream_); }

GzipBuffer::int_type GzipBuffer::underflow() {
  while (!finished_) {
    if (stream_.avail_in == 0) {
      packed_->read(in_.data(), static_cast<std::streamsize>(in_.size()));
      stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
      stream_.avail_in = static_cast<uInt>(packed_->gcount());
    }
    const bool no_more = stream_.avail_in == 0;
    stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
    stream_.avail_out = static_cast<uInt>(out_.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const size_t made = out_.size() - stream_.avail_out;
    if (status == Z_STREAM_END) {
      // Files may be joined: another member may follow.
      const bool more = stream_.avail_in != 0 || packed_->peek() != std::istream::traits_type::eof();
      if (!more || inflateReset(&stream_) != Z_OK) finished_ = true;
    } else if (status != Z_OK && !(status == Z_BUF_ERROR && !no_more)) {
      fault_ = no_more ? "the gzip data is cut short" : "the gzip data is damaged";
      finished_ = true;
    }
    if (made != 0) {
      setg(out_.data(), out_.data(), out_.data() + made);
      return traits_type::to_int_type(out_[0]);
    }
  }
  return traits_type::eof();
}

}  // namespace heddle::profile
