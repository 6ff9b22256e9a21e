// A machine description while it is put together: the message, where each value was given, and what is wrong.
// Private to sim/config.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/gpu.pb.h"

namespace heddle::config {

// A line and column of a file, from 1; line 0 for what has only a name: a whole file, or an override.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  std::string ToString() const;
  auto operator<=>(const Location&) const = default;
};

// "sm" + "l1" -> "sm.l1"; the root's path is empty.
std::string Join(const std::string& path, std::string_view name);
std::string Element(const std::string& path, int index);

class Draft {
 public:
  explicit Draft(std::string_view file) { locations_[""] = Location{std::string(file), 0, 0}; }

  pb::Gpu gpu;

  void SetLocation(const std::string& path, Location location) { locations_[path] = std::move(location); }
  // Of `path`, or of the nearest enclosing message that was given somewhere.
  const Location& LocationOf(std::string path) const;
  // Where the latest of `paths` was given: an override before the file itself before its base; the first of
  // equals.
  const Location& LatestLocation(std::span<const std::string> paths) const;
  // Forgets where the elements of an inherited list were given.
  void ForgetElements(const std::string& path);

  // A fault of the field at `path`; it counts as broken from now on and is not reported as missing as well.
  void Report(const std::string& path, const std::string& message) {
    ReportAt(LocationOf(path), path, message);
  }
  void ReportAt(const Location& location, const std::string& path, const std::string& message);
  // The text cannot be read on: whatever else was found before may be a consequence, and is dropped.
  void ReportSyntaxError(const Location& location, const std::string& message);

  void MarkBroken(const std::string& path) { broken_.insert(path); }
  // Whether a fault was reported for `path` or for something that it stands in or that stands in it.
  bool IsBroken(const std::string& path) const;

  bool ok() const { return faults_.empty(); }
  bool HasSyntaxError() const { return has_syntax_error_; }
  // One line for each fault, "file:line:column: error: text", sorted by place.
  std::string FaultsToString() const;

 private:
  std::map<std::string, Location> locations_;
  std::set<std::string> broken_;
  std::vector<std::pair<Location, std::string>> faults_;
  bool has_syntax_error_ = false;
};

}  // namespace heddle::config
