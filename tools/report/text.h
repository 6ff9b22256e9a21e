// Numbers and names as people read them, the same in text and in HTML.
#pragma once

#include <string>

namespace heddle::report {

// "_Z7softmaxPf" as it is; long mangled names keep their start and their end.
std::string ShortName(const std::string& name, size_t most = 36);

// A value with its unit for reading: 1.23 ms, 45.6 %, 1.94 TB/s, 12,345 cycles.
std::string Human(double value, const std::string& unit);
std::string HumanSeconds(double seconds);
// "1.23 ms +-0.4 %"; without an interval the time alone.
std::string HumanSeconds(double seconds, double interval_seconds);

}  // namespace heddle::report
