// The stores of one SM during a window: a log in program order, and an index of it through which the SM's own
// loads see them at once. Emptied by DeviceMemory::PublishStores.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/types.h"

namespace heddle::emulator {

class StorePort {
 public:
  // Position of a logged store in the order in which all SMs' stores become visible.
  struct Key {
    Cycle cycle;
    uint32_t sm;
    uint32_t sequence;
    auto operator<=>(const Key&) const = default;
  };

  StorePort();

  // Logs one lane's store of 1, 2, 4, 8 or 16 aligned bytes.
  void Append(Cycle cycle, uint64_t address, const uint8_t* data, uint32_t bytes);

  bool empty() const { return records_.empty(); }
  // True when no logged store can touch [low, past).
  bool Misses(uint64_t low, uint64_t past) const { return past <= low_ || low >= past_; }
  // Replaces those of `bytes` aligned bytes at `data`, read from the image, that this SM has stored since.
  void Overlay(uint64_t address, uint8_t* data, uint32_t bytes) const;

  struct Record {
    Cycle cycle;
    uint64_t address;
    uint32_t bytes;
    std::array<uint8_t, 16> data;
  };
  const std::vector<Record>& records() const { return records_; }
  void Clear();

 private:
  static constexpr uint32_t kGranuleBytes = 16;  // an aligned access never crosses one
  struct Granule {
    uint64_t key = 0;
    uint32_t epoch = 0;
    uint32_t mask = 0;  // bit i: byte i has been stored
    std::array<uint8_t, kGranuleBytes> data{};
  };

  Granule& Slot(uint64_t key);
  const Granule* Lookup(uint64_t key) const;
  void Grow();
  static size_t Hash(uint64_t key) { return static_cast<size_t>((key * 0x9E3779B97F4A7C15ull) >> 32); }

  uint64_t low_ = ~uint64_t{0};
  uint64_t past_ = 0;
  std::vector<Record> records_;
  std::vector<Granule> granules_;  // open addressing, power of two
  size_t used_ = 0;
  uint32_t epoch_ = 1;
};

}  // namespace heddle::emulator
