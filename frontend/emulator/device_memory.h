// The emulated device memory: one 64-bit address space of buffers whose pages come into being when they are
// touched.
//
// A buffer's contents may be a rule (FillFunction): a page is generated when it is first read or written, so
// that a run which only needs addresses never pays for gigabytes of data. What lies between buffers is not
// memory: accesses are checked against buffer bounds to the byte and reported, never performed.
//
// Threads: during a window every SM reads the image and writes through its own StorePort; nobody writes the
// image. Between windows one thread calls PublishStores, and slices perform atomics through Locate on
// addresses of their own.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/emulator/store_port.h"
#include "sim/base/result.h"
#include "sim/isa/memory_image.h"

namespace heddle::emulator {

inline constexpr uint32_t kPageShift = 16;
inline constexpr uint64_t kPageBytes = uint64_t{1} << kPageShift;
// What skipped stores leave is marked in runs of so many bytes: allocators place small tensors at multiples of 256 or 512, and
// what one kernel left out says nothing about the table beside it.
inline constexpr uint32_t kStaleShift = 8;
inline constexpr uint64_t kStaleBytes = uint64_t{1} << kStaleShift;
inline constexpr uint32_t kVirtualAddressBits = 49;  // of unified addressing on every GPU since Pascal

// Writes the contents of bytes [offset, offset + out.size()) of the buffer into `out`. Called from several
// threads for different ranges; offset is a multiple of kPageBytes from the start of the buffer's first page,
// or 0.
using FillFunction = std::function<void(uint64_t offset, std::span<std::byte> out)>;

struct BufferSpec {
  std::string name;
  uint64_t size_bytes = 0;
  uint64_t address = 0;         // 0: chosen: starts a page, with a guard gap behind it
  bool known = true;            // false: contents were not given; reads of bytes never written are reported
  FillFunction fill = nullptr;  // none: zeros
};

struct Buffer {
  std::string name;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  bool known = true;
  FillFunction fill;

  uint64_t end() const { return address + size_bytes; }
};

class DeviceMemory final : public isa::MemoryImage {
 public:
  DeviceMemory();
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns the buffer's address. Fails when the range overlaps another buffer or leaves the address space.
  // Not to be called while SMs run.
  Result<uint64_t> Allocate(BufferSpec spec);
  // Forgets a buffer and its pages. Not to be called while SMs run.
  void Free(uint64_t address);

  // The same buffers with the same contents, independent from now on. Logged stores are not copied.
  std::unique_ptr<DeviceMemory> Clone() const;
  // The same, whose pages are copied when they are touched: for as long as this one lives and nobody writes it.
  std::unique_ptr<DeviceMemory> CloneOnTouch() const;

  // The buffer that contains the byte, or nullptr.
  const Buffer* Find(uint64_t address) const;

  // Copies between host and device; an Error names the first byte outside a buffer.
  Status Read(uint64_t address, std::span<std::byte> out);
  Status Write(uint64_t address, std::span<const std::byte> bytes);

  // What a copy on the device does: bytes that are not known, or stale, are so at their new place too. Not to be called while SMs run.
  Status Copy(uint64_t to, uint64_t from, uint64_t bytes);
  // From now on these bytes are as those of a buffer of unknown contents, zeros to who reads them. Not to be called while SMs run.
  Status Forget(uint64_t address, uint64_t bytes);

  // The bytes themselves, or nullptr when any of them lies outside a buffer. An access must not cross a page.
  uint8_t* Locate(uint64_t address, uint32_t bytes) {
    const Page* page = PageAt(address);
    if (page == nullptr) return nullptr;
    const auto offset = static_cast<uint32_t>(address & (kPageBytes - 1));
    if (offset < page->begin || offset + bytes > page->end) return LocateSlow(address, bytes);
    uint8_t* data = page->data.load(std::memory_order_acquire);
    return data != nullptr ? data + offset : Materialise(address) + offset;
  }

  // Start of the page around an address that lies in a buffer.
  uint8_t* PageBytes(uint64_t address) {
    uint8_t* data = PageAt(address)->data.load(std::memory_order_acquire);
    return data != nullptr ? data : Materialise(address);
  }

  // The range of the buffer around `address` ({0, 0} when there is none), for callers that check many
  // addresses.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool contains(uint64_t low, uint64_t past) const { return low >= begin && past <= end; }
  };
  Range RangeAround(uint64_t address) const;

  // False when bytes of a buffer of unknown contents are touched that nobody has written.
  bool IsKnown(uint64_t address, uint32_t bytes) const;

  // Skeleton runs leave out stores whose data nobody computed. A later read of such a buffer that steers
  // something would be wrong; it is found by this mark, which covers the runs of kStaleBytes that hold the bytes. What the host
  // writes over whole runs takes it away.
  void MarkStale(uint64_t address, uint64_t bytes);
  bool IsStale(uint64_t address) const;
  bool AnyStale() const { return any_stale_.load(std::memory_order_relaxed); }

  // Applies a store at once.
  void Store(uint64_t address, const uint8_t* data, uint32_t bytes);

  // The stores of one SM that others cannot see yet. The same object for the same SM, whatever the launch.
  StorePort& PortOfSm(uint32_t sm);
  void PublishStores() override;

  uint64_t MaterialisedBytes() const { return materialised_bytes_.load(std::memory_order_relaxed); }
  const std::vector<const Buffer*>& buffers() const { return sorted_; }

 private:
  // Bytes [begin, end) of the page belong to one buffer; a page with parts of several is looked up.
  struct Page {
    std::atomic<uint8_t*> data{nullptr};
    uint32_t begin = 0;
    uint32_t end = 0;
    uint32_t buffers = 0;  // that have bytes in the page
    bool unknown = false;  // at least one of them has unknown contents: data is followed by a bit per byte
  };
  using StaleBits = std::array<std::atomic<uint64_t>, kPageBytes / kStaleBytes / 64>;  // a bit per run
  static constexpr uint32_t kTableShift = 15;  // log2 of the pages of one second-level table
  static constexpr uint32_t kTables = 1u << (kVirtualAddressBits - kPageShift - kTableShift);
  struct Table {
    std::array<Page, 1u << kTableShift> pages;
    std::array<StaleBits, 1u << kTableShift> stale{};
  };

  const Page* PageAt(uint64_t address) const {
    if (address >> kVirtualAddressBits) return nullptr;
    const Table* table = tables_[address >> (kPageShift + kTableShift)].get();
    return table == nullptr ? nullptr : &table->pages[(address >> kPageShift) & ((1u << kTableShift) - 1)];
  }
  Page* PageAt(uint64_t address) { return const_cast<Page*>(std::as_const(*this).PageAt(address)); }
  // The word with the bit of the address; nullptr where no buffer ever was.
  const std::atomic<uint64_t>* StaleWordAt(uint64_t address) const;
  std::atomic<uint64_t>* StaleWordAt(uint64_t address) {
    return const_cast<std::atomic<uint64_t>*>(std::as_const(*this).StaleWordAt(address));
  }
  static uint64_t StaleBit(uint64_t address) { return uint64_t{1} << (address >> kStaleShift & 63); }
  void ClearStale(uint64_t address, uint64_t bytes);  // of the runs that lie in it as a whole
  uint8_t* LocateSlow(uint64_t address, uint32_t bytes);
  void CopyPiece(uint64_t to, uint64_t from, uint32_t bytes);  // neither side crosses a page or a buffer
  uint8_t* KnownBits(uint64_t address);                        // of its page, which has them from now on
  uint8_t* Materialise(uint64_t address);                      // start of the page's data
  size_t FirstBufferEndingAfter(uint64_t address) const;
  uint64_t ChooseAddress(uint64_t size_bytes) const;
  void AddToPages(const Buffer& buffer);
  void RecomputePage(uint64_t page_address);
  template <typename Visit>
  Status ForEachPiece(uint64_t address, uint64_t bytes, Visit visit);

  const uint8_t* DataAt(uint64_t address) const;  // of the page, here or in the origin; nullptr: none yet
  void Generate(uint64_t page_address, uint8_t* data) const;

  std::vector<std::unique_ptr<Table>> tables_;
  const DeviceMemory* origin_ = nullptr;  // of CloneOnTouch(): what it holds, where this has no data yet
  std::vector<std::unique_ptr<Buffer>> owned_;
  std::vector<const Buffer*> sorted_;  // by address
  std::mutex materialise_mutex_;
  std::atomic<uint64_t> materialised_bytes_{0};
  std::atomic<bool> any_stale_{false};
  std::mutex ports_mutex_;
  std::vector<std::unique_ptr<StorePort>> ports_;  // by SM; may hold nullptr
  std::vector<StorePort::Key> publish_order_;
};

}  // namespace heddle::emulator
