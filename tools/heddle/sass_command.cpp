// `heddle sass FILE [--kernel K] [--json]`: the instructions of a cubin as heddle sees them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "sim/base/suggest.h"
#include "sim/isa/registers.h"
#include "tools/heddle/commands.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;

std::string_view EffectName(isa::Effect effect) {
  switch (effect) {
    case isa::Effect::kLocal:
      return "local";
    case isa::Effect::kMemory:
      return "memory";
    case isa::Effect::kControl:
      return "control";
    case isa::Effect::kSync:
      return "sync";
  }
  return "";
}

// Registers by name, in the order R, UR, P, UP, B.
std::vector<std::string> RegisterNames(const isa::RegisterSet& set) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view prefix, const auto& bits) {
    for (size_t i = 0; i < bits.size(); ++i)
      if (bits.test(i)) names.push_back(fmt::format("{}{}", prefix, i));
  };
  add("R", set.r);
  add("UR", set.ur);
  add("P", set.p);
  add("UP", set.up);
  add("B", set.b);
  return names;
}

// "R4-R7 R9 P0": runs of consecutive registers are joined.
std::string Ranges(const isa::RegisterSet& set) {
  std::string text;
  const auto add = [&text](std::string_view prefix, const auto& bits) {
    for (size_t i = 0; i < bits.size(); ++i) {
      if (!bits.test(i)) continue;
      size_t last = i;
      while (last + 1 < bits.size() && bits.test(last + 1)) ++last;
      if (!text.empty()) text += ' ';
      text += last == i ? fmt::format("{}{}", prefix, i) : fmt::format("{}{}-{}", prefix, i, last);
      i = last;
    }
  };
  add("R", set.r);
  add("UR", set.ur);
  add("P", set.p);
  add("UP", set.up);
  add("B", set.b);
  return text.empty() ? "-" : text;
}

// "B0--3-- R- W2 Y S05": wait mask, read and write barrier, yield, stall.
std::string ControlText(const isa::Control& control) {
  std::string wait;
  for (int i = 0; i < 6; ++i) wait += (control.wait_mask >> i & 1) != 0 ? static_cast<char>('0' + i) : '-';
  const auto barrier = [](uint8_t index) {
    return index == isa::kNoBarrier ? '-' : static_cast<char>('0' + index);
  };
  return fmt::format("B{} R{} W{} {} S{:02}", wait, barrier(control.read_barrier),
                     barrier(control.write_barrier), control.yield ? 'Y' : '-', control.stall);
}

ordered_json InstructionJson(const isa::Instruction& instruction) {
  const isa::RegisterUse use = isa::RegistersOf(instruction);
  const isa::Control& control = instruction.control;
  ordered_json wait = ordered_json::array();
  for (int i = 0; i < 6; ++i)
    if ((control.wait_mask >> i & 1) != 0) wait.push_back(i);
  const auto barrier = [](uint8_t index) {
    return index == isa::kNoBarrier ? ordered_json() : ordered_json(index);
  };
  return {{"pc", instruction.pc},
          {"text", isa::ToString(instruction)},
          {"opcode", isa::Name(instruction.op)},
          {"pipe", isa::Name(isa::PipeOf(instruction.op))},
          {"effect", EffectName(isa::EffectOf(instruction))},
          {"reads", RegisterNames(use.reads)},
          {"writes", RegisterNames(use.writes)},
          {"stall", control.stall},
          {"yield", control.yield},
          {"write_barrier", barrier(control.write_barrier)},
          {"read_barrier", barrier(control.read_barrier)},
          {"wait", wait},
          {"reuse", control.reuse},
          {"encoding", fmt::format("{:016x}{:016x}", instruction.encoding[1], instruction.encoding[0])}};
}

ordered_json DimensionsJson(const std::optional<Dim3>& dims) {
  return dims ? ordered_json{dims->x, dims->y, dims->z} : ordered_json();
}

ordered_json KernelJson(const sass::CubinKernel& kernel, const isa::KernelCode& code) {
  ordered_json params = ordered_json::array();
  for (const auto& param : kernel.params)
    params.push_back(
        {{"ordinal", param.ordinal}, {"offset", param.offset}, {"size_bytes", param.size_bytes}});
  ordered_json functions = ordered_json::array();
  for (const auto& function : kernel.functions)
    functions.push_back(
        {{"name", function.name}, {"offset", function.offset}, {"size_bytes", function.size_bytes}});
  ordered_json instructions = ordered_json::array();
  for (const isa::Instruction& instruction : code.instructions)
    instructions.push_back(InstructionJson(instruction));
  return {{"name", kernel.name},
          {"registers", kernel.registers},
          {"static_shared_bytes", kernel.static_shared_bytes},
          {"local_bytes", kernel.local_bytes},
          {"barriers", kernel.barriers},
          {"param_base", kernel.param_base},
          {"param_bytes", kernel.param_bytes},
          {"params", params},
          {"required_block", DimensionsJson(kernel.required_block)},
          {"max_block", DimensionsJson(kernel.max_block)},
          {"cluster", DimensionsJson(kernel.cluster)},
          {"functions", functions},
          {"instructions", instructions}};
}

void PrintKernel(const sass::CubinKernel& kernel, const isa::KernelCode& code) {
  fmt::print("{}\n", kernel.name);
  fmt::print(
      "  sm_{}, {} registers, {} B static shared, {} B local, {} barriers, parameters {} B at "
      "c[0x0][{:#x}]\n",
      code.sm_version, kernel.registers, kernel.static_shared_bytes, kernel.local_bytes, kernel.barriers,
      kernel.param_bytes, kernel.param_base);
  size_t function = 0;
  for (const isa::Instruction& instruction : code.instructions) {
    for (; function < kernel.functions.size() && kernel.functions[function].offset <= instruction.pc;
         ++function)
      fmt::print("{}:\n", kernel.functions[function].name);
    const isa::RegisterUse use = isa::RegistersOf(instruction);
    fmt::print("  {:05x}  {}  {:<8}{:<8} {:<64} reads {}; writes {}\n", instruction.pc,
               ControlText(instruction.control), isa::Name(isa::PipeOf(instruction.op)),
               EffectName(isa::EffectOf(instruction)), isa::ToString(instruction), Ranges(use.reads),
               Ranges(use.writes));
  }
}

Status List(const std::string& path, const std::string& only, bool as_json) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, sass::ReadFileBytes(path));
  HEDDLE_ASSIGN_OR_RETURN(const sass::Cubin cubin, sass::ReadCubin(bytes, path));
  HEDDLE_ASSIGN_OR_RETURN(const std::string nvdisasm, sass::FindDisassembler());
  HEDDLE_ASSIGN_OR_RETURN(const std::string listing, sass::RunDisassembler(nvdisasm, {"-json"}, bytes, path));
  std::vector<std::string> names;
  ordered_json kernels = ordered_json::array();
  for (const sass::CubinKernel& kernel : cubin.kernels) {
    names.push_back(kernel.name);
    if (!only.empty() && kernel.name != only) continue;
    HEDDLE_ASSIGN_OR_RETURN(const isa::KernelCode code,
                            sass::DecodeListing(listing, kernel, cubin.sm_version, path));
    if (as_json)
      kernels.push_back(KernelJson(kernel, code));
    else
      PrintKernel(kernel, code);
    if (kernel.name == only) break;
  }
  if (!only.empty() && cubin.FindKernel(only) == nullptr) {
    const std::string near = Suggest(only, names);
    return Error{ExitCode::kUsage, path, fmt::format("no kernel named {}", only),
                 near.empty() ? fmt::format("it has: {}", fmt::join(names, ", "))
                              : fmt::format("did you mean {}?", near)};
  }
  if (as_json) {
    const ordered_json document = {{"file", path},
                                   {"sm_version", cubin.sm_version},
                                   {"accelerated", cubin.accelerated},
                                   {"kernels", kernels}};
    fmt::print("{}\n", document.dump(2));
  }
  return Ok();
}

po::options_description Options() {
  po::options_description options("options");
  options.add_options()("kernel", po::value<std::string>()->value_name("NAME")->default_value(""),
                        "only this kernel (mangled name)");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

ExitCode RunSass(const po::variables_map& values, Arguments positional) {
  if (positional.size() != 1)
    return Report({ExitCode::kUsage, "heddle sass", "give one cubin", "heddle sass FILE"});
  const Status status = List(positional[0], values["kernel"].as<std::string>(), values["json"].as<bool>());
  return status.ok() ? ExitCode::kOk : Report(status.error());
}

}  // namespace

Command SassCommand() {
  return {"sass", "List the instructions of a cubin: control bits, registers, pipe", Options, "FILE", RunSass,
          {}};
}

}  // namespace heddle::tools
