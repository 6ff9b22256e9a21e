#include "tools/heddle/trace_rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"

namespace heddle::tools {
namespace {

constexpr const char* kExample = "heddle trace rebuild X.htrace --grid 3=sm_count -o Y.htrace";
constexpr uint64_t kParameterBytes = 4;

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Changes launches of one trace; what is wrong is gathered.
class Rebuilder {
 public:
  explicit Rebuilder(trace::Trace* trace) : trace_(*trace) {}

  // "3=sm_count,1,2": x, y and z; those that are not given stay.
  void SetGrid(const std::string& text) {
    trace::Launch* launch = LaunchBefore(text, text.find('='), "--grid");
    if (launch == nullptr) return;
    std::string_view left = std::string_view(text).substr(text.find('=') + 1);
    for (trace::Expr& extent : launch->grid) {
      const size_t end = EndOfExpression(left);
      if (end != 0) extent = trace::Expr(std::string(left.substr(0, end)));
      left.remove_prefix(std::min(left.size(), end + 1));
      if (left.empty()) break;
    }
    if (!left.empty()) Fault("--grid " + text, "a grid has three extents");
    launch->frozen_grid = false;
  }

  // "3:16=sm_count": the 32-bit integer 16 bytes into the parameters.
  void SetParameter(const std::string& text) {
    const size_t colon = text.find(':');
    const size_t equals = text.find('=');
    trace::Launch* launch = LaunchBefore(text, colon, "--parameter");
    if (launch == nullptr) return;
    const std::optional<uint64_t> offset =
        equals == std::string::npos || equals < colon
            ? std::nullopt
            : Number(std::string_view(text).substr(colon + 1, equals - colon - 1));
    if (!offset || *offset % kParameterBytes != 0 || *offset + kParameterBytes > launch->parameters.size())
      return Fault("--parameter " + text, fmt::format("names no 32-bit integer of its {} bytes of parameters",
                                                      launch->parameters.size()));
    const auto at = static_cast<uint32_t>(*offset);
    std::erase_if(launch->patches, [at](const trace::ParameterPatch& patch) { return patch.offset == at; });
    trace::ParameterPatch& patch = launch->patches.emplace_back();
    patch.offset = at;
    patch.type = trace::DType::kU32;
    patch.value = trace::Expr(text.substr(equals + 1));
    std::sort(launch->patches.begin(), launch->patches.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }

  Status Check() const {
    if (faults_.empty()) return Ok();
    return Error{ExitCode::kUsage, "heddle trace rebuild", faults_, kExample};
  }

 private:
  // Where the comma stands that ends it: outside of parentheses.
  static size_t EndOfExpression(std::string_view text) {
    int depth = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (text[i] == ',' && depth == 0) return i;
    }
    return text.size();
  }

  trace::Launch* LaunchBefore(const std::string& text, size_t end, const std::string& option) {
    const std::optional<uint64_t> number = end == std::string::npos || text.find('=') == std::string::npos
                                               ? std::nullopt
                                               : Number(std::string_view(text).substr(0, end));
    if (number && *number < trace_.launches.size()) return &trace_.launches[*number];
    Fault(option + " " + text, number ? fmt::format("the trace has {} launches", trace_.launches.size())
                                      : "is not NUMBER=EXPRESSION");
    return nullptr;
  }

  void Fault(const std::string& place, const std::string& what) {
    faults_ += fmt::format("{}{}: {}", faults_.empty() ? "" : "\n", place, what);
  }

  trace::Trace& trace_;
  std::string faults_;
};

std::vector<std::string> Texts(const po::variables_map& values, const char* name) {
  return values.count(name) == 0 ? std::vector<std::string>() : values[name].as<std::vector<std::string>>();
}

}  // namespace

po::options_description RebuildOptions() {
  po::options_description options("options");
  const auto texts = [](const char* name) {
    return po::value<std::vector<std::string>>()->value_name(name)->composing();
  };
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                        "the trace to write (.htrace)");
  options.add_options()(
      "grid", texts("N=X[,Y[,Z]]"),
      "the grid of launch N, by expressions of the trace's shapes and of the machine (sm_count, "
      "l2_bytes, ...): min(tiles, sm_count)");
  options.add_options()("parameter", texts("N:OFFSET=EXPRESSION"),
                        "likewise the 32-bit integer at this offset of its parameters");
  return options;
}

Status Rebuild(const po::variables_map& values, Arguments positional) {
  const auto usage = [](std::string message) {
    return Error{ExitCode::kUsage, "heddle trace rebuild", std::move(message), kExample};
  };
  if (positional.size() != 1) return usage("give one trace");
  if (values.count("output") == 0) return usage("where to write is not stated: add -o Y.htrace");
  const std::vector<std::string> grids = Texts(values, "grid"), parameters = Texts(values, "parameter");
  if (grids.empty() && parameters.empty())
    return usage("nothing is to be changed: add --grid or --parameter");
  HEDDLE_ASSIGN_OR_RETURN(trace::Trace trace, trace::ReadTrace(positional[0]));
  Rebuilder rebuilder(&trace);
  for (const std::string& text : grids) rebuilder.SetGrid(text);
  for (const std::string& text : parameters) rebuilder.SetParameter(text);
  HEDDLE_RETURN_IF_ERROR(rebuilder.Check());
  // What the expressions name must be there, and what they give must be a launch.
  const Result<trace::ResolvedTrace> resolved = trace::Resolve(trace, trace::TypicalDevice());
  if (!resolved.ok()) {
    Error error = resolved.error();
    error.code = ExitCode::kUsage;
    return error;
  }
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(trace, values["output"].as<std::string>()));
  fmt::print(stderr, "{}: {} launches rebuilt\n", values["output"].as<std::string>(),
             grids.size() + parameters.size());
  return Ok();
}

}  // namespace heddle::tools
