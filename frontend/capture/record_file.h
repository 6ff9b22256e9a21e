// Reading what libheddle_capture.so wrote. The files are not trusted: a process may have been killed in the middle of a write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sim/base/result.h"

namespace heddle::capture {

namespace pb {
class Record;
}

struct RecordFileEnd {
  bool in_order = false;  // the process ended in order: nothing is missing
  uint64_t records = 0;
  uint64_t lost_bytes = 0;  // behind the last whole frame
};

// Calls `record` for each record of the file `path`, in order. What follows the last whole frame is left out and counted. Errors
// (kTrace): no record file, one of a newer version, not a single whole frame.
Result<RecordFileEnd> ReadRecords(const std::string& path,
                                  const std::function<void(const pb::Record&)>& record);

}  // namespace heddle::capture
