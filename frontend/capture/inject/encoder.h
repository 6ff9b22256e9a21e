// Protobuf's wire format into memory of a known size: as much of it as records need. record.proto is the contract.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace heddle::capture {

// Writes behind `cursor`. Who makes one reserves enough.
class Encoder {
 public:
  explicit Encoder(uint8_t* cursor) : cursor_(cursor) {}

  void Varint(uint32_t field, uint64_t value) {
    if (value == 0) return;  // proto3's default
    Tag(field, 0);
    Raw(value);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Tag(field, 1);
    std::memcpy(cursor_, &value, sizeof value);
    cursor_ += sizeof value;
  }
  void Bytes(uint32_t field, const void* bytes, size_t size) {
    if (size == 0) return;
    Tag(field, 2);
    Raw(size);
    std::memcpy(cursor_, bytes, size);
    cursor_ += size;
  }
  template <typename T>
  void Packed(uint32_t field, const T* values, size_t count) {
    uint8_t* length = Begin(field);
    for (size_t i = 0; i < count; ++i) Raw(values[i]);
    End(length);
  }
  void PackedDoubles(uint32_t field, const double* values, size_t count) {
    if (count == 0) return;
    Tag(field, 2);
    Raw(8 * count);
    std::memcpy(cursor_, values, 8 * count);
    cursor_ += 8 * count;
  }
  void Raw(uint64_t value) {
    for (; value >= 0x80; value >>= 7) *cursor_++ = static_cast<uint8_t>(value | 0x80);
    *cursor_++ = static_cast<uint8_t>(value);
  }

  // A nested message: its length is a varint of four bytes, padded, written at the end.
  uint8_t* Begin(uint32_t field) {
    Tag(field, 2);
    uint8_t* length = cursor_;
    cursor_ += 4;
    return length;
  }
  void End(uint8_t* length) {
    auto size = static_cast<size_t>(cursor_ - length - 4);
    for (int i = 0; i < 3; ++i, size >>= 7) length[i] = static_cast<uint8_t>(size | 0x80);
    length[3] = static_cast<uint8_t>(size);
  }

  uint8_t* cursor() const { return cursor_; }

 private:
  void Tag(uint32_t field, uint32_t wire) { Raw(field << 3 | wire); }

  uint8_t* cursor_;
};

}  // namespace heddle::capture
