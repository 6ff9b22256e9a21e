// Names of kernels, so that the same kernel is recognised in cubins (mangled) and in what different profilers print.
#pragma once

#include <string>
#include <string_view>

namespace heddle::compare {

// The demangled name without return type, parameters and what demanglers write differently: spaces, "(int)4" for 4, "true"
// for 1, "4ul" for 4, "<unnamed>" for "(anonymous namespace)", "[lambda() (instance 2)]" for "{lambda()#2}", "const". Equal
// kernels get equal text; it is for comparing, not for reading.
std::string CanonicalKernelName(std::string_view name);

// The last part of a canonical name, without template arguments: "at::native::f<4>" -> "f". Nsight Compute prints no more
// with --kernel-name-base function.
std::string FunctionName(std::string_view canonical);

// For people: demangled, without return type and parameters.
std::string DisplayName(std::string_view name);

// "gemm", "attention", ..., "other": by words in the name (categories.def).
std::string_view CategoryOf(std::string_view name);

}  // namespace heddle::compare
