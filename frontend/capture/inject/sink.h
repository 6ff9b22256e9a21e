// Where records go: a buffer in memory that a thread of its own appends to the record file every 250 ms.
//
// All functions may be called from any thread, also inside CUPTI callbacks; none calls CUDA or CUPTI. After fork() the child's
// sink is closed: nothing that it does reaches its parent's file. Where a write fails, recording ends with one line on stderr: the
// program that is watched never notices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "frontend/capture/inject/encoder.h"

namespace heddle::capture {

// Creates `folder`/<pid>[-n] with the file `records`. False: not possible; errno says why.
bool OpenSink(const char* folder);
bool SinkIsOpen();
const char* SinkFolder();  // the process's own

// Writes what is buffered and closes the file. Records that come later are dropped.
void CloseSink();
void FlushSink();

// All of them, or false. Nothing that stands in the way of it reaches the process as a signal.
bool WriteAll(int file, const void* bytes, size_t size);

// In a forked child: forgets the file without writing.
void AbandonSink();

inline constexpr size_t kMaxRecordBytes = size_t{1} << 21;

// One record, between construction and destruction, under the sink's lock: nothing in between may call CUPTI.
//   if (Record record(kField, bytes_bound); record) record->Varint(1, x);
// `bound`: at least as many bytes as its fields take, up to kMaxRecordBytes less 64.
class Record {
 public:
  Record(uint32_t kind, size_t bound);
  ~Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  explicit operator bool() const { return open_; }
  Encoder* operator->() { return &encoder_; }

 private:
  Encoder encoder_;
  uint8_t* outer_ = nullptr;
  uint8_t* inner_ = nullptr;
  bool open_ = false;
};

// Numbers of Record.kind in record.proto.
enum RecordKind : uint32_t {
  kStartRecord = 1,
  kImageRecord = 2,
  kFunctionRecord = 3,
  kLaunchRecord = 4,
  kKernelRecord = 5,
  kAllocationRecord = 6,
  kCopyRecord = 7,
  kFillRecord = 8,
  kStreamEventRecord = 9,
  kTensorMapRecord = 10,
  kGraphNodeRecord = 11,
  kGraphLaunchRecord = 12,
  kDeviceRecord = 13,
  kCollectiveRecord = 14,
  kSnapshotRecord = 15,
  kNoteRecord = 16,
  kEndRecord = 17,
  kKernelNameRecord = 18,
  kMetricNameRecord = 19,
  kMeasuredRecord = 20,
  kTransferRecord = 21,
};

// Numbers of Note.Kind in record.proto.
enum NoteKind : uint32_t {
  kOtherNote = 0,
  kNoCupti = 1,
  kSubscribeRefused = 2,
  kActivityRefused = 3,
  kOldCupti = 4,
  kDroppedRecords = 5,
  kParametersMissing = 6,
  kSnapshotRefused = 7,
  kCountersRefused = 8,
  kGraphsNotMeasured = 9,
  kLaunchNotMeasured = 10,
};
void WriteNote(NoteKind kind, uint32_t status, const char* subject, uint64_t count = 0);

}  // namespace heddle::capture
