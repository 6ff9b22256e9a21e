// Contradictions inside the model. A failed check is a bug in heddle, never the user's fault: it prints the
// component's path, the cycle and the condition, and aborts with ExitCode::kInternal.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, std::string_view component,
                              uint64_t cycle, std::string_view message);

}  // namespace heddle

// `component` is a path such as "gpu[0].sm[17].sub[2]"; `cycle` is the simulated time, 0 where there is none.
#define HEDDLE_CHECK(condition, component, cycle, message)                                            \
  do {                                                                                                \
    if (!(condition)) [[unlikely]]                                                                    \
      ::heddle::CheckFailed(__FILE__, __LINE__, #condition, (component), (cycle), (message));         \
  } while (false)
