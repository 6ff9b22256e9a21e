// Profilers' exports from arbitrary bytes: Nsight Systems' SQLite, Nsight Compute's CSV, Kineto's JSON, all but gzip's own.
// What is recognised by its first bytes goes to its parser; text goes to both others as well.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "frontend/profile/profile.h"
#include "tools/compare/kernel_name.h"

namespace {

using heddle::profile::Launch;
using heddle::profile::Metric;
using heddle::profile::Profile;

void Check(const heddle::Result<Profile>& profile) {
  if (!profile.ok()) {
    if (profile.error().message.empty() || profile.error().code != heddle::ExitCode::kTrace) std::abort();
    return;
  }
  if (profile->launches.empty()) std::abort();
  for (const Launch& launch : profile->launches) {
    if (launch.kernel.empty()) std::abort();
    if (launch.grid && launch.grid->Count() == 0) std::abort();
    for (const Metric& metric : launch.metrics) {
      if (!std::isfinite(metric.value)) std::abort();
    }
    (void)heddle::compare::FunctionName(heddle::compare::CanonicalKernelName(launch.kernel));
    (void)heddle::compare::DisplayName(launch.kernel);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with("SQLite format 3") || text.starts_with("\x1f\x8b")) {
    // A file that never reaches a disk.
    const int file = memfd_create("fuzz.profile", 0);
    if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
    Check(heddle::profile::ReadProfile("/proc/self/fd/" + std::to_string(file)));
    close(file);
    return 0;
  }
  Check(heddle::profile::ReadKinetoJson(text, "fuzz"));
  Check(heddle::profile::ReadNsightComputeCsv(text, "fuzz"));
  return 0;
}
