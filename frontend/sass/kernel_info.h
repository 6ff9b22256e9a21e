// .nv.info: the attributes that ptxas leaves for the driver.
#pragma once

#include <span>
#include <vector>

#include "frontend/sass/elf.h"
#include "sim/base/result.h"

namespace heddle::sass {

// The attributes that heddle reads, by the names that cuobjdump -elf prints (EIATTR_...).
enum class InfoAttribute : uint8_t {
  kMaxThreads = 0x05,
  kParamCbank = 0x0a,
  kReqntid = 0x10,
  kFrameSize = 0x11,
  kMinStackSize = 0x12,
  kKparamInfo = 0x17,
  kCbankParamSize = 0x19,
  kMaxStackSize = 0x23,
  kRegcount = 0x2f,
  kIndirectBranchTargets = 0x34,
  kCtaPerCluster = 0x3d,
  kExplicitCluster = 0x3e,
  kNumBarriers = 0x4c,
};

struct InfoEntry {
  InfoAttribute attribute{};
  uint64_t file_offset = 0;
  std::span<const std::byte> payload;  // two bytes for the formats without a length

  // The payload's i-th word, 0 beyond its end.
  uint32_t Word(size_t i) const { return ReadAt<uint32_t>(payload, i * 4).value_or(0); }
  uint16_t Half(size_t i) const { return ReadAt<uint16_t>(payload, i * 2).value_or(0); }
  size_t WordCount() const { return payload.size() / 4; }
};

Result<std::vector<InfoEntry>> ReadInfo(const Elf& elf, const ElfSection& section);

}  // namespace heddle::sass
