// Address translation in three levels: of an SM, of a GPC, of the GPU. A miss of the last level is a page
// walk. Physical placement is a rule (AddressMap), so a TLB only says when the translation is known.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/types.h"
#include "sim/config/gpu_description.h"

namespace heddle::memory {

// One level: set-associative, least recently used.
class Tlb {
 public:
  explicit Tlb(const config::TlbLevel& level);

  struct Entry {
    uint64_t page = ~uint64_t{0};
    Cycle ready = 0;    // the translation is on its way until then
    uint64_t used = 0;  // for replacement
  };

  // The page's entry, or nullptr. The pointer lives until the next Insert.
  Entry* Find(uint64_t page) {
    if (last_ != nullptr && last_->page == page) return last_;
    return FindSlow(page);
  }
  Entry* Insert(uint64_t page, Cycle ready);
  // There is room for the page without another one's leaving.
  bool HasRoom(uint64_t page) const;
  // The page's entry, or nullptr; does not make it more recently used.
  Entry* Peek(uint64_t page);

  void Reset();

 private:
  Entry* FindSlow(uint64_t page);

  uint32_t ways_;
  uint64_t sets_;
  uint64_t clock_ = 0;
  Entry* last_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace heddle::memory
