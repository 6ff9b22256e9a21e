// The .htrace container: one SQLite file with STRICT tables (schema.def), protobuf payloads and zstd blobs.
//
// No environment variable, host name, user name or path of the machine that wrote it is stored. Equal traces
// give equal bytes with one version of SQLite and zstd. The file states the SHA-256 of what it holds, so
// damage is noticed.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/trace/trace.h"
#include "sim/base/result.h"

namespace heddle::trace {

inline constexpr int32_t kApplicationId = 0x4854'7263;  // "HTrc"
inline constexpr int64_t kSchemaVersion = 1;            // PRAGMA user_version

// Written to a temporary name beside `path` and renamed into place: `path` is complete or untouched. The
// trace's indices must be consistent (Validate).
Status WriteTrace(const Trace& trace, const std::string& path);

// Any file may be handed in: one that is cut short, damaged, of another kind or of a newer version gives an
// error with ExitCode::kTrace. Older versions are migrated in memory. What is returned has passed Validate
// and matches its digest, which `digest` is given.
Result<Trace> ReadTrace(const std::string& path, std::string* digest = nullptr);

// Every index points into its table, every type is known, parameter patches lie inside the parameters, edges
// and contents point backwards in time only. `place` is used in the error.
Status Validate(const Trace& trace, const std::string& place);

// SHA-256 (lower-case hex) over everything that the trace holds, independent of the container. Equal traces,
// equal digests.
std::string Digest(const Trace& trace);

// Every table as readable text, in a fixed order: equal traces give equal text. Cubins and blobs by hash.
std::string DumpText(const Trace& trace);

}  // namespace heddle::trace
