// Cubins and functions of a captured process as modules and functions of a trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/trace/build.h"
#include "frontend/trace/trace.h"
#include "sim/base/result.h"
#include "sim/base/types.h"

namespace heddle::capture {

class Modules {
 public:
  Modules(std::string folder, const trace::Toolchain& toolchain)
      : folder_(std::move(folder)), toolchain_(toolchain) {}

  void AddImage(uint32_t id, uint64_t size_bytes, uint32_t crc) {
    images_[id] = {size_bytes, crc, {}, false};
  }
  void AddFunction(uint32_t id, std::string name, std::optional<uint32_t> image) {
    functions_[id] = {std::move(name), image, {}};
  }
  const std::string& NameOf(uint32_t function) const;

  struct Used {
    uint32_t function = 0;  // in the trace
    std::optional<Dim3> cluster;
  };
  // The trace's function, put there with its module when it is first asked for. None: its cubin was not seen or cannot be read;
  // `why` then says so.
  std::optional<Used> Use(uint32_t function, trace::Trace* trace, std::string* why);

  // Decoded SASS of all functions in the trace; where that is not possible here (no nvdisasm), a warning.
  void Decode(trace::Trace* trace, std::vector<std::string>* warnings) const;

 private:
  struct Image {
    uint64_t size_bytes = 0;
    uint32_t crc = 0;
    std::optional<trace::ModuleContents> contents;
    bool failed = false;
    uint32_t module = trace::kNone;
  };
  struct Function {
    std::string name;
    std::optional<uint32_t> image;
    std::optional<Used> used;
  };
  bool Load(uint32_t id, trace::Trace* trace, std::string* why);

  std::string folder_;
  const trace::Toolchain& toolchain_;
  std::map<uint32_t, Image> images_;
  std::map<uint32_t, Function> functions_;
};

}  // namespace heddle::capture
