#include "sim/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "sim/base/result.h"

namespace heddle {

void CheckFailed(const char* file, int line, const char* condition, std::string_view component, uint64_t cycle,
                 std::string_view message) {
  std::fprintf(stderr,
               "heddle: internal error at cycle %llu in %.*s: %.*s\n  %s:%d: '%s' does not hold\n"
               "  This is a bug in heddle; please report it with the command and the trace.\n",
               static_cast<unsigned long long>(cycle), static_cast<int>(component.size()), component.data(),
               static_cast<int>(message.size()), message.data(), file, line, condition);
  std::fflush(stderr);
  std::_Exit(static_cast<int>(ExitCode::kInternal));
}

}  // namespace heddle
