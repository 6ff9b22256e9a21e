// Tensor maps of a captured process: found again in the parameters of launches by their 128 bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "frontend/trace/trace.h"

namespace heddle::capture {

namespace pb {
class TensorMap;
}

class TensorMaps {
 public:
  // What cuTensorMapEncodeTiled was given, and what it made of it. False: heddle has no such tensor map (newer swizzles, 4- and 6-bit
  // elements): launches that use it keep the driver's bytes.
  bool Add(const pb::TensorMap& map);

  // Adds a row to `trace` for each map that stands in the parameters of its last launch.
  void FindIn(trace::Trace* trace) const;

 private:
  std::map<std::string, trace::TensorMap> maps_;  // by the driver's bytes
};

}  // namespace heddle::capture
