# Fuzz targets: libFuzzer with clang (HEDDLE_BUILD_FUZZERS=ON), otherwise a program that runs the inputs it is given,
# so that seeds and found cases stay regression tests on every compiler.

# add_fuzzer(NAME SOURCES file... LIBS dep... [SEEDS program])
# The sources define LLVMFuzzerTestOneInput. SEEDS is a target that writes seed inputs into the folder it is given; the
# ctest test fuzz.NAME makes the seeds and runs HEDDLE_FUZZ_SECONDS on them (or the seeds alone without libFuzzer).
set(HEDDLE_FUZZ_SECONDS 60 CACHE STRING "How long each fuzzer runs under ctest")
function(add_fuzzer name)
  cmake_parse_arguments(ARG "" "SEEDS" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE heddle_options heddle_warnings ${ARG_LIBS})
  set(seeds "${CMAKE_CURRENT_BINARY_DIR}/${name}_seeds")
  file(MAKE_DIRECTORY "${seeds}")
  if(HEDDLE_BUILD_FUZZERS)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=${HEDDLE_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048 "${seeds}")
  else()
    target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/support/fuzz_main.cpp")
    add_test(NAME fuzz.${name} COMMAND ${name} "${seeds}")
  endif()
  math(EXPR timeout "${HEDDLE_FUZZ_SECONDS} + 60")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS "property" TIMEOUT ${timeout})
  if(ARG_SEEDS)
    add_test(NAME fuzz.${name}.seeds COMMAND ${ARG_SEEDS} "${seeds}")
    set_tests_properties(fuzz.${name}.seeds PROPERTIES LABELS "property" FIXTURES_SETUP ${name}_seeds)
    set_tests_properties(fuzz.${name} PROPERTIES FIXTURES_REQUIRED ${name}_seeds)
  endif()
endfunction()
