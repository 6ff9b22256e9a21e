// The .htrace container from arbitrary bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "frontend/trace/htrace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A file that never reaches a disk.
  const int file = memfd_create("fuzz.htrace", 0);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) std::abort();
  const auto trace = heddle::trace::ReadTrace("/proc/self/fd/" + std::to_string(file));
  close(file);
  if (trace.ok()) {
    (void)heddle::trace::DumpText(*trace);
    (void)heddle::trace::Resolve(*trace, {{"sm_count", 108}, {"l2_bytes", 40 << 20}});
  } else if (trace.error().message.empty() || trace.error().code != heddle::ExitCode::kTrace) {
    std::abort();
  }
  return 0;
}
