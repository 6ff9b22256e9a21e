#include "frontend/emulator/store_port.h"

#include <algorithm>
#include <cstring>

namespace heddle::emulator {
namespace {
constexpr size_t kInitialGranules = 1024;
}  // namespace

StorePort::StorePort() : granules_(kInitialGranules) {}

void StorePort::Append(Cycle cycle, uint64_t address, const uint8_t* data, uint32_t bytes) {
  Record& record = records_.emplace_back();
  record.cycle = cycle;
  record.address = address;
  record.bytes = bytes;
  std::memcpy(record.data.data(), data, bytes);
  low_ = std::min(low_, address);
  past_ = std::max(past_, address + bytes);

  const auto offset = static_cast<uint32_t>(address % kGranuleBytes);
  Granule& granule = Slot(address / kGranuleBytes);
  granule.mask |= ((1u << bytes) - 1) << offset;
  std::memcpy(granule.data.data() + offset, data, bytes);
}

void StorePort::Overlay(uint64_t address, uint8_t* data, uint32_t bytes) const {
  const Granule* granule = Lookup(address / kGranuleBytes);
  if (granule == nullptr) return;
  const auto offset = static_cast<uint32_t>(address % kGranuleBytes);
  const uint32_t wanted = (1u << bytes) - 1;
  const uint32_t stored = (granule->mask >> offset) & wanted;
  if (stored == wanted) {
    std::memcpy(data, granule->data.data() + offset, bytes);
    return;
  }
  for (uint32_t i = 0; i < bytes; ++i)
    if (stored >> i & 1) data[i] = granule->data[offset + i];
}

void StorePort::Clear() {
  records_.clear();
  low_ = ~uint64_t{0};
  past_ = 0;
  used_ = 0;
  if (++epoch_ == 0) {  // stamps of the first epoch would come alive again
    std::fill(granules_.begin(), granules_.end(), Granule{});
    epoch_ = 1;
  }
}

StorePort::Granule& StorePort::Slot(uint64_t key) {
  if (used_ * 2 >= granules_.size()) Grow();
  const size_t mask = granules_.size() - 1;
  for (size_t i = Hash(key) & mask;; i = (i + 1) & mask) {
    Granule& granule = granules_[i];
    if (granule.epoch != epoch_) {
      granule.key = key;
      granule.epoch = epoch_;
      granule.mask = 0;
      ++used_;
      return granule;
    }
    if (granule.key == key) return granule;
  }
}

const StorePort::Granule* StorePort::Lookup(uint64_t key) const {
  const size_t mask = granules_.size() - 1;
  for (size_t i = Hash(key) & mask;; i = (i + 1) & mask) {
    const Granule& granule = granules_[i];
    if (granule.epoch != epoch_) return nullptr;
    if (granule.key == key) return &granule;
  }
}

void StorePort::Grow() {
  std::vector<Granule> old(granules_.size() * 2);
  old.swap(granules_);
  used_ = 0;
  for (const Granule& granule : old) {
    if (granule.epoch != epoch_) continue;
    Granule& moved = Slot(granule.key);
    moved.mask = granule.mask;
    moved.data = granule.data;
  }
}

}  // namespace heddle::emulator
