#include "tools/heddle/trace_plan.h"

#include <fmt/format.h>

#include <fstream>
#include <set>

#include "frontend/emulator/index_parameters.h"
#include "frontend/sass/cubin.h"
#include "frontend/trace/htrace.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::tools {
namespace {

// The function's SASS, from the trace or decoded now.
Result<isa::KernelCode> CodeOf(const trace::Trace& trace, uint32_t function) {
  for (const trace::Sass& sass : trace.sass)
    if (sass.function == function) return sass.code;
  const trace::Module& module = trace.modules[trace.functions[function].module];
  HEDDLE_ASSIGN_OR_RETURN(
      std::vector<isa::KernelCode> codes,
      toolchain::Default().decode(module.cubin, {trace.functions[function].name}, module.name));
  return std::move(codes.at(0));
}

}  // namespace

po::options_description PlanOptions() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"), "the plan to write");
  options.add_options()("sound", po::bool_switch(),
                        "name also what may reach addresses through shared memory: more buffers");
  return options;
}

Status Plan(const po::variables_map& values, Arguments positional) {
  if (positional.empty() || values.count("output") == 0)
    return Error{ExitCode::kUsage, "heddle trace plan", "give captured traces, and where to write",
                 "heddle trace plan run.htrace -o run.plan"};
  const auto kind =
      values["sound"].as<bool>() ? emulator::SliceKind::kSound : emulator::SliceKind::kOptimistic;
  std::set<std::pair<std::string, uint32_t>> lines;
  for (const std::string& path : positional) {
    HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(path));
    for (uint32_t f = 0; f < trace.functions.size(); ++f) {
      const trace::Module& module = trace.modules[trace.functions[f].module];
      if (module.recorded()) continue;
      HEDDLE_ASSIGN_OR_RETURN(const sass::Cubin cubin,
                              sass::ReadCubin(module.cubin, path + ", " + module.name));
      const sass::CubinKernel* kernel = cubin.FindKernel(trace.functions[f].name);
      if (kernel == nullptr) continue;
      HEDDLE_ASSIGN_OR_RETURN(const isa::KernelCode code, CodeOf(trace, f));
      for (const uint32_t offset : emulator::IndexParameters(code, *kernel, kind))
        lines.emplace(trace.functions[f].name, offset);
    }
  }
  const std::string output = values["output"].as<std::string>();
  std::ofstream file(output);
  file << "# offset among the parameter bytes, and the kernel: its value is the address of a buffer that "
          "steers it\n";
  for (const auto& [name, offset] : lines) file << offset << ' ' << name << '\n';
  if (!file.flush())
    return Error{ExitCode::kTrace, output, "cannot be written",
                 "check the folder's permissions and its free space"};
  fmt::print(stderr, "{}: {} buffers; `heddle capture --snapshot index --plan {}` keeps them\n", output,
             lines.size(), output);
  return Ok();
}

}  // namespace heddle::tools
