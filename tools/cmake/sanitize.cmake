# Sanitizer builds (tools/sanitize). Instrumented code takes several times as long to compile, optimised most of all, so each part
# gets what finds a fault there:
#   model:   what simulates (see below): optimised, every check
#   readers: the rest of sim and frontend, which reads untrusted input: every check, and by clang the coverage that fuzzers steer by
#   tools:   tools and tests: without checks of pointers whose failure the address sanitizer reports as well
# By clang, headers of other projects come precompiled (precompiled.h).
set(HEDDLE_MODEL_FOLDERS "^(sim/(base|isa|engine|stats|sm|memory|interconnect|gpu)|frontend/emulator)$")

if(HEDDLE_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(HEDDLE_PRECOMPILE ON)
endif()

# heddle_sanitize(TARGET): to be called in the folder that declares the target.
function(heddle_sanitize target)
  if(NOT HEDDLE_SANITIZE)
    return()
  endif()
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(folder MATCHES "${HEDDLE_MODEL_FOLDERS}")
    set(part model)
  elseif(folder MATCHES "^(sim|frontend)/")
    set(part readers)
  else()
    set(part tools)
  endif()
  heddle_sanitize_part(${target} ${part})
  if(HEDDLE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM heddle_precompiled_${part})
  endif()
endfunction()

function(heddle_sanitize_part target part)
  if(NOT part STREQUAL "model")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(part STREQUAL "tools" AND HEDDLE_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr,object-size)
  endif()
  if(part STREQUAL "readers" AND HEDDLE_BUILD_FUZZERS)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(HEDDLE_PRECOMPILE)
    target_compile_options(${target} PRIVATE -fPIC)  # executables too: one precompiled header serves both
  endif()
endfunction()

# For generated code: other people's, and large.
function(heddle_sanitize_generated target)
  if(HEDDLE_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    if(HEDDLE_SANITIZE MATCHES "undefined")
      target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
    endif()
  endif()
endfunction()

if(HEDDLE_PRECOMPILE)
  find_package(GTest REQUIRED)
  foreach(part model readers tools)
    file(WRITE "${PROJECT_BINARY_DIR}/precompiled_${part}.cpp" "// A header is precompiled for a file.\n")
    add_library(heddle_precompiled_${part} OBJECT "${PROJECT_BINARY_DIR}/precompiled_${part}.cpp")
    target_link_libraries(heddle_precompiled_${part} PRIVATE heddle_options fmt::fmt nlohmann_json::nlohmann_json GTest::gmock)
    target_precompile_headers(heddle_precompiled_${part} PRIVATE "${PROJECT_SOURCE_DIR}/tools/cmake/precompiled.h")
    heddle_sanitize_part(heddle_precompiled_${part} ${part})
  endforeach()
endif()
