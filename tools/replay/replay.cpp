#include "tools/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/functional_runner.h"
#include "frontend/emulator/launch_program.h"
#include "frontend/emulator/loaded_module.h"
#include "frontend/emulator/slice_choice.h"
#include "frontend/import/recorded_launch.h"
#include "frontend/sass/cubin.h"
#include "frontend/sass/decoder.h"
#include "frontend/sass/disassembler.h"
#include "sim/base/check.h"
#include "tools/replay/work_probe.h"

namespace heddle::replay {
namespace {

// A buffer whose start content covers all of it is filled page by page when it is touched; otherwise ranges are
// written one by one and what they leave out stays unknown.
bool CoversAll(const trace::ResolvedContent& content, const trace::ResolvedBuffer& buffer) {
  return content.offset_bytes == 0 && content.size_bytes >= buffer.size_bytes;
}

}  // namespace

trace::Symbols DeviceSymbols(const config::Gpu& gpu) {
  return {
      {"sm_count", gpu.sm.count},
      {"l2_bytes", static_cast<int64_t>(gpu.l2.size_bytes)},
      {"registers_per_sm", gpu.sm.registers},
      {"shared_bytes_per_sm", gpu.sm.shared_memory.capacities_bytes.back()},
      {"shared_bytes_per_cta", gpu.sm.shared_memory.max_per_cta_bytes},
      {"warps_per_sm", gpu.sm.max_warps},
      {"ctas_per_sm", gpu.sm.max_ctas},
      {"memory_bytes", static_cast<int64_t>(gpu.dram.size_bytes)},
  };
}

struct Replay::State {
  const trace::Trace* trace = nullptr;
  Options options;
  emulator::MachineFacts machine;
  trace::ResolvedTrace resolved;
  emulator::DeviceMemory memory;
  std::vector<std::unique_ptr<emulator::LoadedModule>> modules;           // as in the trace; null: recorded
  std::vector<std::shared_ptr<const isa::KernelCode>> codes;              // by function
  std::map<uint32_t, std::shared_ptr<const emulator::Program>> programs;  // lowered, by function
  std::map<uint32_t, emulator::SliceChoice> slices;                       // of skeleton mode, by function
  std::vector<std::unique_ptr<emulator::EmulatedLaunch>> launches;
  std::vector<std::unique_ptr<importer::RecordedLaunch>> recorded;  // likewise by launch; the other is null
  std::map<uint32_t, bool> steered;                                 // IsSteeredByMemory, by function
  bool any_unknown = false;
  uint32_t placed = 0;  // the contents before this launch and those in front of it are seen to
  // With PlaceContentsAtStart(): memory as the contents that were seen to make it, for what looks at a launch before it runs. Null until
  // it differs.
  bool contents_at_start = false;
  std::unique_ptr<emulator::DeviceMemory> ahead;
  std::map<uint32_t, uint32_t>
      at_start;  // launch -> the first of the launches whose contents are placed when it starts
  std::vector<const trace::ResolvedContent*> whole;  // by buffer; nullptr: none

  bool IsRecorded(uint32_t function) const {
    return trace->modules[trace->functions[function].module].recorded();
  }
  bool AllRecorded() const {
    return std::all_of(resolved.launches.begin(), resolved.launches.end(),
                       [this](const auto& launch) { return IsRecorded(launch.function); });
  }
  Status LoadModules();
  Status LoadCode(uint32_t function);
  void ChooseWhole();
  Status PlaceBuffers();
  Status WriteContents(uint32_t before_launch, emulator::DeviceMemory* to) const;
  // Of the launches that come after `placed`, up to this one: those that are left out leave their contents to it.
  Status PlaceContents(uint32_t launch);
  bool IsSteeredByMemory(uint32_t function);
  bool MaySteerLater(uint32_t function);
};

// Whether values from global memory decide branches or addresses of the kernel.
bool Replay::State::IsSteeredByMemory(uint32_t function) {
  const auto [known, is_new] = steered.try_emplace(function, false);
  if (!is_new) return known->second;
  if (IsRecorded(function)) return false;
  const trace::Function& wanted = trace->functions[function];
  const sass::CubinKernel* kernel = modules[wanted.module]->cubin().FindKernel(wanted.name);
  if (kernel == nullptr) return false;
  const isa::KernelCode& code = *codes[function];
  const emulator::Slice slice = emulator::ComputeSlice(code, *kernel, emulator::SliceKind::kSound);
  for (size_t i = 0; i < code.instructions.size(); ++i) {
    const isa::Op op = code.instructions[i].op;
    const bool loads =
        op == isa::Op::kLDG || op == isa::Op::kLD || op == isa::Op::kATOMG || op == isa::Op::kATOM;
    if (loads && (slice.needed.empty() || slice.needed[i])) known->second = true;
  }
  return known->second;
}

// Whether what the kernel stores may decide the way of a kernel that follows it: then it must store real values. (A
// kernel that steers its own next launch is told by the issue "skipped_data".)
bool Replay::State::MaySteerLater(uint32_t function) {
  bool seen = false;
  for (const trace::ResolvedLaunch& launch : resolved.launches) {
    if (launch.function == function) {
      seen = true;
    } else if (seen && IsSteeredByMemory(launch.function)) {
      return true;
    }
  }
  return false;
}

Status Replay::State::LoadModules() {
  for (const trace::Module& module : trace->modules) {
    if (module.recorded()) {
      modules.push_back(nullptr);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(sass::Cubin cubin, sass::ReadCubin(module.cubin, module.name));
    HEDDLE_ASSIGN_OR_RETURN(auto loaded, emulator::LoadedModule::Load(std::move(cubin), memory));
    modules.push_back(std::move(loaded));
  }
  codes.resize(trace->functions.size());
  for (const trace::Sass& sass : trace->sass) {
    if (sass.decoder_version == sass::kDecoderVersion || IsRecorded(sass.function)) {
      codes[sass.function] = std::make_shared<const isa::KernelCode>(sass.code);
    }
  }
  return Ok();
}

// The trace's own listing is used unless an older decoder made it.
Status Replay::State::LoadCode(uint32_t function) {
  if (codes[function] != nullptr) return Ok();
  const trace::Function& wanted = trace->functions[function];
  if (IsRecorded(function)) {
    return Error{ExitCode::kTrace, trace->name,
                 fmt::format("holds neither a cubin nor the code of '{}'", wanted.name),
                 "import the trace again"};
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::string nvdisasm, sass::FindDisassembler());
  HEDDLE_ASSIGN_OR_RETURN(isa::KernelCode code,
                          sass::DecodeKernel(trace->modules[wanted.module].cubin,
                                             modules[wanted.module]->cubin(), wanted.name, nvdisasm));
  codes[function] = std::make_shared<const isa::KernelCode>(std::move(code));
  return Ok();
}

// What a buffer holds from the start, made page by page when it is touched: the last content before the first launch that covers all of
// it, unless a copy needs what was there before.
void Replay::State::ChooseWhole() {
  whole.assign(resolved.buffers.size(), nullptr);
  std::vector<bool> is_copied(resolved.buffers.size(), false);
  for (const trace::ResolvedContent& content : resolved.contents) {
    if (content.before_launch != 0) continue;
    if (content.copied_from) {
      for (size_t i = 0; i < resolved.buffers.size(); ++i)
        if (*content.copied_from - resolved.buffers[i].address < resolved.buffers[i].size_bytes)
          is_copied[i] = true;
    } else if (CoversAll(content, resolved.buffers[content.buffer]) && !is_copied[content.buffer]) {
      whole[content.buffer] = &content;
    }
  }
}

Status Replay::State::PlaceBuffers() {
  ChooseWhole();
  for (const trace::ResolvedContent& content : resolved.contents)
    any_unknown |= content.source == nullptr && !content.copied_from;
  for (size_t i = 0; i < resolved.buffers.size(); ++i) {
    const trace::ResolvedBuffer& buffer = resolved.buffers[i];
    emulator::BufferSpec spec;
    spec.name = buffer.name;
    spec.size_bytes = buffer.size_bytes;
    spec.address = buffer.address;
    spec.known = whole[i] != nullptr && whole[i]->source != nullptr;
    if (spec.known) {
      spec.fill = [source = whole[i]->source](uint64_t offset, std::span<std::byte> out) {
        source->Fill(offset, out);
      };
    }
    any_unknown |= !spec.known;
    HEDDLE_ASSIGN_OR_RETURN(const uint64_t address, memory.Allocate(std::move(spec)));
    (void)address;
  }
  return Ok();
}

Status Replay::State::WriteContents(uint32_t before_launch, emulator::DeviceMemory* to) const {
  std::vector<std::byte> bytes;
  for (const trace::ResolvedContent& content : resolved.contents) {
    const trace::ResolvedBuffer& buffer = resolved.buffers[content.buffer];
    if (content.before_launch != before_launch) continue;
    // Covered by what the buffer holds from the start, or that itself.
    if (before_launch == 0 && whole[content.buffer] != nullptr && &content <= whole[content.buffer]) continue;
    const uint64_t address = buffer.address + content.offset_bytes;
    if (content.copied_from) {
      HEDDLE_RETURN_IF_ERROR(to->Copy(address, *content.copied_from, content.size_bytes));
      continue;
    }
    if (content.source == nullptr) {
      HEDDLE_RETURN_IF_ERROR(to->Forget(address, content.size_bytes));
      continue;
    }
    bytes.resize(content.size_bytes);
    content.source->Fill(0, bytes);
    HEDDLE_RETURN_IF_ERROR(to->Write(address, bytes));
  }
  return Ok();
}

Status Replay::State::PlaceContents(uint32_t launch) {
  const uint32_t first = placed + 1;
  placed = std::max(placed, launch);
  const bool any = std::any_of(resolved.contents.begin(), resolved.contents.end(), [&](const auto& content) {
    return content.before_launch >= first && content.before_launch <= launch;
  });
  if (!any) return Ok();
  if (contents_at_start && ahead == nullptr) ahead = memory.Clone();
  for (uint32_t i = first; i <= launch; ++i)
    HEDDLE_RETURN_IF_ERROR(WriteContents(i, contents_at_start ? ahead.get() : &memory));
  if (contents_at_start) at_start[launch] = first;
  return Ok();
}

Replay::Replay(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replay::~Replay() = default;

Result<std::unique_ptr<Replay>> Replay::Open(const trace::Trace& trace, const config::Gpu& gpu,
                                             const Options& options) {
  auto state = std::make_unique<State>();
  state->trace = &trace;
  state->options = options;
  state->machine = {gpu.sm.count, gpu.sm.max_warps, gpu.clocks.sm_mhz * 1e6,
                    gpu.sm.shared_memory.reserved_per_cta_bytes};
  HEDDLE_ASSIGN_OR_RETURN(state->resolved, trace::Resolve(trace, DeviceSymbols(gpu), options.defines));
  // Recorded launches read no memory: what was copied to the device in their process need not fit here.
  if (!state->AllRecorded()) HEDDLE_RETURN_IF_ERROR(state->PlaceBuffers());
  HEDDLE_RETURN_IF_ERROR(state->LoadModules());
  for (const trace::ResolvedLaunch& launch : state->resolved.launches) {
    HEDDLE_RETURN_IF_ERROR(state->LoadCode(launch.function));
  }
  if (!state->AllRecorded()) HEDDLE_RETURN_IF_ERROR(state->WriteContents(0, &state->memory));
  state->recorded.resize(state->resolved.launches.size());
  state->launches.resize(state->resolved.launches.size());
  return std::unique_ptr<Replay>(new Replay(std::move(state)));
}

void Replay::PlaceContentsAtStart() { state_->contents_at_start = true; }

uint32_t Replay::launch_count() const { return static_cast<uint32_t>(state_->launches.size()); }
const trace::ResolvedTrace& Replay::resolved() const { return state_->resolved; }

const isa::KernelCode& Replay::code(uint32_t launch) const {
  return *state_->codes[state_->resolved.launches[launch].function];
}

emulator::DeviceMemory& Replay::memory() { return state_->memory; }

Result<emulator::EmulatedLaunch*> Replay::PrepareEmulated(uint32_t index) {
  State& state = *state_;
  if (state.launches[index] != nullptr) return state.launches[index].get();
  if (recorded(index)) {
    return Error{ExitCode::kTrace, fmt::format("{} launch {}", state.trace->name, index),
                 "was recorded and cannot be executed", "give a trace that was built from a cubin"};
  }
  HEDDLE_RETURN_IF_ERROR(state.PlaceContents(index));
  const trace::ResolvedLaunch& launch = state.resolved.launches[index];
  const trace::Function& function = state.trace->functions[launch.function];
  const emulator::LoadedModule& module = *state.modules[function.module];

  emulator::LaunchDescription description;
  description.module = &module;
  description.kernel = module.cubin().FindKernel(function.name);
  if (description.kernel == nullptr) {
    return Error{ExitCode::kTrace, state.trace->modules[function.module].name,
                 fmt::format("holds no kernel '{}'", function.name), "build the trace again"};
  }
  description.code = state.codes[launch.function];
  description.grid = launch.grid;
  description.block = launch.block;
  if (launch.cluster.Count() != 1) description.cluster = launch.cluster;
  description.programmatic = launch.programmatic;
  description.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  description.parameters = launch.parameters;
  description.mode = state.options.mode == Mode::kFull ? emulator::Mode::kFull : emulator::Mode::kSkeleton;
  description.track_unknown = state.any_unknown;
  description.machine = state.machine;
  description.program = state.programs[launch.function];
  if (state.options.mode != Mode::kFull) {
    // Chosen on the first launch of a kernel, against its own contents, and kept for the others.
    auto [choice, is_new] = state.slices.try_emplace(launch.function);
    if (is_new && state.MaySteerLater(launch.function)) {
      choice->second = {std::make_shared<const emulator::Slice>(), "its stores may steer a later launch"};
    } else if (is_new) {
      description.memory = state.ahead.get();
      HEDDLE_ASSIGN_OR_RETURN(choice->second, emulator::ChooseSlice(description));
      description.memory = nullptr;
    }
    description.slice = choice->second.slice;
  }
  HEDDLE_ASSIGN_OR_RETURN(state.launches[index], emulator::EmulatedLaunch::Create(std::move(description)));
  state.programs[launch.function] = state.launches[index]->program();
  if (const auto found = state.at_start.find(index); found != state.at_start.end()) {
    state.launches[index]->BeforeFirstCta([&state, index, first = found->second] {
      for (uint32_t i = first; i <= index; ++i) {
        const Status status = state.WriteContents(i, &state.memory);
        HEDDLE_CHECK(status.ok(), "replay", index,
                     "contents left their buffers");  // Resolve() has checked them
      }
    });
  }
  return state.launches[index].get();
}

Result<isa::LaunchProgram*> Replay::Prepare(uint32_t launch) {
  if (recorded(launch)) {
    std::unique_ptr<importer::RecordedLaunch>& open = state_->recorded[launch];
    if (open == nullptr) {
      HEDDLE_ASSIGN_OR_RETURN(
          open, importer::RecordedLaunch::Open(*state_->trace, state_->resolved.launches[launch], launch));
    }
    return static_cast<isa::LaunchProgram*>(open.get());
  }
  HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * emulated, PrepareEmulated(launch));
  return static_cast<isa::LaunchProgram*>(emulated);
}

bool Replay::recorded(uint32_t launch) const {
  return state_->IsRecorded(state_->resolved.launches[launch].function);
}

std::vector<isa::StreamIssue> Replay::notes(uint32_t launch) const {
  const importer::RecordedLaunch* open = state_->recorded[launch].get();
  if (open == nullptr) return {};
  std::vector<isa::StreamIssue> notes{{"recorded",
                                       "no control bits: registers go through a scoreboard; predicates, "
                                       "uniform registers and constants are not in "
                                       "the recording",
                                       open->recording().warp_instructions}};
  for (const trace::RecordingNote& note : open->recording().notes)
    notes.push_back({note.kind, note.detail, note.count});
  return notes;
}

std::string Replay::execution(uint32_t launch) const {
  if (recorded(launch)) return "recorded";
  const auto choice = state_->slices.find(state_->resolved.launches[launch].function);
  return choice == state_->slices.end() ? "full" : std::string(emulator::Name(choice->second.slice->kind));
}

Result<std::optional<gpu::SamplingRequest>> Replay::Sampling(uint32_t launch) const {
  constexpr uint64_t kLeastCtasPerSm = 8;  // of a grid that is worth it
  State& state = *state_;
  using Request = std::optional<gpu::SamplingRequest>;
  if (state.options.mode != Mode::kSampled) return Request();
  if (recorded(launch))
    return Request({1, "it was recorded instruction by instruction: what its CTAs do is not compared"});
  if (state.MaySteerLater(state.resolved.launches[launch].function))
    return Request({1, "what it stores may steer a later launch"});
  const emulator::EmulatedLaunch& emulated = *state.launches[launch];
  if (emulated.shape().grid.Count() < kLeastCtasPerSm * state.machine.sm_count) return Request({1, ""});
  HEDDLE_ASSIGN_OR_RETURN(gpu::SamplingRequest request,
                          ProbeWork(emulated, state.ahead != nullptr ? *state.ahead : state.memory));
  return Request(std::move(request));
}

std::string Replay::Likeness(uint32_t index) const {
  State& state = *state_;
  const trace::ResolvedLaunch& launch = state.resolved.launches[index];
  if (recorded(index) || state.IsSteeredByMemory(launch.function) || state.MaySteerLater(launch.function))
    return "";
  std::string text = fmt::format("{}", launch.function);
  for (const Dim3& dim : {launch.grid, launch.block, launch.cluster})
    text += fmt::format(" {} {} {}", dim.x, dim.y, dim.z);
  text += fmt::format(" {}", launch.dynamic_shared_bytes);
  std::vector<size_t> seen;  // buffers, in the order in which parameters name them
  for (size_t offset = 0; offset < launch.parameters.size(); offset += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, &launch.parameters[offset], std::min(sizeof word, launch.parameters.size() - offset));
    const auto buffer = std::find_if(
        state.resolved.buffers.begin(), state.resolved.buffers.end(),
        [word](const auto& each) { return word >= each.address && word - each.address < each.size_bytes; });
    if (buffer == state.resolved.buffers.end()) {
      text += fmt::format(" {}", word);
      continue;
    }
    const auto number = static_cast<size_t>(buffer - state.resolved.buffers.begin());
    const auto known = std::find(seen.begin(), seen.end(), number);
    text += fmt::format(" buffer {} of {} + {}", known - seen.begin(), buffer->size_bytes,
                        word - buffer->address);
    if (known == seen.end()) seen.push_back(number);
  }
  return text;
}

void Replay::Close(uint32_t launch) {
  state_->launches[launch].reset();
  state_->recorded[launch].reset();
}

Status Replay::ExecuteFunctionally(uint32_t launch) {
  if (recorded(launch)) return Ok();
  HEDDLE_ASSIGN_OR_RETURN(emulator::EmulatedLaunch * emulated, PrepareEmulated(launch));
  emulator::RunnerOptions options;
  options.sms = state_->machine.sm_count;
  HEDDLE_ASSIGN_OR_RETURN(const emulator::RunSummary summary, emulator::RunFunctionally(*emulated, options));
  (void)summary;
  Close(launch);
  return Ok();
}

}  // namespace heddle::replay
