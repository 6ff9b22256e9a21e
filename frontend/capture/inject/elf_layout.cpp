// The parameters of a kernel, from the section .nv.info.<kernel> of its cubin. The library that watches a process may need libc
// only, and reads nothing else of a cubin; frontend/sass/cubin.h is the reader with everything.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "frontend/capture/inject/image.h"

namespace heddle::capture {
namespace {

// Attributes of .nv.info. Of the size, the lower bits are something else in the first form and the top byte in the second.
constexpr uint8_t kParameter = 0x17;    // u32 index, u16 ordinal, u16 offset, u32: size in bits 18 and up
constexpr uint8_t kParameterV2 = 0x45;  // u32 index, u16 ordinal, u16 offset, u32: size in the lower 24 bits
constexpr uint8_t kParameterBytes = 0x19;
constexpr uint8_t kSized = 4;

struct Bytes {
  const uint8_t* data;
  size_t size;

  template <typename T>
  bool Read(uint64_t at, T* value) const {
    if (at > size || size - at < sizeof(T)) return false;
    std::memcpy(value, data + at, sizeof(T));
    return true;
  }
  bool Sub(uint64_t at, uint64_t count, Bytes* out) const {
    if (at > size || count > size - at) return false;
    *out = {data + at, static_cast<size_t>(count)};
    return true;
  }
};

struct SectionHeader {
  uint32_t name;
  uint32_t type;
  uint64_t flags;
  uint64_t address;
  uint64_t offset;
  uint64_t size;
  uint32_t link;
  uint32_t info;
  uint64_t alignment;
  uint64_t entry_size;
};

bool FindSection(const Bytes& elf, const char* prefix, const char* kernel, Bytes* section) {
  static const uint8_t magic[5] = {0x7f, 'E', 'L', 'F', 2};
  if (elf.size < 64 || std::memcmp(elf.data, magic, sizeof magic) != 0) return false;
  uint64_t table = 0;
  uint16_t entry_size = 0, count16 = 0, names16 = 0;
  if (!elf.Read(0x28, &table) || !elf.Read(0x3a, &entry_size) || !elf.Read(0x3c, &count16) ||
      !elf.Read(0x3e, &names16) || entry_size != sizeof(SectionHeader))
    return false;
  SectionHeader header{};
  uint64_t count = count16, names_index = names16;
  if ((count == 0 || names16 == 0xffff) && elf.Read(table, &header)) {  // more than fit into 16 bits
    if (count == 0) count = header.size;
    if (names16 == 0xffff) names_index = header.link;
  }
  Bytes names{};
  if (names_index > elf.size || !elf.Read(table + names_index * sizeof header, &header) ||
      !elf.Sub(header.offset, header.size, &names))
    return false;
  const size_t prefix_length = std::strlen(prefix), length = prefix_length + std::strlen(kernel) + 1;
  for (uint64_t i = 0; i < count; ++i) {
    if (!elf.Read(table + i * sizeof header, &header)) return false;
    Bytes name{};
    if (!names.Sub(header.name, length, &name)) continue;
    if (std::memcmp(name.data, prefix, prefix_length) != 0 ||
        std::memcmp(name.data + prefix_length, kernel, length - prefix_length) != 0)
      continue;
    return elf.Sub(header.offset, header.size, section);
  }
  return false;
}

// Calls entry(attribute, payload) for each attribute until it says false.
template <typename Function>
void ForEachAttribute(const Bytes& info, Function entry) {
  for (uint64_t at = 0; at + 4 <= info.size;) {
    uint16_t half = 0;
    info.Read(at + 2, &half);
    Bytes payload{info.data + at + 2, 2};
    const uint8_t attribute = info.data[at + 1];
    const bool sized = info.data[at] == kSized;
    at += 4;
    if (sized) {
      if (!info.Sub(at, half, &payload)) return;
      at += half;
    }
    entry(attribute, payload);
  }
}

bool ReadParameter(uint8_t attribute, const Bytes& payload, uint16_t* ordinal, ParameterSlot* slot) {
  uint16_t offset = 0;
  uint32_t packed = 0;
  if (attribute != kParameter && attribute != kParameterV2) return false;
  if (!payload.Read(4, ordinal) || !payload.Read(6, &offset) || !payload.Read(8, &packed)) return false;
  *slot = {offset, attribute == kParameter ? packed >> 18 : packed & 0xffffff};
  return true;
}

}  // namespace

bool ReadLayout(const uint8_t* cubin, size_t size, const char* kernel, ParameterLayout* layout) {
  *layout = {};
  Bytes info{};
  if (!FindSection({cubin, size}, ".nv.info.", kernel, &info)) return false;
  uint32_t count = 0;
  bool stated = false;
  ForEachAttribute(info, [&](uint8_t attribute, const Bytes& payload) {
    uint16_t ordinal = 0, half = 0;
    ParameterSlot slot{};
    if (attribute == kParameterBytes && payload.Read(0, &half)) {
      layout->bytes = half;
      stated = true;
    }
    if (ReadParameter(attribute, payload, &ordinal, &slot) && ordinal >= count) count = ordinal + 1u;
  });
  if (layout->bytes > kMaxParameterBytes || count > kMaxParameterBytes) return false;
  if (count == 0) return stated || info.size > 0;
  auto* slots = static_cast<ParameterSlot*>(std::calloc(count, sizeof(ParameterSlot)));
  if (slots == nullptr) return false;
  uint32_t end = 0;
  ForEachAttribute(info, [&](uint8_t attribute, const Bytes& payload) {
    uint16_t ordinal = 0;
    ParameterSlot slot{};
    if (!ReadParameter(attribute, payload, &ordinal, &slot)) return;
    slots[ordinal] = slot;
    if (slot.offset + slot.size > end) end = slot.offset + slot.size;
  });
  if (layout->bytes < end && stated) end = kMaxParameterBytes + 1;  // contradicts itself
  if (!stated) layout->bytes = end;
  if (end > kMaxParameterBytes) {
    std::free(slots);
    *layout = {};
    return false;
  }
  layout->slots = slots;
  layout->count = count;
  return true;
}

bool HasKernel(const uint8_t* cubin, size_t size, const char* kernel) {
  Bytes section{};
  return FindSection({cubin, size}, ".text.", kernel, &section);
}

}  // namespace heddle::capture
