#include "tests/support/sass_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  heddle::testing::TryCubin({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
