#include "frontend/emulator/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/base/check.h"
#include "sim/base/types.h"

namespace heddle::emulator {
namespace {

constexpr uint64_t kFirstAddress = uint64_t{0x7}
                                   << 40;  // far from 0, so that small integers are not addresses
constexpr uint64_t kGuardBytes = 4096;
constexpr uint64_t kKnownBytes = kPageBytes / 8;  // one bit per byte

uint64_t AlignUp(uint64_t value, uint64_t alignment) { return CeilDiv(value, alignment) * alignment; }

void SetBits(uint8_t* bits, uint64_t first, uint64_t count) {
  for (uint64_t i = first; i < first + count; ++i) bits[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
}

}  // namespace

DeviceMemory::DeviceMemory() : tables_(kTables) {}

DeviceMemory::~DeviceMemory() {
  for (const auto& table : tables_) {
    if (table == nullptr) continue;
    for (Page& page : table->pages) delete[] page.data.load(std::memory_order_relaxed);
  }
}

size_t DeviceMemory::FirstBufferEndingAfter(uint64_t address) const {
  const auto it = std::partition_point(sorted_.begin(), sorted_.end(),
                                       [&](const Buffer* buffer) { return buffer->end() <= address; });
  return static_cast<size_t>(it - sorted_.begin());
}

const Buffer* DeviceMemory::Find(uint64_t address) const {
  const size_t i = FirstBufferEndingAfter(address);
  return i < sorted_.size() && sorted_[i]->address <= address ? sorted_[i] : nullptr;
}

DeviceMemory::Range DeviceMemory::RangeAround(uint64_t address) const {
  const Buffer* buffer = Find(address);
  return buffer == nullptr ? Range{} : Range{buffer->address, buffer->end()};
}

// The lowest gap at or above kFirstAddress. Buffers do not share pages, so that bounds are checked the fast
// way.
uint64_t DeviceMemory::ChooseAddress(uint64_t size_bytes) const {
  uint64_t candidate = kFirstAddress;
  for (const Buffer* buffer : sorted_) {
    if (buffer->end() <= candidate) continue;
    if (candidate + size_bytes + kGuardBytes <= buffer->address) break;
    candidate = AlignUp(buffer->end() + kGuardBytes, kPageBytes);
  }
  return candidate;
}

Result<uint64_t> DeviceMemory::Allocate(BufferSpec spec) {
  if (spec.size_bytes == 0) spec.size_bytes = 1;
  constexpr uint64_t kSpace = uint64_t{1} << kVirtualAddressBits;
  const auto fail = [&](std::string message) {
    return Error{ExitCode::kTrace, "buffer " + spec.name, std::move(message),
                 "give it another address or size"};
  };
  if (spec.size_bytes > kSpace / 2)
    return fail(fmt::format("{} bytes are more than a GPU can address", spec.size_bytes));
  const uint64_t address = spec.address != 0 ? spec.address : ChooseAddress(spec.size_bytes);
  if (address >= kSpace || address + spec.size_bytes > kSpace)
    return fail(
        fmt::format("address 0x{:x} lies outside the {}-bit address space", address, kVirtualAddressBits));
  const size_t at = FirstBufferEndingAfter(address);
  if (at < sorted_.size() && sorted_[at]->address < address + spec.size_bytes)
    return fail(fmt::format("[0x{:x}, 0x{:x}) overlaps buffer {}", address, address + spec.size_bytes,
                            sorted_[at]->name));
  owned_.push_back(std::make_unique<Buffer>(
      Buffer{std::move(spec.name), address, spec.size_bytes, spec.known, std::move(spec.fill)}));
  sorted_.insert(sorted_.begin() + static_cast<std::ptrdiff_t>(at), owned_.back().get());
  AddToPages(*owned_.back());
  return address;
}

void DeviceMemory::AddToPages(const Buffer& buffer) {
  for (uint64_t at = buffer.address & ~(kPageBytes - 1); at < buffer.end(); at += kPageBytes) {
    auto& table = tables_[at >> (kPageShift + kTableShift)];
    if (table == nullptr) table = std::make_unique<Table>();
    Page& page = *PageAt(at);
    // A page that was touched before a second buffer moved in keeps its bytes and gets those of the new one.
    uint8_t* data = page.data.load(std::memory_order_relaxed);
    RecomputePage(at);
    if (data == nullptr) continue;
    std::vector<uint8_t> old(data, data + kPageBytes);
    const uint64_t low = std::max(at, buffer.address), past = std::min(at + kPageBytes, buffer.end());
    page.data.store(nullptr, std::memory_order_relaxed);
    delete[] data;
    materialised_bytes_ -= kPageBytes;
    uint8_t* fresh = Materialise(at);
    const uint64_t head = low - at, tail = past - at;
    std::memcpy(fresh, old.data(), head);
    std::memcpy(fresh + tail, old.data() + tail, kPageBytes - tail);
  }
}

std::unique_ptr<DeviceMemory> DeviceMemory::CloneOnTouch() const {
  auto clone = std::make_unique<DeviceMemory>();
  for (const Buffer* buffer : sorted_) {
    clone->owned_.push_back(std::make_unique<Buffer>(*buffer));
    clone->sorted_.push_back(clone->owned_.back().get());
  }
  for (const Buffer* buffer : clone->sorted_) clone->AddToPages(*buffer);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t] == nullptr) continue;
    for (size_t p = 0; p < tables_[t]->pages.size(); ++p) {
      clone->tables_[t]->pages[p].unknown = tables_[t]->pages[p].unknown;
      for (size_t word = 0; AnyStale() && word < StaleBits().size(); ++word)
        clone->tables_[t]->stale[p][word].store(tables_[t]->stale[p][word].load(std::memory_order_relaxed),
                                                std::memory_order_relaxed);
    }
  }
  clone->any_stale_.store(AnyStale(), std::memory_order_relaxed);
  clone->origin_ = this;
  return clone;
}

std::unique_ptr<DeviceMemory> DeviceMemory::Clone() const {
  std::unique_ptr<DeviceMemory> clone = CloneOnTouch();
  for (const Buffer* buffer : sorted_)
    for (uint64_t at = buffer->address & ~(kPageBytes - 1); at < buffer->end(); at += kPageBytes)
      if (DataAt(at) != nullptr) clone->PageBytes(at);
  clone->origin_ = nullptr;
  return clone;
}

void DeviceMemory::RecomputePage(uint64_t page_address) {
  Page& page = *PageAt(page_address);
  page.begin = page.end = page.buffers = 0;
  page.unknown = false;
  for (size_t i = FirstBufferEndingAfter(page_address);
       i < sorted_.size() && sorted_[i]->address < page_address + kPageBytes; ++i) {
    const Buffer& buffer = *sorted_[i];
    if (page.buffers++ == 0) {
      page.begin = static_cast<uint32_t>(std::max(buffer.address, page_address) - page_address);
      page.end = static_cast<uint32_t>(std::min(buffer.end(), page_address + kPageBytes) - page_address);
    } else {
      page.begin = page.end = 0;  // every access takes the slow way
    }
    page.unknown |= !buffer.known;
  }
}

void DeviceMemory::Free(uint64_t address) {
  const size_t i = FirstBufferEndingAfter(address);
  if (i >= sorted_.size() || sorted_[i]->address != address) return;
  const Buffer* buffer = sorted_[i];
  sorted_.erase(sorted_.begin() + static_cast<std::ptrdiff_t>(i));
  ClearStale(address, buffer->size_bytes);
  for (uint64_t at = address & ~(kPageBytes - 1); at < buffer->end(); at += kPageBytes) {
    Page& page = *PageAt(at);
    RecomputePage(at);
    if (page.buffers != 0) continue;
    if (uint8_t* data = page.data.exchange(nullptr)) {
      delete[] data;
      materialised_bytes_ -= kPageBytes;
    }
    ClearStale(at, kPageBytes);
  }
  std::erase_if(owned_, [&](const auto& owned) { return owned.get() == buffer; });
}

uint8_t* DeviceMemory::Materialise(uint64_t address) {
  Page& page = *PageAt(address);
  const std::lock_guard lock(materialise_mutex_);
  if (uint8_t* data = page.data.load(std::memory_order_relaxed)) return data;
  const uint64_t page_address = address & ~(kPageBytes - 1);
  const uint64_t bytes = kPageBytes + (page.unknown ? kKnownBytes : 0);
  auto data = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  if (const uint8_t* there = origin_ == nullptr ? nullptr : origin_->DataAt(page_address); there != nullptr)
    std::memcpy(data.get(), there, bytes);
  else
    Generate(page_address, data.get());
  materialised_bytes_ += kPageBytes;
  uint8_t* raw = data.release();
  page.data.store(raw, std::memory_order_release);
  return raw;
}

// What the page holds from the start. Fresh memory is written once only: megabytes of input pass through here.
void DeviceMemory::Generate(uint64_t page_address, uint8_t* data) const {
  const Page& page = *PageAt(page_address);
  if (page.unknown) std::memset(data + kPageBytes, 0, kKnownBytes);
  uint64_t done = 0;
  for (size_t i = FirstBufferEndingAfter(page_address);
       i < sorted_.size() && sorted_[i]->address < page_address + kPageBytes; ++i) {
    const Buffer& buffer = *sorted_[i];
    const uint64_t low = std::max(buffer.address, page_address) - page_address;
    const uint64_t past = std::min(buffer.end(), page_address + kPageBytes) - page_address;
    std::memset(data + done, 0, (buffer.fill ? low : past) - done);
    if (buffer.fill)
      buffer.fill(page_address + low - buffer.address,
                  std::as_writable_bytes(std::span(data + low, past - low)));
    if (page.unknown && buffer.known) SetBits(data + kPageBytes, low, past - low);
    done = past;
  }
  std::memset(data + done, 0, kPageBytes - done);
}

const uint8_t* DeviceMemory::DataAt(uint64_t address) const {
  const Page* page = PageAt(address);
  const uint8_t* data = page == nullptr ? nullptr : page->data.load(std::memory_order_acquire);
  return data == nullptr && origin_ != nullptr ? origin_->DataAt(address) : data;
}

uint8_t* DeviceMemory::LocateSlow(uint64_t address, uint32_t bytes) {
  const Buffer* buffer = Find(address);
  if (buffer == nullptr || address + bytes > buffer->end()) return nullptr;
  uint8_t* data = PageAt(address)->data.load(std::memory_order_acquire);
  if (data == nullptr) data = Materialise(address);
  return data + (address & (kPageBytes - 1));
}

bool DeviceMemory::IsKnown(uint64_t address, uint32_t bytes) const {
  const Page* page = PageAt(address);
  if (page == nullptr || !page->unknown) return true;
  const uint8_t* data = page->data.load(std::memory_order_acquire);
  if (data == nullptr) {
    if (origin_ != nullptr) return origin_->IsKnown(address, bytes);
    const Buffer* buffer = Find(address);
    return buffer == nullptr || buffer->known;
  }
  const uint64_t first = address & (kPageBytes - 1);
  for (uint64_t i = first; i < first + bytes; ++i)
    if (!(data[kPageBytes + i / 8] >> (i % 8) & 1)) return false;
  return true;
}

const std::atomic<uint64_t>* DeviceMemory::StaleWordAt(uint64_t address) const {
  if (address >> kVirtualAddressBits) return nullptr;
  const Table* table = tables_[address >> (kPageShift + kTableShift)].get();
  if (table == nullptr) return nullptr;
  const StaleBits& bits = table->stale[(address >> kPageShift) & ((1u << kTableShift) - 1)];
  return &bits[(address & (kPageBytes - 1)) >> kStaleShift >> 6];
}

void DeviceMemory::MarkStale(uint64_t address, uint64_t bytes) {
  for (uint64_t at = address & ~(kStaleBytes - 1); at < address + bytes; at += kStaleBytes) {
    std::atomic<uint64_t>* word = StaleWordAt(at);
    if (word == nullptr || (word->load(std::memory_order_relaxed) & StaleBit(at))) continue;
    word->fetch_or(StaleBit(at), std::memory_order_relaxed);
    any_stale_.store(true, std::memory_order_relaxed);
  }
}

void DeviceMemory::ClearStale(uint64_t address, uint64_t bytes) {
  const uint64_t first = (address + kStaleBytes - 1) & ~(kStaleBytes - 1);
  for (uint64_t at = first; at + kStaleBytes <= address + bytes; at += kStaleBytes) {
    std::atomic<uint64_t>* word = StaleWordAt(at);
    if (word != nullptr && (word->load(std::memory_order_relaxed) & StaleBit(at)))
      word->fetch_and(~StaleBit(at), std::memory_order_relaxed);
  }
}

bool DeviceMemory::IsStale(uint64_t address) const {
  const std::atomic<uint64_t>* word = StaleWordAt(address);
  return word != nullptr && (word->load(std::memory_order_relaxed) & StaleBit(address)) != 0;
}

void DeviceMemory::Store(uint64_t address, const uint8_t* data, uint32_t bytes) {
  uint8_t* at = Locate(address, bytes);
  if (at == nullptr) return;
  std::memcpy(at, data, bytes);
  const Page* page = PageAt(address);
  if (page->unknown) [[unlikely]] {
    const uint64_t offset = address & (kPageBytes - 1);
    SetBits(page->data.load(std::memory_order_relaxed) + kPageBytes, offset, bytes);
  }
}

template <typename Visit>
Status DeviceMemory::ForEachPiece(uint64_t address, uint64_t bytes, Visit visit) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t at = address + done;
    const Buffer* buffer = Find(at);
    if (buffer == nullptr)
      return Error{ExitCode::kTrace, fmt::format("device address 0x{:x}", at), "no buffer holds this byte",
                   ""};
    const uint64_t page_end = (at | (kPageBytes - 1)) + 1;
    const uint64_t piece = std::min({bytes - done, buffer->end() - at, page_end - at});
    visit(done, at, static_cast<uint32_t>(piece));
    done += piece;
  }
  return Ok();
}

Status DeviceMemory::Read(uint64_t address, std::span<std::byte> out) {
  return ForEachPiece(address, out.size(), [&](uint64_t done, uint64_t at, uint32_t piece) {
    std::memcpy(out.data() + done, Locate(at, piece), piece);
  });
}

Status DeviceMemory::Write(uint64_t address, std::span<const std::byte> bytes) {
  return ForEachPiece(address, bytes.size(), [&](uint64_t done, uint64_t at, uint32_t piece) {
    Store(at, reinterpret_cast<const uint8_t*>(bytes.data() + done), piece);
    if (AnyStale()) ClearStale(at, piece);
  });
}

Status DeviceMemory::Copy(uint64_t to, uint64_t from, uint64_t bytes) {
  HEDDLE_RETURN_IF_ERROR(ForEachPiece(from, bytes, [](uint64_t, uint64_t, uint32_t) {}));
  return ForEachPiece(to, bytes, [&](uint64_t done, uint64_t at, uint32_t piece) {
    for (uint32_t moved = 0; moved < piece;) {
      const uint64_t source = from + done + moved;
      const uint64_t page_end = (source | (kPageBytes - 1)) + 1;
      const auto part = static_cast<uint32_t>(
          std::min({uint64_t{piece - moved}, Find(source)->end() - source, page_end - source}));
      CopyPiece(at + moved, source, part);
      moved += part;
    }
  });
}

Status DeviceMemory::Forget(uint64_t address, uint64_t bytes) {
  return ForEachPiece(address, bytes, [&](uint64_t, uint64_t at, uint32_t piece) {
    if (!Find(at)->known && PageAt(at)->data.load(std::memory_order_acquire) == nullptr)
      return;  // they are so
    uint8_t* bits = KnownBits(at);
    std::memset(Locate(at, piece), 0, piece);
    for (uint64_t i = at & (kPageBytes - 1); i < (at & (kPageBytes - 1)) + piece; ++i)
      bits[i / 8] = static_cast<uint8_t>(bits[i / 8] & ~(1u << (i % 8)));
  });
}

void DeviceMemory::CopyPiece(uint64_t to, uint64_t from, uint32_t bytes) {
  for (uint32_t i = 0; AnyStale() && i < bytes;) {
    const auto run =
        static_cast<uint32_t>(std::min<uint64_t>(bytes - i, kStaleBytes - (from + i) % kStaleBytes));
    if (IsStale(from + i)) MarkStale(to + i, run);
    i += run;
  }
  const uint8_t* data = Locate(from, bytes);
  if (IsKnown(from, bytes)) {
    const std::vector<uint8_t> moved(data, data + bytes);  // the sides may overlap
    return Store(to, moved.data(), bytes);
  }
  std::vector<bool> known(bytes);
  for (uint32_t i = 0; i < bytes; ++i) known[i] = IsKnown(from + i, 1);
  uint8_t* bits = KnownBits(to);
  std::memmove(Locate(to, bytes), data, bytes);
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint64_t at = (to & (kPageBytes - 1)) + i;
    const auto bit = static_cast<uint8_t>(1u << (at % 8));
    bits[at / 8] = static_cast<uint8_t>(known[i] ? bits[at / 8] | bit : bits[at / 8] & ~bit);
  }
}

uint8_t* DeviceMemory::KnownBits(uint64_t address) {
  Page& page = *PageAt(address);
  uint8_t* data = PageBytes(address);
  if (page.unknown) return data + kPageBytes;
  auto tracked = std::make_unique<uint8_t[]>(kPageBytes + kKnownBytes);
  std::memcpy(tracked.get(), data, kPageBytes);
  SetBits(tracked.get() + kPageBytes, 0, kPageBytes);
  page.unknown = true;
  delete[] data;
  data = tracked.release();
  page.data.store(data, std::memory_order_release);
  return data + kPageBytes;
}

StorePort& DeviceMemory::PortOfSm(uint32_t sm) {
  const std::lock_guard lock(ports_mutex_);
  if (ports_.size() <= sm) ports_.resize(sm + 1);
  if (ports_[sm] == nullptr) ports_[sm] = std::make_unique<StorePort>();
  return *ports_[sm];
}

void DeviceMemory::PublishStores() {
  publish_order_.clear();
  for (uint32_t sm = 0; sm < ports_.size(); ++sm) {
    if (ports_[sm] == nullptr) continue;
    const auto& records = ports_[sm]->records();
    for (uint32_t i = 0; i < records.size(); ++i) publish_order_.push_back({records[i].cycle, sm, i});
  }
  if (publish_order_.empty()) return;
  if (!std::is_sorted(publish_order_.begin(), publish_order_.end()))
    std::sort(publish_order_.begin(), publish_order_.end());
  for (const StorePort::Key& key : publish_order_) {
    const StorePort::Record& record = ports_[key.sm]->records()[key.sequence];
    Store(record.address, record.data.data(), record.bytes);
  }
  for (const auto& port : ports_)
    if (port != nullptr) port->Clear();
}

}  // namespace heddle::emulator
