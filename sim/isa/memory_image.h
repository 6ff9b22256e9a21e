// The emulated device memory as the simulator sees it: it never reads data, it only says when stores become visible.
#pragma once

namespace heddle::isa {

class MemoryImage {
 public:
  virtual ~MemoryImage() = default;

  // Makes the plain stores that the SMs have logged since the last call visible to every SM, in the order
  // (cycle, SM, sequence). Called between windows, while no SM runs. Until then an SM sees its own stores at once and
  // those of others not at all.
  virtual void PublishStores() = 0;
};

}  // namespace heddle::isa
