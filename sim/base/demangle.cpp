#include "sim/base/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace heddle {

std::string Demangled(const std::string& name) {
  constexpr size_t kMostMangledBytes = 8192;
  if (!name.starts_with("_Z") || name.size() > kMostMangledBytes) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace heddle
