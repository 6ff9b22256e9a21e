// From a function's handle to its cubin, without asking the driver: modules and libraries are known by the load calls in which CUPTI
// announced their cubins, functions by the calls that looked them up. What came another way (the CUDA runtime's private
// door) is found by its name.
#pragma once

#include <cstdint>

#include "frontend/capture/inject/abi.h"
#include "frontend/capture/inject/image.h"

namespace heddle::capture {

struct FunctionInfo {
  uint32_t id = 0;
  uint32_t image = kNoImage;
  bool selected = true;  // by --kernels
  bool has_layout = false;
  bool missing_is_noted = false;
  ParameterLayout layout;
  char* name = nullptr;
};

void BindOwner(abi::Handle owner, uint32_t image);  // a CUmodule or CUlibrary
uint32_t ImageOfOwner(abi::Handle owner);
void BindFunction(abi::Handle function, uint32_t image, const char* name);
void AliasFunction(abi::Handle function, abi::Handle kernel);

bool KnowsFunction(abi::Handle function);

// Never null while there is memory; written to the records when first asked for. `symbol_name` may be null.
FunctionInfo* ResolveFunction(abi::Handle function, const char* symbol_name);

// The module goes: its functions' handles may come back for others.
void ForgetFunctionsOf(uint32_t image);

void AbandonFunctions();  // in a forked child

}  // namespace heddle::capture
