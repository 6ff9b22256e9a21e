// `heddle trace build|import|info|dump|verify|rebuild|extract`: making traces from launch descriptions, and looking into them.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "frontend/import/recorded_launch.h"
#include "frontend/trace/build.h"
#include "frontend/trace/htrace.h"
#include "tools/heddle/capture_output.h"
#include "tools/heddle/commands.h"
#include "tools/heddle/table.h"
#include "tools/heddle/trace_from_profile.h"
#include "tools/heddle/trace_import.h"
#include "tools/heddle/trace_plan.h"
#include "tools/heddle/trace_rebuild.h"
#include "tools/heddle/trace_streams.h"
#include "tools/heddle/trace_verify.h"
#include "tools/toolchain/toolchain.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

Error Usage(std::string place, std::string message, std::string next_step) {
  return {ExitCode::kUsage, std::move(place), std::move(message), std::move(next_step)};
}

ExitCode Finish(const Status& status) { return status.ok() ? ExitCode::kOk : Report(status.error()); }

// ---- build -----------------------------------------------------------------------------------------------------------

po::options_description BuildOptionsTable() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                        "the trace to write (.htrace)");
  options.add_options()("define,D",
                        po::value<std::vector<std::string>>()->value_name("NAME=EXPRESSION")->composing(),
                        "replace a definition of the description");
  options.add_options()("target", po::value<std::string>()->value_name("sm_NN")->default_value(""),
                        "architecture instead of the description's");
  return options;
}

Status Build(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1)
    return Usage("heddle trace build", "give one launch description",
                 "heddle trace build X.launch.textproto -o X.htrace");
  if (values.count("output") == 0)
    return Usage("heddle trace build", "where to write is not stated", "add -o X.htrace");
  trace::BuildOptions options;
  options.target = values["target"].as<std::string>();
  if (values.count("define") != 0) {
    for (const std::string& define : values["define"].as<std::vector<std::string>>()) {
      const size_t equals = define.find('=');
      if (equals == std::string::npos || equals == 0)
        return Usage("--define " + define, "is no NAME=EXPRESSION", "for example --define M=4096");
      options.defines.emplace_back(define.substr(0, equals), define.substr(equals + 1));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace,
                          trace::BuildTrace(positional[0], options, toolchain::Default()));
  const std::string& output = values["output"].as<std::string>();
  HEDDLE_RETURN_IF_ERROR(trace::WriteTrace(trace, output));
  fmt::print(stderr, "{}: {} launch{} of {} function{}\n", output, trace.launches.size(),
             trace.launches.size() == 1 ? "" : "es", trace.functions.size(),
             trace.functions.size() == 1 ? "" : "s");
  return Ok();
}

// ---- info ------------------------------------------------------------------------------------------------------------

std::string Show(const trace::Expr& expr) {
  return expr.text.empty() ? fmt::format("{}", expr.value) : expr.text;
}

template <typename Exprs>
std::string ShowAll(const Exprs& exprs) {
  std::string text;
  for (const trace::Expr& expr : exprs) text += (text.empty() ? "" : " x ") + Show(expr);
  return text;
}

ordered_json InfoJson(const trace::Trace& trace, const std::string& digest) {
  ordered_json functions = ordered_json::array();
  for (const trace::Function& f : trace.functions)
    functions.push_back({{"name", f.name},
                         {"sm_version", trace.modules[f.module].sm_version},
                         {"registers", f.registers},
                         {"static_shared_bytes", f.static_shared_bytes},
                         {"parameter_bytes", f.parameter_bytes}});
  ordered_json launches = ordered_json::array();
  for (const trace::Launch& l : trace.launches)
    launches.push_back({{"name", l.name},
                        {"function", trace.functions[l.function].name},
                        {"stream", l.stream},
                        {"grid", ShowAll(l.grid)},
                        {"block", ShowAll(l.block)},
                        {"cluster", ShowAll(l.cluster)},
                        {"dynamic_shared_bytes", Show(l.dynamic_shared_bytes)},
                        {"frozen_grid", l.frozen_grid}});
  ordered_json buffers = ordered_json::array();
  for (const trace::Buffer& b : trace.buffers)
    buffers.push_back({{"name", b.name}, {"type", trace::Name(b.type)}, {"shape", ShowAll(b.shape)}});
  ordered_json defines = ordered_json::object();
  for (const auto& [name, value] : trace.defines) defines[name] = Show(value);
  return {{"name", trace.name},     {"doc", trace.doc},     {"digest", digest},  {"defines", defines},
          {"functions", functions}, {"launches", launches}, {"buffers", buffers}};
}

void PrintInfo(const trace::Trace& trace, const std::string& digest) {
  fmt::print("{}\n{}\ndigest {}\n\n", trace.name, trace.doc, digest);
  Table defines{{"define", "value"}, {}, {}};
  for (const auto& [name, value] : trace.defines) defines.rows.push_back({name, Show(value)});
  if (!defines.rows.empty()) Print(defines);
  Table functions{
      {"function", "sm", "registers", "static shared", "parameters"}, {}, {false, true, true, true, true}};
  for (const trace::Function& f : trace.functions)
    functions.rows.push_back({f.name, fmt::format("{}", trace.modules[f.module].sm_version),
                              fmt::format("{}", f.registers), fmt::format("{} B", f.static_shared_bytes),
                              fmt::format("{} in {} B", f.parameters.size(), f.parameter_bytes)});
  fmt::print("\n");
  Print(functions);
  Table launches{{"launch", "name", "stream", "grid", "block", "dynamic shared"}, {}, {true, false, true}};
  for (size_t i = 0; i < trace.launches.size(); ++i) {
    const trace::Launch& l = trace.launches[i];
    launches.rows.push_back({fmt::format("{}", i), l.name, fmt::format("{}", l.stream),
                             ShowAll(l.grid) + (l.frozen_grid ? " (frozen)" : ""), ShowAll(l.block),
                             Show(l.dynamic_shared_bytes) + " B"});
  }
  fmt::print("\n");
  Print(launches);
  Table buffers{{"buffer", "type", "shape"}, {}, {}};
  for (const trace::Buffer& b : trace.buffers)
    buffers.rows.push_back({b.name, std::string(trace::Name(b.type)), ShowAll(b.shape)});
  fmt::print("\n");
  if (!buffers.rows.empty()) Print(buffers);
}

po::options_description InfoOptions() {
  po::options_description options("options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

// Of launches that were recorded.
void PrintRecordings(const trace::Trace& trace) {
  Table table{{"launch", "recorded from", "blocks", "warp instructions", "threads a warp", "notes"},
              {},
              {true, false, true, true, true, true}};
  for (uint32_t i = 0; i < trace.launches.size(); ++i) {
    if (!importer::IsRecorded(trace, i)) continue;
    const Result<trace::RecordingHeader> header = importer::ReadRecordingHeader(trace, i);
    if (!header.ok()) continue;
    const double threads = static_cast<double>(header->thread_instructions) /
                           static_cast<double>(std::max<uint64_t>(1, header->warp_instructions));
    table.rows.push_back({fmt::format("{}", i), header->source, fmt::format("{}", header->blocks),
                          fmt::format("{}", header->warp_instructions), fmt::format("{:.1f}", threads),
                          fmt::format("{}", header->notes.size())});
  }
  if (table.rows.empty()) return;
  fmt::print("\n");
  Print(table);
}

Status Info(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1)
    return Usage("heddle trace info", "give one trace", "heddle trace info X.htrace");
  std::string digest;
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(positional[0], &digest));
  if (values["json"].as<bool>()) {
    fmt::print("{}\n", InfoJson(trace, digest).dump(2, ' ', false, ordered_json::error_handler_t::replace));
  } else {
    PrintInfo(trace, digest);
    PrintRecordings(trace);
  }
  return Ok();
}

// ---- dump and extract ------------------------------------------------------------------------------------------------

po::options_description NoOptions() { return po::options_description("options"); }

Status Dump(const po::variables_map&, Arguments positional) {
  if (positional.size() != 1)
    return Usage("heddle trace dump", "give one trace", "heddle trace dump X.htrace");
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(positional[0]));
  fmt::print("{}", trace::DumpText(trace));
  return Ok();
}

po::options_description ExtractOptions() {
  po::options_description options("options");
  options.add_options()("output,o", po::value<std::string>()->value_name("FOLDER"),
                        "where to write the files");
  return options;
}

Status WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush())
    return Error{ExitCode::kTrace, path.string(), "cannot be written",
                 "check the folder's permissions and its free space"};
  fmt::print("{}\n", path.string());
  return Ok();
}

std::string_view AsText(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Files are named by number: names inside a trace are not to be trusted with paths.
Status Extract(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1 || values.count("output") == 0)
    return Usage("heddle trace extract", "give one trace and a folder",
                 "heddle trace extract X.htrace -o FOLDER");
  HEDDLE_ASSIGN_OR_RETURN(const trace::Trace trace, trace::ReadTrace(positional[0]));
  const std::filesystem::path folder = values["output"].as<std::string>();
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  if (ec) return Error{ExitCode::kTrace, folder.string(), "cannot be made", "choose another folder"};
  for (size_t i = 0; i < trace.modules.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(
        WriteFile(folder / fmt::format("module_{}.cubin", i), AsText(trace.modules[i].cubin)));
  for (const trace::Sass& sass : trace.sass) {
    std::string text = fmt::format("// {}\n", sass.code.name);
    for (const isa::Instruction& instruction : sass.code.instructions)
      text += fmt::format("{:05x}  {}\n", instruction.pc, isa::ToString(instruction));
    HEDDLE_RETURN_IF_ERROR(WriteFile(folder / fmt::format("function_{}.sass", sass.function), text));
  }
  HEDDLE_ASSIGN_OR_RETURN(const trace::ResolvedTrace resolved, trace::Resolve(trace, trace::TypicalDevice()));
  for (size_t i = 0; i < resolved.launches.size(); ++i)
    HEDDLE_RETURN_IF_ERROR(
        WriteFile(folder / fmt::format("launch_{}.parameters", i), AsText(resolved.launches[i].parameters)));
  return Ok();
}

}  // namespace

Command TraceCommand() {
  return {"trace",
          "Build, inspect and verify traces (.htrace)",
          nullptr,
          "",
          nullptr,
          {
              {"build",
               "make a trace from a launch description",
               BuildOptionsTable,
               "X.launch.textproto",
               [](const po::variables_map& v, Arguments p) { return Finish(Build(v, p)); },
               {}},
              {"import",
               "make a trace from recorded instructions",
               ImportOptionsTable,
               "accel-sim FOLDER",
               [](const po::variables_map& v, Arguments p) { return Finish(Import(v, p)); },
               {}},
              {"from-profile",
               "make a trace for a profile from traces of the same kernels",
               FromProfileOptionsTable,
               "PROFILE",
               [](const po::variables_map& v, Arguments p) { return Finish(FromProfile(v, p)); },
               {}},
              {"info",
               "what a trace holds",
               InfoOptions,
               "TRACE",
               [](const po::variables_map& v, Arguments p) { return Finish(Info(v, p)); },
               {}},
              {"dump",
               "everything in a trace as text: equal traces, equal text",
               NoOptions,
               "TRACE",
               [](const po::variables_map& v, Arguments p) { return Finish(Dump(v, p)); },
               {}},
              {"verify",
               "run the launches in the emulator and check their output",
               VerifyOptions,
               "TRACE...",
               RunVerify,
               {}},
              {"streams",
               "compare what each thread of kernels/streams did on a GPU with the emulator",
               StreamsOptions,
               "TRACE",
               Streams,
               {}},
              {"recover",
               "make traces of the records that a capture left",
               RecoverOptions,
               "FOLDER",
               [](const po::variables_map& v, Arguments p) { return Finish(Recover(v, p)); },
               {}},
              {"plan",
               "which buffers steer the kernels of a captured trace, for --snapshot index",
               PlanOptions,
               "TRACE...",
               [](const po::variables_map& v, Arguments p) { return Finish(Plan(v, p)); },
               {}},
              {"rebuild",
               "let captured launches follow the machine: grids and parameters as expressions",
               RebuildOptions,
               "TRACE",
               [](const po::variables_map& v, Arguments p) { return Finish(Rebuild(v, p)); },
               {}},
              {"merge",
               "make one trace of those of several captured processes",
               MergeOptions,
               "TRACE...",
               [](const po::variables_map& v, Arguments p) { return Finish(Merge(v, p)); },
               {}},
              {"extract",
               "write cubins, SASS and parameters to a folder",
               ExtractOptions,
               "TRACE",
               [](const po::variables_map& v, Arguments p) { return Finish(Extract(v, p)); },
               {}},
          }};
}

}  // namespace heddle::tools
