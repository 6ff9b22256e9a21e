#include "frontend/profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "frontend/profile/gzip.h"
#include "frontend/profile/metric_names.h"
#include "frontend/profile/readers.h"

namespace heddle::profile {
namespace {

// The first bytes of a text tell JSON from CSV with notices before it.
Result<Profile> ReadText(std::istream* in, const std::string& path) {
  while (std::isspace(in->peek()) != 0) in->get();
  const int first = in->peek();
  if (first == std::istream::traits_type::eof()) return Malformed(path, "is empty");
  return first == '{' || first == '[' ? ReadKineto(in, path) : ReadNsightCompute(in, path);
}

}  // namespace

const char* FormatName(Format format) {
  switch (format) {
    case Format::kNsightSystems:
      return "Nsight Systems";
    case Format::kNsightCompute:
      return "Nsight Compute";
    case Format::kKineto:
      return "Kineto";
  }
  return "";
}

Error Malformed(std::string place, std::string message, std::string next_step) {
  return {ExitCode::kTrace, std::move(place), std::move(message), std::move(next_step)};
}

std::string MetricName(const std::string& name) { return HeddleName(name); }

void AddMetric(Launch* launch, std::string name, std::string unit, double value) {
  const bool is_there = std::any_of(launch->metrics.begin(), launch->metrics.end(),
                                    [&](const Metric& metric) { return metric.name == name; });
  if (!is_there) launch->metrics.push_back({std::move(name), std::move(unit), value});
}

Result<Profile> ReadProfile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Malformed(path, "cannot be opened", "give a file that exists and can be read");
  char magic[16] = {};
  in.read(magic, sizeof magic);
  if (in.bad()) return Malformed(path, "cannot be read", "give a file, not a folder");
  const std::string_view start(magic, static_cast<size_t>(in.gcount()));
  in.clear();
  in.seekg(0);
  if (start.starts_with("SQLite format 3")) return ReadNsightSystems(path);
  if (!start.starts_with("\x1f\x8b")) {
    if (start.starts_with("\xef\xbb\xbf")) in.seekg(3);
    return ReadText(&in, path);
  }
  GzipBuffer unpacked(&in);
  std::istream text(&unpacked);
  Result<Profile> profile = ReadText(&text, path);
  if (!unpacked.fault().empty()) return Malformed(path, unpacked.fault(), "copy it anew");
  return profile;
}

}  // namespace heddle::profile
