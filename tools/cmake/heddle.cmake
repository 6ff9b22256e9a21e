# Third-party packages (Debian's own; nothing is downloaded) and the functions that declare heddle's libraries and tests.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(Boost REQUIRED COMPONENTS graph program_options)
find_package(nlohmann_json REQUIRED)
find_package(LibLZMA REQUIRED)
find_package(ZLIB REQUIRED)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
if(NOT TARGET zstd::zstd)
  add_library(zstd::zstd UNKNOWN IMPORTED)
  set_target_properties(zstd::zstd PROPERTIES IMPORTED_LOCATION "${ZSTD_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${ZSTD_INCLUDE_DIR}")
endif()

find_program(HEDDLE_CCACHE ccache)
if(HEDDLE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${HEDDLE_CCACHE}")
endif()

# What every file of heddle is compiled with. Generated code gets the same, less the warnings.
add_library(heddle_options INTERFACE)
target_include_directories(heddle_options INTERFACE "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
target_compile_options(heddle_options INTERFACE -ffp-contract=off -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND HEDDLE_MARCH)
  target_compile_options(heddle_options INTERFACE -march=${HEDDLE_MARCH})
endif()
if(HEDDLE_SANITIZE)
  target_compile_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(heddle_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
  if(HEDDLE_SANITIZE MATCHES "undefined")
    target_compile_options(heddle_options INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()
add_library(heddle_warnings INTERFACE)
target_compile_options(heddle_warnings INTERFACE -Wall -Wextra -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC bug 105651: std::string's operator+ is reported as overlapping itself.
  target_compile_options(heddle_warnings INTERFACE -Wno-restrict)
else()
  # Clang reports each lane loop that it cannot turn into vector code; that is slower, not wrong.
  target_compile_options(heddle_warnings INTERFACE -Wno-pass-failed)
endif()

include(sanitize)

# heddle_library(NAME SOURCES file... [PUBLIC dep...] [PRIVATE dep...] [PROTOS file.proto...])
# Protobuf messages are generated into the build tree and included as "<folder>/<name>.pb.h".
function(heddle_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE;PROTOS" ${ARGN})
  if(ARG_PROTOS)
    add_library(${name}_proto STATIC)
    target_link_libraries(${name}_proto PUBLIC heddle_options protobuf::libprotobuf)
    foreach(proto IN LISTS ARG_PROTOS)
      file(RELATIVE_PATH rel "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}/${proto}")
      string(REGEX REPLACE "\\.proto$" "" stem "${rel}")
      add_custom_command(
        OUTPUT "${PROJECT_BINARY_DIR}/${stem}.pb.cc" "${PROJECT_BINARY_DIR}/${stem}.pb.h"
        COMMAND protobuf::protoc --cpp_out=${PROJECT_BINARY_DIR} -I${PROJECT_SOURCE_DIR} "${PROJECT_SOURCE_DIR}/${rel}"
        DEPENDS ${ARG_PROTOS} VERBATIM)
      target_sources(${name}_proto PRIVATE "${PROJECT_BINARY_DIR}/${stem}.pb.cc" "${PROJECT_BINARY_DIR}/${stem}.pb.h")
    endforeach()
    heddle_sanitize_generated(${name}_proto)
    list(APPEND ARG_PRIVATE ${name}_proto)
  endif()
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC heddle_options ${ARG_PUBLIC} PRIVATE heddle_warnings ${ARG_PRIVATE})
    heddle_sanitize(${name})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE heddle_options ${ARG_PUBLIC})
  endif()
endfunction()

# For code in which no time is spent at run time: compiling it is most of what a build takes (gtest, JSON, options).
function(heddle_quick_to_compile name)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()

# heddle_test(NAME TIER unit|component|contract|golden|property|validation SOURCES file... LIBS dep... [ENV K=V...] [TIMEOUT s]
#             [DAMAGED_INPUT])
# One binary; each of its tests is a ctest test with the tier as label. Of the properties, sanitizer builds take those of damaged
# input; the others, which simulate for minutes there, are built only when asked for by name.
function(heddle_test name)
  cmake_parse_arguments(ARG "DAMAGED_INPUT" "TIER;TIMEOUT" "SOURCES;LIBS;ENV" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE heddle_options heddle_warnings ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE HEDDLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" HEDDLE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  heddle_quick_to_compile(${name})
  heddle_sanitize(${name})
  if(HEDDLE_SANITIZE AND ARG_TIER STREQUAL "property" AND NOT ARG_DAMAGED_INPUT)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_TIER}." DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${ARG_TIER}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENV}")
endfunction()

# heddle_fuzzer(NAME SOURCES file... LIBS dep... [SEEDS folder...])
# A libFuzzer target (preset `fuzz`, clang only) and a ctest test with the label `fuzz` that runs it for
# HEDDLE_FUZZ_SECONDS. What it finds is kept in the build tree beside it.
set(HEDDLE_FUZZ_SECONDS 60 CACHE STRING "How long each fuzzer runs in ctest")
function(heddle_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS;SEEDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE heddle_options heddle_warnings ${ARG_LIBS})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(corpus "${CMAKE_CURRENT_BINARY_DIR}/${name}_corpus")
  file(MAKE_DIRECTORY "${corpus}")
  math(EXPR timeout "${HEDDLE_FUZZ_SECONDS} + 60")
  add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=${HEDDLE_FUZZ_SECONDS} -max_len=32768 -timeout=10
    -rss_limit_mb=2048 -print_final_stats=1 "${corpus}" ${ARG_SEEDS} WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT ${timeout})
endfunction()
