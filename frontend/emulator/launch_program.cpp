#include "frontend/emulator/launch_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontend/emulator/access.h"
#include "frontend/emulator/constant_bank0.h"
#include "frontend/emulator/emulated_warps.h"
#include "sim/isa/launch_limits.h"

namespace heddle::emulator {
namespace {

constexpr uint32_t kMaxThreadsPerCta = 1024;
constexpr uint32_t kStackWithCallsBytes = 1024;  // cudaLimitStackSize unless the program changes it
constexpr uint64_t kWarpsPerSmReserved = 64;

bool Calls(const isa::KernelCode& code) {
  return std::any_of(code.instructions.begin(), code.instructions.end(),
                     [](const isa::Instruction& i) { return i.op == isa::Op::kCALL; });
}

bool UsesLocalMemory(const isa::KernelCode& code) {
  return std::any_of(code.instructions.begin(), code.instructions.end(), [](const isa::Instruction& i) {
    return i.op == isa::Op::kLDL || i.op == isa::Op::kSTL;
  });
}

// Memory operations outside the slice yield addresses and move no data; assumed branches go the assumed way.
void SkipData(const Slice& slice, Program& program) {
  for (uint32_t i = 0; i < program.size(); ++i)
    if (program.effects[i] == isa::Effect::kMemory && !slice.needed[i] && program.steps[i].run != &RunNothing)
      program.steps[i].flags |= kDataSkipped;
  for (const Slice::AssumedBranch& branch : slice.assumed) {
    program.steps[branch.index].guard = kTruePredicate;
    program.steps[branch.index].guard_flip = branch.taken ? 0 : kAllLanes;
  }
}

}  // namespace

Result<std::unique_ptr<EmulatedLaunch>> EmulatedLaunch::Create(LaunchDescription description) {
  std::unique_ptr<EmulatedLaunch> launch(new EmulatedLaunch(std::move(description)));
  HEDDLE_RETURN_IF_ERROR(launch->Check());
  HEDDLE_RETURN_IF_ERROR(launch->Prepare());
  return launch;
}

EmulatedLaunch::~EmulatedLaunch() {
  for (const uint64_t address : allocated_) memory().Free(address);
}

Status EmulatedLaunch::Check() const {
  const LaunchDescription& d = description_;
  const auto fail = [&](std::string message, std::string next_step = "") {
    return Error{ExitCode::kTrace, "launch of " + d.kernel->name, std::move(message), std::move(next_step)};
  };
  if (d.grid.Count() == 0 || d.block.Count() == 0) return fail("the grid or the block is empty");
  if (d.block.x > kMaxThreadsPerCta || d.block.y > kMaxThreadsPerCta || d.block.z > kMaxThreadsPerCta ||
      d.block.Count() > kMaxThreadsPerCta)
    return fail(fmt::format("a block of {} x {} x {} threads", d.block.x, d.block.y, d.block.z),
                "a block has at most 1024 threads");
  if (d.kernel->required_block && !(*d.kernel->required_block == d.block))
    return fail(fmt::format("the kernel was compiled for blocks of {} x {} x {} threads",
                            d.kernel->required_block->x, d.kernel->required_block->y,
                            d.kernel->required_block->z));
  if (d.parameters.size() != d.kernel->param_bytes)
    return fail(fmt::format("{} bytes of parameters, the kernel takes {}", d.parameters.size(),
                            d.kernel->param_bytes));
  if (d.code->instructions.empty() ||
      d.kernel->entry_offset / isa::kInstructionBytes >= d.code->instructions.size())
    return fail("the kernel has no code");
  if (d.slice != nullptr && !d.slice->needed.empty() && d.slice->needed.size() != d.code->instructions.size())
    return fail("the slice belongs to other code");
  const Dim3 cluster = d.cluster.value_or(d.kernel->cluster.value_or(Dim3{}));
  if (cluster.Count() == 0 || d.grid.x % cluster.x || d.grid.y % cluster.y || d.grid.z % cluster.z)
    return fail("the grid is no multiple of the cluster");
  return Ok();
}

Status EmulatedLaunch::Prepare() {
  const LaunchDescription& d = description_;
  const sass::CubinKernel& kernel = *d.kernel;
  shape_.grid = d.grid;
  shape_.block = d.block;
  shape_.programmatic_start = d.programmatic;
  shape_.cluster = d.cluster.value_or(kernel.cluster.value_or(Dim3{}));
  shape_.registers_per_thread = kernel.registers;
  const bool counts_reserved = d.module->cubin().sm_version >= 90 && kernel.static_shared_bytes != 0;
  const uint32_t addressable_bytes = kernel.static_shared_bytes + d.dynamic_shared_bytes;
  shape_.shared_bytes_per_cta = addressable_bytes - (counts_reserved ? isa::kReservedSharedBytes : 0) +
                                d.machine.reserved_shared_bytes_per_cta;
  shape_.barriers_per_cta = kernel.barriers;
  shape_.code_address = d.module->CodeAddress(kernel);

  context_.grid = d.grid;
  context_.block = d.block;
  context_.cluster = shape_.cluster;
  context_.sm_version = d.module->cubin().sm_version;
  context_.sm_count = d.machine.sm_count;
  context_.warps_per_sm = d.machine.warps_per_sm;
  context_.code_address = shape_.code_address;
  context_.nanoseconds_per_cycle = 1e9 / d.machine.sm_clock_hz;
  context_.shared_window_high = kSharedWindowHigh;
  context_.shared_bytes = addressable_bytes;
  context_.dynamic_shared_bytes = d.dynamic_shared_bytes;

  LowerProgram();
  HEDDLE_RETURN_IF_ERROR(PlaceLocalMemory());
  HEDDLE_RETURN_IF_ERROR(PlaceBanks());
  pool_ = std::make_unique<ConstantPool>(program_->pool(), context_.banks);
  return Ok();
}

void EmulatedLaunch::LowerProgram() {
  if (description_.program != nullptr) {
    program_ = description_.program;
    return;
  }
  const bool sliced = description_.mode == Mode::kSkeleton && description_.slice != nullptr &&
                      description_.slice->kind != SliceKind::kFull;
  auto program = sliced ? std::make_shared<Program>(*description_.code, description_.slice->needed)
                        : std::make_shared<Program>(*description_.code);
  if (sliced) SkipData(*description_.slice, *program);
  program_ = std::move(program);
}

Status EmulatedLaunch::PlaceLocalMemory() {
  const LaunchDescription& d = description_;
  if (d.kernel->local_bytes == 0 && !UsesLocalMemory(*d.code)) return Ok();
  const uint32_t bytes =
      Calls(*d.code) ? std::max(d.kernel->local_bytes, kStackWithCallsBytes) : d.kernel->local_bytes;
  local_bytes_per_lane_ = CeilDiv(std::max(bytes, 16u), 16u) * 16;
  const uint64_t total =
      uint64_t{d.machine.sm_count} * kWarpsPerSmReserved * kWarpLanes * local_bytes_per_lane_;
  HEDDLE_ASSIGN_OR_RETURN(local_base_, memory().Allocate({.name = "local memory", .size_bytes = total}));
  allocated_.push_back(local_base_);
  return Ok();
}

uint64_t EmulatedLaunch::LocalAddress(uint32_t sm, uint32_t warp_of_sm) const {
  return local_base_ + (uint64_t{sm} * kWarpsPerSmReserved + warp_of_sm) * kWarpLanes * local_bytes_per_lane_;
}

uint32_t EmulatedLaunch::entry() const { return description_.kernel->entry_offset / isa::kInstructionBytes; }

Status EmulatedLaunch::PlaceBanks() {
  const LaunchDescription& d = description_;
  Bank0Contents contents;
  contents.sm_version = context_.sm_version;
  contents.size_bytes = d.kernel->constant0_bytes;
  contents.param_base = d.kernel->param_base;
  contents.grid = d.grid;
  contents.block = d.block;
  contents.cluster = shape_.cluster;
  contents.is_cluster_launch = shape_.cluster.Count() > 1 || d.kernel->explicit_cluster;
  contents.stack_pointer = local_bytes_per_lane_;
  contents.shared_bytes = context_.shared_bytes;
  contents.shared_window = uint64_t{kSharedWindowHigh} << 32;
  contents.local_window = uint64_t{kLocalWindowHigh} << 32;
  contents.parameters = d.parameters;
  banks_[0] = MakeBank0(contents);  // for its size

  const auto copy = [](const std::vector<std::byte>& from, std::vector<uint8_t>& to) {
    to.resize(from.size());
    if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
  };
  copy(d.module->Constant2(*d.kernel), banks_[2]);
  copy(d.module->constant3(), banks_[3]);
  copy(d.module->constant4(), banks_[4]);
  for (uint32_t bank = 0; bank < kConstantBanks; ++bank) {
    if (banks_[bank].empty()) continue;
    HEDDLE_ASSIGN_OR_RETURN(shape_.constant_bank_address[bank],
                            memory().Allocate({.name = fmt::format("constant bank {}", bank),
                                               .size_bytes = banks_[bank].size()}));
    allocated_.push_back(shape_.constant_bank_address[bank]);
    if (bank == 0) {
      contents.address = shape_.constant_bank_address[0];
      banks_[0] = MakeBank0(contents);
    }
    HEDDLE_RETURN_IF_ERROR(
        memory().Write(shape_.constant_bank_address[bank], std::as_bytes(std::span(banks_[bank]))));
    context_.banks[bank] = banks_[bank];
  }
  return Ok();
}

std::unique_ptr<isa::WarpStream> EmulatedLaunch::OpenOnSm(uint32_t sm) {
  if (before_first_cta_) std::exchange(before_first_cta_, nullptr)();
  auto& log = issues_[sm];
  if (log == nullptr) log = std::make_shared<IssueLog>();
  return std::make_unique<EmulatedWarps>(*this, sm, log);
}

std::vector<isa::StreamIssue> EmulatedLaunch::Issues() const {
  IssueLog merged;
  for (const auto& [sm, log] : issues_) merged.Merge(*log);
  return merged.Issues(code());
}

}  // namespace heddle::emulator
