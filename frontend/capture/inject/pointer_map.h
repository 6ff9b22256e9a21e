// A hash map from 64-bit keys (handles) to 64-bit values, in memory of malloc. Not synchronised. Nothing is ever removed: a value is
// overwritten. Key 0 is not stored.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace heddle::capture {

class PointerMap {
 public:
  // nullptr where the key is not there.
  uint64_t* Find(uint64_t key) {
    if (key == 0 || capacity_ == 0) return nullptr;
    Slot& slot = At(key);
    return slot.key == key ? &slot.value : nullptr;
  }
  // False: no memory.
  bool Set(uint64_t key, uint64_t value) {
    if (key == 0) return false;
    if (count_ * 2 >= capacity_ && !Grow()) return false;
    Slot& slot = At(key);
    if (slot.key == 0) ++count_;
    slot = {key, value};
    return true;
  }
  template <typename Function>
  void ForEach(Function function) {
    for (uint64_t i = 0; i < capacity_; ++i)
      if (slots_[i].key != 0) function(slots_[i].key, &slots_[i].value);
  }
  // In a forked child, where another thread may have been in the middle of a change: what was there stays, out of use.
  void Abandon() {
    abandoned_ = slots_;
    slots_ = nullptr;
    capacity_ = count_ = 0;
  }

 private:
  struct Slot {
    uint64_t key;
    uint64_t value;
  };

  // The key's slot, or the free one where it would stand.
  Slot& At(uint64_t key) {
    uint64_t i = (key * 0x9e3779b97f4a7c15u) >> 20 & (capacity_ - 1);
    while (slots_[i].key != 0 && slots_[i].key != key) i = (i + 1) & (capacity_ - 1);
    return slots_[i];
  }
  bool Grow() {
    PointerMap larger;
    larger.capacity_ = capacity_ == 0 ? 256 : capacity_ * 2;
    larger.slots_ = static_cast<Slot*>(std::calloc(larger.capacity_, sizeof(Slot)));
    if (larger.slots_ == nullptr) return false;
    ForEach([&](uint64_t key, uint64_t* value) { larger.Set(key, *value); });
    std::free(slots_);
    larger.abandoned_ = abandoned_;
    *this = larger;
    return true;
  }

  Slot* slots_ = nullptr;
  uint64_t capacity_ = 0;  // a power of two
  uint64_t count_ = 0;
  Slot* abandoned_ = nullptr;
};

}  // namespace heddle::capture
