// Whole copies of a results database on a slow or shared file system, while the work goes on in local scratch. What was published
// is what counts as committed: a reader of the target sees the last whole copy, whatever happens to the writer.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/result.h"

namespace heddle::batch {

// Copies `database` (no transaction open; a hot journal of a writer that died is rolled back first) to a temporary name beside
// `target`, waits for the disk, renames it over `target`: a rename does not cross file systems.
Status Publish(const std::string& database, const std::string& target);

// Launches in a database; 0 when there is none.
uint64_t LaunchCount(const std::string& database);

// The file that a Writer of `database` works on, or the finished one; empty when there is neither.
std::string WorkingFile(const std::string& database);

}  // namespace heddle::batch
