// Machine descriptions and overrides from arbitrary bytes. The first line, if it starts with "--set ", is an override.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/load.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> overrides;
  if (text.starts_with("--set ")) {
    const size_t end = std::min(text.find('\n'), text.size());
    overrides.emplace_back(text.substr(6, end - 6));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto gpu = heddle::config::ParseGpu(text, "fuzz.textproto", overrides);
  if (!gpu.ok()) {
    if (gpu.error().message.empty()) std::abort();
    return 0;
  }
  // Whatever is accepted must survive its own canonical text.
  const auto again = heddle::config::ParseGpu(heddle::config::CanonicalText(*gpu), "again.textproto");
  if (!again.ok() || !(*again == *gpu)) std::abort();
  return 0;
}
