// A launch of one kernel, executed by the emulator: the other side of sim/isa/warp_stream.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/emulator/device_memory.h"
#include "frontend/emulator/issue_log.h"
#include "frontend/emulator/launch_context.h"
#include "frontend/emulator/loaded_module.h"
#include "frontend/emulator/program.h"
#include "frontend/emulator/slice.h"
#include "sim/base/result.h"
#include "sim/isa/warp_stream.h"

namespace heddle::emulator {

enum class Mode : uint8_t {
  kFull,      // computes everything: outputs can be checked
  kSkeleton,  // computes only what steers branches, addresses and barriers: the same stream, faster
};

// Facts of the machine that a kernel can ask for.
struct MachineFacts {
  uint32_t sm_count = 108;
  uint32_t warps_per_sm = 64;
  double sm_clock_hz = 1.41e9;
  uint32_t reserved_shared_bytes_per_cta = 1024;
};

struct LaunchDescription {
  const LoadedModule* module = nullptr;
  const sass::CubinKernel* kernel = nullptr;    // of the module's cubin
  std::shared_ptr<const isa::KernelCode> code;  // decoded from it
  Dim3 grid;
  Dim3 block;
  std::optional<Dim3> cluster;
  uint32_t dynamic_shared_bytes = 0;
  bool programmatic = false;          // may start when the launch before it in its stream has triggered
  std::vector<std::byte> parameters;  // from offset 0 behind the kernel's param_base
  DeviceMemory* memory = nullptr;     // a clone of the module's memory to run in; null: that itself
  Mode mode = Mode::kFull;
  bool track_unknown = false;  // follow values of unknown contents to branches and addresses
  MachineFacts machine;
  std::shared_ptr<const Slice> slice;  // what skeleton mode executes (slice.h); null in full mode
  // The kernel lowered before, by an earlier launch with the same mode; may be null.
  std::shared_ptr<const Program> program;
  // Stores are visible to everyone at once instead of at PublishStores(): for runs without a timing model.
  // RunFunctionally does so whatever this says.
  bool immediate_stores = false;
};

class EmulatedLaunch final : public isa::LaunchProgram {
 public:
  // Errors (kTrace): dimensions or parameters that the kernel cannot have.
  static Result<std::unique_ptr<EmulatedLaunch>> Create(LaunchDescription description);
  ~EmulatedLaunch() override;
  EmulatedLaunch(const EmulatedLaunch&) = delete;
  EmulatedLaunch& operator=(const EmulatedLaunch&) = delete;

  const isa::KernelCode& code() const override { return *description_.code; }
  const isa::LaunchShape& shape() const override { return shape_; }
  DeviceMemory& memory() override {
    return description_.memory != nullptr ? *description_.memory : description_.module->memory();
  }
  std::unique_ptr<isa::WarpStream> OpenOnSm(uint32_t sm) override;
  std::vector<isa::StreamIssue> Issues() const override;

  // Is called once, before the first CTA starts, between windows: what must reach memory behind the launches before this one.
  void BeforeFirstCta(std::function<void()> call) { before_first_cta_ = std::move(call); }

  const LaunchDescription& description() const { return description_; }
  const std::shared_ptr<const Program>& program() const { return program_; }
  const LaunchContext& context() const { return context_; }
  const ConstantPool& pool() const { return *pool_; }
  uint32_t entry() const;  // index of the kernel's first instruction
  uint32_t local_bytes_per_lane() const { return local_bytes_per_lane_; }
  uint64_t LocalAddress(uint32_t sm, uint32_t warp_of_sm) const;

 private:
  explicit EmulatedLaunch(LaunchDescription description) : description_(std::move(description)) {}
  Status Check() const;
  Status Prepare();
  void LowerProgram();
  Status PlaceLocalMemory();
  Status PlaceBanks();

  LaunchDescription description_;
  isa::LaunchShape shape_;
  std::shared_ptr<const Program> program_;
  LaunchContext context_;
  std::unique_ptr<ConstantPool> pool_;
  std::array<std::vector<uint8_t>, kConstantBanks> banks_;
  std::vector<uint64_t> allocated_;
  uint64_t local_base_ = 0;
  uint32_t local_bytes_per_lane_ = 0;
  std::map<uint32_t, std::shared_ptr<IssueLog>> issues_;  // by SM
  std::function<void()> before_first_cta_;
};

}  // namespace heddle::emulator
