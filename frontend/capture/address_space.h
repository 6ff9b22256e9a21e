// The device memory of a captured process as buffers of a trace: ranges that were ever allocated, and what is known of their
// contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::capture {

// When memory changes: before this launch, or when a transfer takes place (LaunchOrder::Transfer).
struct Moment {
  uint32_t launch = 0;
  uint32_t transfer = 0xffffffff;  // none
};

class AddressSpace {
 public:
  // `pool`: the handle of a memory pool; 0: none.
  void Allocate(uint64_t address, uint64_t bytes, uint64_t pool = 0);
  // Nothing becomes free: an address means the same buffer from the first launch to the last.
  bool IsAllocated(uint64_t address) const;

  // The bytes at `address` are these from then on.
  void Write(uint64_t address, std::string bytes, Moment when);
  void Fill(uint64_t address, uint32_t value, uint32_t element_bytes, uint64_t count, Moment when);
  // What is at `source` at that moment is at `address` from then on.
  void Copy(uint64_t address, uint64_t source, uint64_t bytes, Moment when);
  // Something came there that was not kept.
  void Forget(uint64_t address, uint64_t bytes, Moment when);

  // Buffers by address, those of the n-th pool named pool<n>_at_<address>: ranges that overlap became one. Contents outside
  // of all ranges make a range of their own; those that would come behind the last of `launches` launches are left out. `places`: the
  // launches at whose starts transfers take place. Returns the bytes of fills that were too long to be kept.
  uint64_t MoveTo(trace::Trace* trace, uint32_t launches, const std::vector<uint32_t>& places = {});

 private:
  enum class Kind : uint8_t { kBytes, kFill, kCopy, kUnknown };
  struct Written {
    Kind kind = Kind::kBytes;
    uint64_t address = 0;
    uint64_t bytes = 0;
    Moment when;
    std::string data;  // kBytes
    uint32_t value = 0;
    uint32_t element_bytes = 0;
    uint64_t copied_from = 0;
  };
  // Leaves out what changes nothing: before the first launch, what is covered by something unknown, and that itself.
  void DropCovered();
  std::vector<std::pair<uint64_t, uint64_t>> Ranges() const;

  std::map<uint64_t, uint64_t> allocations_;  // start -> the largest size at it
  std::map<uint64_t, size_t> pools_;          // handle -> number, from 1 in order of appearance
  std::map<uint64_t, size_t> pool_of_;        // start of an allocation -> number of its pool
  std::vector<Written> written_;
};

}  // namespace heddle::capture
