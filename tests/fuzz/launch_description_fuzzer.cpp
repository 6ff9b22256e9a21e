// Launch descriptions from arbitrary text, with a toolchain that accepts any module.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/unit/fake_toolchain.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const heddle::trace::Toolchain toolchain = heddle::trace::FakeToolchain();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto trace =
      heddle::trace::BuildTraceFromText(text, "/nonexistent/fuzz.launch.textproto", {}, toolchain);
  if (!trace.ok() && trace.error().message.empty()) std::abort();
  return 0;
}
