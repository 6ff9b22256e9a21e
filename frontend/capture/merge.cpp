#include "frontend/capture/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "frontend/capture/relocate.h"
#include "frontend/trace/htrace.h"

namespace heddle::capture {
namespace {

using Named = std::pair<std::string, trace::Trace>;

struct Source {
  uint32_t trace = 0;
  uint32_t launch = 0;
};

Error Bad(const std::string& place, std::string message, std::string next_step) {
  return Error{ExitCode::kTrace, place, std::move(message), std::move(next_step)};
}

Status CheckCaptured(const std::vector<Named>& traces) {
  for (const auto& [place, trace] : traces) {
    if (!trace.defines.empty() || !trace.warp_streams.empty())
      return Bad(place, "is not of a captured process", "merge traces that `heddle capture` made");
    for (const trace::Buffer& buffer : trace.buffers)
      if (buffer.address == 0)
        return Bad(place, "is not of a captured process: its buffers have no addresses",
                   "merge traces that `heddle capture` made");
  }
  return Ok();
}

std::vector<Source> Order(const std::vector<Named>& traces) {
  std::vector<Source> order;
  bool measured = true;
  for (uint32_t t = 0; t < traces.size(); ++t)
    for (uint32_t i = 0; i < traces[t].second.launches.size(); ++i) {
      order.push_back({t, i});
      measured &= traces[t].second.launches[i].measured_start_ns >= 0;
    }
  if (!measured) return order;
  // The order of submission inside a trace stays: a launch counts as no earlier than those in front of it.
  std::vector<std::vector<int64_t>> key(traces.size());
  for (uint32_t t = 0; t < traces.size(); ++t) {
    int64_t latest = 0;
    for (const trace::Launch& launch : traces[t].second.launches) {
      latest = std::max(latest, launch.measured_start_ns);
      key[t].push_back(latest);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](const Source& a, const Source& b) {
    return key[a.trace][a.launch] < key[b.trace][b.launch];
  });
  return order;
}

class Merger {
 public:
  explicit Merger(const std::vector<Named>& traces) : traces_(traces) {}

  trace::Trace Run() {
    out_.name = "merged";
    out_.device = traces_.front().second.device;
    launch_of_.resize(traces_.size());
    function_of_.resize(traces_.size());
    for (uint32_t t = 0; t < traces_.size(); ++t) AddCode(t);
    uint32_t streams = 0;
    std::vector<uint32_t> first_stream;
    for (const auto& [place, trace] : traces_) {
      first_stream.push_back(streams);
      uint32_t most = 0;
      for (const trace::Launch& launch : trace.launches) most = std::max(most, launch.stream + 1);
      streams += most;
    }
    for (uint32_t t = 0; t < traces_.size(); ++t) launch_of_[t].resize(traces_[t].second.launches.size());
    for (const Source& source : Order(traces_)) {
      launch_of_[source.trace][source.launch] = static_cast<uint32_t>(out_.launches.size());
      trace::Launch launch = traces_[source.trace].second.launches[source.launch];
      launch.function = function_of_[source.trace][launch.function];
      launch.stream += first_stream[source.trace];
      for (trace::ParameterPatch& patch : launch.patches)
        if (patch.buffer != trace::kNone) patch.buffer += first_buffer_[source.trace];
      out_.launches.push_back(std::move(launch));
    }
    for (uint32_t t = 0; t < traces_.size(); ++t) AddRest(t);
    std::stable_sort(out_.contents.begin(), out_.contents.end(),
                     [](const auto& a, const auto& b) { return a.before_launch < b.before_launch; });
    out_.doc = fmt::format("{} launches of {} processes", out_.launches.size(), traces_.size());
    return std::move(out_);
  }

 private:
  void AddCode(uint32_t t) {
    const trace::Trace& from = traces_[t].second;
    first_buffer_.push_back(static_cast<uint32_t>(out_.buffers.size()));
    out_.buffers.insert(out_.buffers.end(), from.buffers.begin(), from.buffers.end());
    for (uint32_t f = 0; f < from.functions.size(); ++f) {
      const trace::Module& module = from.modules[from.functions[f].module];
      const auto [at, fresh] =
          modules_.try_emplace(module.sha256, static_cast<uint32_t>(out_.modules.size()));
      if (fresh) {
        out_.modules.push_back(module);
        out_.modules.back().name = fmt::format("module_{}", at->second);
      }
      const auto [function, is_new] = functions_.try_emplace({at->second, from.functions[f].name},
                                                             static_cast<uint32_t>(out_.functions.size()));
      if (is_new) {
        out_.functions.push_back(from.functions[f]);
        out_.functions.back().module = at->second;
        for (const trace::Sass& sass : from.sass)
          if (sass.function == f) out_.sass.push_back({function->second, sass.decoder_version, sass.code});
      }
      function_of_[t].push_back(function->second);
    }
  }

  void AddRest(uint32_t t) {
    const trace::Trace& from = traces_[t].second;
    const std::vector<uint32_t>& launch = launch_of_[t];
    for (const trace::Edge& edge : from.edges) out_.edges.push_back({launch[edge.from], launch[edge.to]});
    for (trace::Content content : from.contents) {
      content.buffer += first_buffer_[t];
      content.rule.copy_buffer += first_buffer_[t];
      if (content.before_launch != 0) content.before_launch = launch[content.before_launch];
      out_.contents.push_back(std::move(content));
    }
    for (trace::TensorMap map : from.tensor_maps) {
      map.launch = launch[map.launch];
      if (map.buffer != trace::kNone) map.buffer += first_buffer_[t];
      out_.tensor_maps.push_back(std::move(map));
    }
    for (trace::Counter counter : from.counters) {
      counter.launch = launch[counter.launch];
      out_.counters.push_back(std::move(counter));
    }
    for (trace::Collective collective : from.collectives) {
      collective.launch = launch[collective.launch];
      out_.collectives.push_back(std::move(collective));
    }
  }

  const std::vector<Named>& traces_;
  trace::Trace out_;
  std::map<std::string, uint32_t> modules_;  // by SHA-256
  std::map<std::pair<uint32_t, std::string>, uint32_t> functions_;
  std::vector<std::vector<uint32_t>> function_of_, launch_of_;
  std::vector<uint32_t> first_buffer_;
};

}  // namespace

Result<MergedTraces> MergeTraces(std::vector<Named> traces) {
  HEDDLE_RETURN_IF_ERROR(CheckCaptured(traces));
  MergedTraces merged;
  TakenRanges taken;
  for (auto& [place, trace] : traces) {
    if (Overlaps(trace, taken)) {
      Relocate(&trace, taken);
      merged.relocated.push_back(place);
    }
    Take(trace, &taken);
  }
  merged.trace = Merger(traces).Run();
  HEDDLE_RETURN_IF_ERROR(trace::Validate(merged.trace, "merged trace"));
  return merged;
}

}  // namespace heddle::capture
