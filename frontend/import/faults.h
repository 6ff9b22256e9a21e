// What is wrong with the files of a recorded trace: counted by kind, and the first ones placed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace heddle::importer {

class FaultLog {
 public:
  static constexpr size_t kMostPlaced = 20;

  struct Placed {
    std::string place;  // "kernel-1.traceg.xz:27", "kernel-2.tracez at byte 4711"
    std::string what;
  };

  // `kind` is a stable sentence, `detail` what it was in this case. `line`: of a `.tracez` the byte offset; 0: the whole file.
  void Add(std::string_view file, uint64_t line, std::string_view kind, std::string_view detail = {});

  uint64_t total() const { return total_; }
  const std::vector<Placed>& placed() const { return placed_; }
  const std::map<std::string, uint64_t, std::less<>>& by_kind() const { return by_kind_; }

  // All of it as one error of the trace. Only where total() is not 0.
  Error ToError() const;

 private:
  uint64_t total_ = 0;
  std::vector<Placed> placed_;
  std::map<std::string, uint64_t, std::less<>> by_kind_;
};

}  // namespace heddle::importer
