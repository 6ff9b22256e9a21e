#include "frontend/capture/record_file.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <fstream>
#include <vector>

#include "frontend/capture/frame.h"
#include "frontend/capture/record.pb.h"

namespace heddle::capture {
namespace {

constexpr uint32_t kMostFrameBytes = uint32_t{1} << 26;

Error Bad(const std::string& path, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, path, std::move(message), std::move(next_step)};
}

uint32_t Word(const char* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

Result<RecordFileEnd> ReadRecords(const std::string& path,
                                  const std::function<void(const pb::Record&)>& record) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kRecordMagicBytes> magic{};
  if (!file.read(magic.data(), magic.size()) || std::memcmp(magic.data(), kRecordMagic, magic.size()) != 0)
    return Bad(path, "is no record file of a capture", "give the file `records` that a capture left");
  RecordFileEnd end;
  std::array<char, kFrameHeaderBytes> header{};
  std::vector<char> payload;
  while (file.read(header.data(), header.size())) {
    end.lost_bytes = kFrameHeaderBytes;
    const uint32_t size = Word(header.data());
    if (size > kMostFrameBytes) break;
    payload.resize(size);
    file.read(payload.data(), static_cast<std::streamsize>(size));
    pb::Batch batch;
    if (static_cast<uint32_t>(file.gcount()) != size ||
        Crc32(payload.data(), payload.size()) != Word(header.data() + 4) ||
        !batch.ParseFromArray(payload.data(), static_cast<int>(size))) {
      end.lost_bytes += static_cast<uint64_t>(file.gcount());
      break;
    }
    end.lost_bytes = 0;
    for (const pb::Record& each : batch.record()) {
      ++end.records;
      if (each.has_end()) end.in_order = true;
      if (each.has_start() && each.start().version() > kRecordVersion)
        return Bad(path,
                   fmt::format("has version {} of the format, this heddle reads up to {}",
                               each.start().version(), kRecordVersion),
                   "use the heddle that captured it");
      record(each);
    }
  }
  if (end.lost_bytes == 0) end.lost_bytes = static_cast<uint64_t>(file.gcount());
  if (end.records == 0)
    return Bad(path, "holds no whole record",
               "the process ended before it used the GPU for 250 ms: capture again");
  file.clear();
  const auto at = file.tellg();
  file.seekg(0, std::ios::end);
  if (end.lost_bytes != 0 && at >= 0) end.lost_bytes += static_cast<uint64_t>(file.tellg() - at);
  return end;
}

}  // namespace heddle::capture
