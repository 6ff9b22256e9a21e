#include "frontend/emulator/bulk_transfer.h"

#include <algorithm>
#include <cstring>

#include "frontend/emulator/issue_log.h"

namespace heddle::emulator {
namespace {

constexpr uint32_t kUnitBytes = 16;

// Calls visit(address in shared memory, offset in the row, bytes) for the stretches of a row that are contiguous.
template <typename Visit>
void ForUnits(const BulkRecord& record, const isa::BulkPiece& piece, Visit visit) {
  if (!record.swizzled) return visit(piece.shared_address, 0u, piece.shared_bytes);
  for (uint32_t done = 0; done < piece.shared_bytes; done += kUnitBytes)
    visit(Swizzled(piece.shared_address + done, record.swizzle), done,
          std::min(kUnitBytes, piece.shared_bytes - done));
}

// The bytes of an element outside the tensor. The NaN is the one that cuTensorMapEncodeTiled's fill mode names: all
// bits but the sign.
void FillRow(const BulkRecord& record, uint8_t* row, uint32_t begin, uint32_t end) {
  if (!record.fills_nan) {
    std::memset(row + begin, 0, end - begin);
    return;
  }
  for (uint32_t i = begin; i < end; ++i) row[i] = (i + 1) % record.element_bytes == 0 ? 0x7f : 0xff;
}

// Copies from global memory across pages. What no buffer holds any more reads as zeros.
void CopyFromGlobal(DeviceMemory& device, uint64_t address, uint8_t* to, uint32_t bytes) {
  while (bytes != 0) {
    const auto here = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPageBytes - address % kPageBytes));
    const uint8_t* at = device.Locate(address, here);
    if (at != nullptr)
      std::memcpy(to, at, here);
    else
      std::memset(to, 0, here);
    address += here;
    to += here;
    bytes -= here;
  }
}

// Combines elements of `from` into `to`, which may be unaligned to neither. Halves come in pairs; an odd one alone.
void Combine(const BulkRecord& record, uint8_t* to, const uint8_t* from, uint32_t bytes) {
  const uint32_t step = record.combines_halves ? 2 : BytesOf(record.type);
  for (uint32_t i = 0; i + step <= bytes; i += step) {
    uint64_t old = 0, value = 0;
    std::memcpy(&old, to + i, step);
    std::memcpy(&value, from + i, step);
    const uint64_t result = ApplyAtomic(record.op, record.type, old, value, 0);
    std::memcpy(to + i, &result, step);
  }
}

void Deliver(const BulkRecord& record, const isa::BulkPiece& piece, const uint8_t* row, uint8_t* shared) {
  ForUnits(record, piece, [&](uint32_t address, uint32_t offset, uint32_t bytes) {
    if (record.combines)
      Combine(record, shared + address, row + offset, bytes);
    else
      std::memcpy(shared + address, row + offset, bytes);
  });
}

}  // namespace

void MoveRowsToShared(BulkRecord& record, CtaMemory* cta, DeviceMemory& device, uint32_t first,
                      uint32_t count, IssueLog& issues, std::vector<uint32_t>* woken) {
  if (cta == nullptr || !cta->resident) {
    issues.Report("copy_after_exit", record.instruction, "the CTA whose shared memory it writes has ended");
    return;
  }
  std::vector<uint8_t> row;
  int32_t bytes = 0;
  for (uint32_t i = first; i < first + count; ++i) {
    const isa::BulkPiece& piece = record.pieces[i];
    bytes += static_cast<int32_t>(piece.shared_bytes);
    if (record.skips_data) continue;
    if (record.kind == isa::BulkKind::kExchange) {
      Deliver(record, piece, record.data.data() + record.row_offset[i], cta->shared);
      continue;
    }
    row.resize(piece.shared_bytes);
    const uint32_t lead = record.lead[i];
    FillRow(record, row.data(), 0, lead);
    CopyFromGlobal(device, piece.global_address, row.data() + lead, piece.global_bytes);
    FillRow(record, row.data(), lead + piece.global_bytes, piece.shared_bytes);
    Deliver(record, piece, row.data(), cta->shared);
  }
  ArriveAt(*cta, record.mbarrier, {.transactions = -bytes}, nullptr, woken);
}

void ReadRowsOfSource(BulkRecord& record, uint32_t first, uint32_t count, IssueLog& issues) {
  if (record.skips_data) return;
  record.data.resize(record.total_shared_bytes);
  if (record.source == nullptr) {
    issues.Report("copy_after_exit", record.instruction, "the CTA whose shared memory it reads has ended");
    return;
  }
  for (uint32_t i = first; i < first + count; ++i)
    ForUnits(record, record.pieces[i], [&](uint32_t address, uint32_t offset, uint32_t bytes) {
      std::memcpy(record.data.data() + record.row_offset[i] + offset,
                  record.source->shared + (address + static_cast<uint32_t>(record.source_shift)), bytes);
    });
}

void MoveRowToGlobal(BulkRecord& record, DeviceMemory& device, uint32_t index, uint32_t offset,
                     uint32_t bytes) {
  const isa::BulkPiece& piece = record.pieces[index];
  const uint8_t* from = record.skips_data
                            ? nullptr
                            : record.data.data() + record.row_offset[index] + record.lead[index] + offset;
  uint64_t address = piece.global_address + offset;
  while (bytes != 0) {
    const auto here = static_cast<uint32_t>(std::min<uint64_t>(bytes, kPageBytes - address % kPageBytes));
    if (from == nullptr) {
      device.MarkStale(address, here);
    } else if (record.kind == isa::BulkKind::kStore) {
      device.Store(address, from, here);
    } else if (const uint8_t* at = device.Locate(address, here); at != nullptr) {
      std::vector<uint8_t> sum(at, at + here);
      Combine(record, sum.data(), from, here);
      device.Store(address, sum.data(), here);
    }
    address += here;
    if (from != nullptr) from += here;
    bytes -= here;
  }
}

}  // namespace heddle::emulator
