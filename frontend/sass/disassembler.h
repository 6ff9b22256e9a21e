// Finding and running NVIDIA's disassembler.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/base/result.h"

namespace heddle::sass {

// The path of nvdisasm: $HEDDLE_NVDISASM, else on PATH, in the CUDA Toolkit ($CUDA_HOME, /usr/local/cuda), in
// the PyPI package nvidia-cuda-nvdisasm of a virtual environment ($VIRTUAL_ENV, ./build/venv) or of python3.
// The error says how to get it.
Result<std::string> FindDisassembler();

// Runs `nvdisasm options... FILE` on a temporary file with these bytes and returns its standard output.
// `place` names the bytes in errors. Warnings of nvdisasm (it prints one for files of the older ABI) are
// dropped when it succeeds.
Result<std::string> RunDisassembler(const std::string& nvdisasm, const std::vector<std::string>& options,
                                    std::span<const std::byte> bytes, const std::string& place);

}  // namespace heddle::sass
