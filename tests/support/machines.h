// Machine descriptions for tests: the A100 with changes, so that every test states only what it is about.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/load.h"

namespace heddle::test {

inline config::Gpu A100(const std::vector<std::string>& overrides = {}) {
  Result<config::Gpu> gpu = config::LoadGpu("a100_sxm4_80gb", overrides);
  if (!gpu.ok()) {
    ADD_FAILURE() << gpu.error().ToString();
    std::abort();
  }
  return std::move(gpu).value();
}

}  // namespace heddle::test
