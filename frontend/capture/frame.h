// Frames of a record file: shared by the library that writes them and the readers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace heddle::capture {

inline constexpr char kRecordMagic[9] = "heddlerc";
inline constexpr size_t kRecordMagicBytes = 8;
inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr uint32_t kRecordVersion = 1;

namespace internal {
constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ value >> 1 : value >> 1;
    table[i] = value;
  }
  return table;
}
inline constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();
}  // namespace internal

// CRC-32 as in zlib: "123456789" gives 0xcbf43926.
inline uint32_t Crc32(const void* bytes, size_t size) {
  const auto* data = static_cast<const uint8_t*>(bytes);
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; ++i) crc = internal::kCrcTable[(crc ^ data[i]) & 0xff] ^ crc >> 8;
  return ~crc;
}

}  // namespace heddle::capture
