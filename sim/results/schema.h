// Creates and checks the schema of a results database.
#pragma once

#include <string_view>

#include "sim/base/result.h"
#include "sim/sqlite/sqlite.h"

namespace heddle::results {

extern const std::string_view kSchemaSql;  // schema.sql

inline constexpr int kBarrierWaitVersion = 2;     // the first with the table barrier_wait
inline constexpr int kHardwareLaunchVersion = 3;  // the first with the table hardware_launch
inline constexpr int kSamplingVersion = 5;        // the first with the table sampling
inline constexpr int kHardwareCodeVersion =
    6;  // the first with the tables hardware_code and hardware_pc_metric

// Creates the tables in an empty database and fills stat_def and stall_def; checks an existing one, which must be a
// results database of this or an older version, and brings it up to date.
Status PrepareSchema(sqlite::Database* database);
Status CheckSchema(sqlite::Database* database);

}  // namespace heddle::results
