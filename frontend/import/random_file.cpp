#include "frontend/import/random_file.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "sim/base/check.h"

namespace heddle::importer {
namespace {

constexpr size_t kBufferBytes = 64 * 1024;

Error FileError(const std::string& path, std::string message, std::string next_step) {
  return {ExitCode::kTrace, path, std::move(message), std::move(next_step)};
}

class DiskFile final : public RandomFile {
 public:
  DiskFile(std::FILE* file, std::string path, uint64_t size_bytes)
      : file_(file), path_(std::move(path)), size_bytes_(size_bytes) {}
  ~DiskFile() override { std::fclose(file_); }

  uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(uint64_t offset, void* out, size_t size) override {
    if (fseeko(file_, static_cast<off_t>(offset), SEEK_SET) != 0 || std::fread(out, 1, size, file_) != size)
      return FileError(path_, "cannot be read", "check the file and the disk it lies on");
    return Ok();
  }

 private:
  std::FILE* file_;
  std::string path_;
  uint64_t size_bytes_;
};

class Bytes final : public RandomFile {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  Status ReadAt(uint64_t offset, void* out, size_t size) override {
    HEDDLE_CHECK(offset <= bytes_.size() && size <= bytes_.size() - offset, "import.range", offset,
                 "a read behind the end");
    std::memcpy(out, bytes_.data() + offset, size);
    return Ok();
  }

 private:
  std::string bytes_;
};

}  // namespace

Result<std::unique_ptr<RandomFile>> OpenRandomFile(const std::string& path) {
  std::error_code ec;
  if (!std::filesystem::is_regular_file(path, ec))
    return FileError(path, std::filesystem::exists(path, ec) ? "is not a file" : "there is no such file",
                     "check the path");
  const uint64_t size_bytes = std::filesystem::file_size(path, ec);
  std::FILE* file = ec ? nullptr : std::fopen(path.c_str(), "rb");
  if (file == nullptr) return FileError(path, "cannot be read", "check its permissions");
  return std::unique_ptr<RandomFile>(std::make_unique<DiskFile>(file, path, size_bytes));
}

std::unique_ptr<RandomFile> OpenRandomBytes(std::string bytes) {
  return std::make_unique<Bytes>(std::move(bytes));
}

Result<bool> RangeReader::Bytes(void* out, size_t size) {
  if (size > left()) return false;
  auto* to = static_cast<char*>(out);
  while (size != 0) {
    if (at_ - buffer_begin_ >= buffer_.size()) {
      buffer_.resize(static_cast<size_t>(std::min<uint64_t>(kBufferBytes, left())));
      buffer_begin_ = at_;
      HEDDLE_RETURN_IF_ERROR(file_->ReadAt(at_, buffer_.data(), buffer_.size()));
    }
    const auto begin = static_cast<size_t>(at_ - buffer_begin_);
    const size_t part = std::min(size, buffer_.size() - begin);
    std::memcpy(to, buffer_.data() + begin, part);
    to += part;
    at_ += part;
    size -= part;
  }
  return true;
}

Result<bool> RangeReader::U32(uint32_t* out) {
  uint64_t value = 0;
  uint8_t bytes[4] = {};
  HEDDLE_ASSIGN_OR_RETURN(const bool got, Bytes(bytes, sizeof bytes));
  for (size_t i = sizeof bytes; i-- != 0;) value = value << 8 | bytes[i];
  *out = static_cast<uint32_t>(value);
  return got;
}

Result<bool> RangeReader::U64(uint64_t* out) {
  uint32_t low = 0;
  uint32_t high = 0;
  if (left() < 8) return false;
  HEDDLE_RETURN_IF_ERROR(U32(&low));
  HEDDLE_RETURN_IF_ERROR(U32(&high));
  *out = uint64_t{high} << 32 | low;
  return true;
}

}  // namespace heddle::importer
