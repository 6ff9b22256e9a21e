#include "frontend/import/line_reader.h"

#include <lzma.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace heddle::importer {
namespace {

constexpr size_t kChunkBytes = 256 * 1024;
constexpr uint64_t kMostDecoderBytes = uint64_t{512} << 20;  // what xz -9 needs, and more

Error FileError(const std::string& path, std::string message, std::string next_step) {
  return {ExitCode::kTrace, path, std::move(message), std::move(next_step)};
}

class PlainFile final : public ByteSource {
 public:
  PlainFile(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {}
  ~PlainFile() override { std::fclose(file_); }

  Result<size_t> Read(char* out, size_t size) override {
    const size_t got = std::fread(out, 1, size, file_);
    if (got == 0 && std::ferror(file_) != 0)
      return FileError(path_, "cannot be read", "check the file and the disk it lies on");
    return got;
  }

 private:
  std::FILE* file_;
  std::string path_;
};

class XzFile final : public ByteSource {
 public:
  XzFile(std::unique_ptr<ByteSource> compressed, std::string path)
      : compressed_(std::move(compressed)), path_(std::move(path)), input_(kChunkBytes) {
    good_ = lzma_stream_decoder(&stream_, kMostDecoderBytes, LZMA_CONCATENATED) == LZMA_OK;
  }
  ~XzFile() override { lzma_end(&stream_); }

  Result<size_t> Read(char* out, size_t size) override {
    if (!good_) return FileError(path_, "cannot be decompressed: no memory for it", "use a larger machine");
    stream_.next_out = reinterpret_cast<uint8_t*>(out);
    stream_.avail_out = size;
    while (stream_.avail_out == size && !done_) {
      if (stream_.avail_in == 0 && !input_ended_) {
        HEDDLE_ASSIGN_OR_RETURN(stream_.avail_in, compressed_->Read(input_.data(), input_.size()));
        stream_.next_in = reinterpret_cast<const uint8_t*>(input_.data());
        input_ended_ = stream_.avail_in == 0;
      }
      const lzma_ret code = lzma_code(&stream_, input_ended_ ? LZMA_FINISH : LZMA_RUN);
      if (code == LZMA_STREAM_END)
        done_ = true;
      else if (code != LZMA_OK)
        return FileError(path_,
                         code == LZMA_BUF_ERROR ? "is cut short: the compressed data end early"
                                                : "is not what xz writes, or is damaged",
                         "copy it again, or record the trace again");
    }
    return size - stream_.avail_out;
  }

 private:
  std::unique_ptr<ByteSource> compressed_;
  std::string path_;
  std::vector<char> input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool good_ = false;
  bool input_ended_ = false;
  bool done_ = false;
};

class Bytes final : public ByteSource {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<size_t> Read(char* out, size_t size) override {
    const size_t got = std::min(size, bytes_.size() - at_);
    std::memcpy(out, bytes_.data() + at_, got);
    at_ += got;
    return got;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec))
    return FileError(path, std::filesystem::exists(path, ec) ? "is not a file" : "there is no such file",
                     "check the path");
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return FileError(path, "cannot be read", "check its permissions");
  std::unique_ptr<ByteSource> plain = std::make_unique<PlainFile>(file, path);
  if (!path.ends_with(".xz")) return plain;
  return std::unique_ptr<ByteSource>(std::make_unique<XzFile>(std::move(plain), path));
}

std::unique_ptr<ByteSource> OpenBytes(std::string bytes) { return std::make_unique<Bytes>(std::move(bytes)); }

Result<bool> LineReader::Fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() < end_ + kChunkBytes) buffer_.resize(end_ + kChunkBytes);
  HEDDLE_ASSIGN_OR_RETURN(const size_t got, source_->Read(buffer_.data() + end_, buffer_.size() - end_));
  end_ += got;
  return got != 0;
}

Result<LineReader::Got> LineReader::Next(std::string_view* line) {
  bool too_long = false;
  size_t searched = begin_;
  for (;;) {
    const auto* found = static_cast<const char*>(
        end_ == searched ? nullptr : std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (found != nullptr) {
      const auto length = static_cast<size_t>(found - (buffer_.data() + begin_));
      *line = {buffer_.data() + begin_, length};
      if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
      begin_ += length + 1;
      ++line_number_;
      return too_long || length > kMaxLineBytes ? Got::kTooLong : Got::kLine;
    }
    if (end_ - begin_ > kMaxLineBytes) {  // forget it, but count on to its end
      too_long = true;
      begin_ = end_;
    }
    const size_t pending = end_ - begin_;
    HEDDLE_ASSIGN_OR_RETURN(const bool more, Fill());
    searched = begin_ + pending;
    if (more) continue;
    if (pending == 0 && !too_long) return Got::kEnd;
    *line = {buffer_.data() + begin_, pending};
    begin_ = end_;
    ++line_number_;
    return Got::kNoEnd;
  }
}

}  // namespace heddle::importer
