// PyTorch's profiler (Kineto): a Chrome trace in JSON. Old traces have whole microseconds and flat args, new ones nanoseconds
// behind the point, times from baseTimeNanoseconds on and nested args; both are read by key.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "frontend/profile/metric_names.h"
#include "frontend/profile/readers.h"
#include "frontend/profile/units.h"

namespace heddle::profile {
namespace {

using nlohmann::json;

const json* Find(const json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string Text(const json& object, std::string_view key) {
  const json* value = Find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

// Numbers stand as numbers or, in old traces, as strings.
std::optional<double> Number(const json& object, std::string_view key) {
  const json* value = Find(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return ParseNumber(value->get_ref<const std::string&>());
  if (!value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> Count(const json& object, std::string_view key) {
  const std::optional<double> value = Number(object, key);
  if (!value || *value < 0 || *value > 9e18) return std::nullopt;
  const json* exact = Find(object, key);
  return exact->is_number_unsigned() ? exact->get<uint64_t>() : static_cast<uint64_t>(*value);
}

class KinetoReader {
 public:
  explicit KinetoReader(std::string place) : place_(std::move(place)) {
    profile_.format = Format::kKineto;
    profile_.producer = "PyTorch profiler (Kineto)";
    profile_.protocol = "device times of CUPTI's activity records in a running process";
  }

  // Called by the parser with each finished value; true keeps it. Events are used one by one and thrown away.
  bool Take(int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1) in_events_ = value == "traceEvents";
    if (depth == 0 && event == json::parse_event_t::array_start) root_is_array_ = in_events_ = true;
    const int event_depth = root_is_array_ ? 1 : 2;
    if (depth == event_depth && event == json::parse_event_t::object_end && in_events_) {
      if (!fault_) TakeEvent(value);
      ++events_;
      return false;
    }
    return true;
  }

  Result<Profile> Finish(const json& root) {
    if (fault_) return *fault_;
    if (!root_is_array_ && (!root.is_object() || !root.contains("traceEvents"))) {
      return Malformed(place_, "is JSON without \"traceEvents\"",
                       "give a trace that torch.profiler exported");
    }
    std::map<uint64_t, std::string> gpus;
    if (const json* devices = root.is_object() ? Find(root, "deviceProperties") : nullptr;
        devices && devices->is_array()) {
      for (const json& device : *devices) {
        if (!device.is_object()) continue;
        if (const auto id = Count(device, "id")) gpus[*id] = Text(device, "name");
      }
    }
    if (launches_.empty()) return Malformed(place_, "has no kernels", "profile with ProfilerActivity.CUDA");
    profile_.time_resolution_ns = whole_microseconds_ ? 1000 : 1;
    for (Launch& launch : launches_) {
      if (launch.device && gpus.contains(*launch.device)) launch.gpu = gpus[*launch.device];
      JoinCall(&launch);
    }
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Launch& a, const Launch& b) { return a.start_ns < b.start_ns; });
    profile_.launches = std::move(launches_);
    return std::move(profile_);
  }

 private:
  struct Call {
    std::string name;
    uint64_t process = 0;
    bool ambiguous = false;
  };

  void Fault(const std::string& message) {
    fault_ = Malformed(fmt::format("{}: traceEvents[{}]", place_, events_), message);
  }

  void TakeEvent(const json& event) {
    std::string category = Text(event, "cat");
    std::transform(category.begin(), category.end(), category.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (category == "kernel" && Text(event, "ph") == "X") {
      TakeKernel(event);
    } else if (category == "cuda_profiler_range") {
      TakeRange(event);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "runtime") {
      TakeCall(event);
    }
  }

  // The args of an event; an empty object where it has none.
  static const json& Args(const json& event) {
    static const json none = json::object();
    const json* args = Find(event, "args");
    return args != nullptr && args->is_object() ? *args : none;
  }

  void TakeKernel(const json& event) {
    const json& args = Args(event);
    Launch launch;
    launch.kernel = Text(event, "name");
    if (launch.kernel.empty()) return Fault("a kernel without a name");
    for (const auto& [key, dim] : {std::pair{"grid", &launch.grid}, {"block", &launch.block}}) {
      const json* sizes = Find(args, key);
      if (sizes == nullptr) continue;
      if (sizes->is_string()) {
        std::string text = sizes->get<std::string>();  // "[4, 106, 1]"
        if (text.size() >= 2 && text.front() == '[') text = text.substr(1, text.size() - 2);
        *dim = ParseDim3(text);
      } else if (sizes->is_array() && sizes->size() == 3 && (*sizes)[0].is_number_unsigned() &&
                 (*sizes)[1].is_number_unsigned() && (*sizes)[2].is_number_unsigned()) {
        *dim = Dim3{(*sizes)[0].get<uint32_t>(), (*sizes)[1].get<uint32_t>(), (*sizes)[2].get<uint32_t>()};
      }
      if (!*dim || (*dim)->Count() == 0) return Fault(fmt::format("{} is not three sizes", key));
    }
    launch.device = Count(args, "device");
    if (!launch.device) launch.device = Count(event, "pid");
    launch.context = Count(args, "context");
    launch.stream = Count(args, "stream");
    launch.correlation = Count(args, "correlation");
    launch.graph_node = Count(args, "graph node id");
    launch.registers_per_thread = Count(args, "registers per thread");
    launch.dynamic_shared_bytes = Count(args, "shared memory");  // static and dynamic together
    const std::optional<double> start = Number(event, "ts"), duration = Number(event, "dur");
    if (!start || !duration) {
      ++profile_.notes["kernels without a time"];
    } else {
      if (*duration < 0 || *duration > 1e12) return Fault(fmt::format("{} is no duration", *duration));
      if (std::abs(*start) > 9e15) return Fault(fmt::format("{} is no start", *start));
      if (!IsWhole(*duration) || !IsWhole(*start)) whole_microseconds_ = false;
      launch.start_ns = static_cast<int64_t>(std::llround(*start * 1e3));
      if (*duration == 0) ++profile_.notes["kernels with a duration of 0"];
      AddMetric(&launch, "duration_ps", "ps", std::round(*duration * 1e6));
    }
    launches_.push_back(std::move(launch));
  }

  static bool IsWhole(double value) { return value == std::floor(value); }

  // CUPTI's range profiler: metrics of one launch. Its times contain the replays.
  void TakeRange(const json& event) {
    Launch launch;
    launch.kernel = Text(event, "name");
    if (launch.kernel.empty()) return Fault("a range without a name");
    launch.device = Count(event, "pid");
    if (const auto start = Number(event, "ts"); start && std::abs(*start) < 9e15) {
      launch.start_ns = static_cast<int64_t>(std::llround(*start * 1e3));
    }
    for (const auto& [name, value] : Args(event).items()) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) continue;
      const bool is_percent = name.ends_with(".pct") || name.find(".pct_of_peak") != std::string::npos;
      const bool is_instructions = name.find("inst_executed") != std::string::npos;
      AddMetric(&launch, HeddleName(name),
                is_percent        ? "%"
                : is_instructions ? "inst"
                                  : "",
                value.get<double>());
    }
    profile_.protocol = "counters of CUPTI's range profiler, each launch alone and replayed; no times";
    launches_.push_back(std::move(launch));
  }

  void TakeCall(const json& event) {
    const std::optional<uint64_t> correlation = Count(Args(event), "correlation");
    const std::optional<uint64_t> process = Count(event, "pid");
    if (!correlation || !process) return;
    const auto [found, is_new] = calls_.try_emplace(*correlation, Call{Text(event, "name"), *process});
    // A file may join the traces of several processes, and each counts from one.
    if (!is_new && found->second.process != *process) found->second.ambiguous = true;
  }

  void JoinCall(Launch* launch) {
    if (!launch->correlation) return;
    const auto found = calls_.find(*launch->correlation);
    if (found == calls_.end()) {
      ++profile_.notes["kernels whose launch call is outside the profile"];
    } else if (found->second.ambiguous) {
      ++profile_.notes["kernels whose correlation several processes have"];
    } else {
      launch->launch_call = found->second.name;
      launch->process = found->second.process;
    }
  }

  std::string place_;
  Profile profile_;
  std::vector<Launch> launches_;
  std::map<uint64_t, Call> calls_;
  std::optional<Error> fault_;
  uint64_t events_ = 0;
  bool in_events_ = false;
  bool root_is_array_ = false;
  bool whole_microseconds_ = true;
};

// "... at line 3, column 17: syntax error ..." -> the two as a place, the rest as the message.
Error ParseFault(const std::string& place, const json::exception& error) {
  std::string what = error.what();
  if (what.starts_with("[json.exception.")) what = what.substr(what.find(']') + 1);
  const size_t line = what.find("line "), column = what.find(", column "), colon = what.find(": ");
  if (line == std::string::npos || column == std::string::npos || colon == std::string::npos ||
      colon < column) {
    return Malformed(place, fmt::format("is no JSON:{}", what), "export it anew; the file may be cut short");
  }
  return Malformed(fmt::format("{}:{}:{}", place, what.substr(line + 5, column - line - 5),
                               what.substr(column + 9, colon - column - 9)),
                   fmt::format("is no JSON: {}", what.substr(colon + 2)),
                   "export it anew; the file may be cut short");
}

}  // namespace

Result<Profile> ReadKineto(std::istream* in, const std::string& place) {
  KinetoReader reader(place);
  try {
    const json root = json::parse(*in, [&reader](int depth, json::parse_event_t event, json& value) {
      return reader.Take(depth, event, value);
    });
    return reader.Finish(root);
  } catch (const json::exception& error) {
    return ParseFault(place, error);
  }
}

Result<Profile> ReadKinetoJson(const std::string& text, const std::string& place) {
  std::istringstream in(text);
  return ReadKineto(&in, place);
}

}  // namespace heddle::profile
