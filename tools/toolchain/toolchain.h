// What building a trace needs of the SASS front end and of nvcc.
#pragma once

#include "frontend/trace/build.h"

namespace heddle::toolchain {

// Cubins through frontend/sass, nvdisasm for decoding, nvcc for CUDA sources. The tools are looked for when they are
// first needed.
trace::Toolchain Default();

// `nvcc -cubin -arch=target flags... file`. nvcc is $HEDDLE_NVCC, else on PATH, else in $CUDA_HOME or
// /usr/local/cuda. An error carries what nvcc printed.
Result<std::vector<std::byte>> CompileCuda(const trace::CudaCompilation& compilation,
                                           const std::string& place);

}  // namespace heddle::toolchain
