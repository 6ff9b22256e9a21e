// Traces of the kernels under kernels/, built for a test.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"

namespace heddle::test {

struct KernelCase {
  std::string description;  // "cuda/rms_norm"
  std::string target;       // "sm_80"
};

// Every description of check size below kernels/ whose source is ours, for the targets that it can be compiled for.
std::vector<KernelCase> AllKernelCases();

// Why the case cannot be built on this machine (no nvcc, no nvdisasm, no Python with Triton), or nothing. Compiles the
// Triton kernels when their output is missing.
std::optional<std::string> MissingTool(const KernelCase& kernel);

// Reports a failure and returns nothing where the description cannot be built.
std::optional<trace::Trace> BuildKernel(const KernelCase& kernel);

}  // namespace heddle::test
