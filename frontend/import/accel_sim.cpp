#include "frontend/import/accel_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <tuple>

#include "frontend/import/kernels_list.h"
#include "frontend/import/launch_recorder.h"
#include "frontend/import/tracez.h"
#include "frontend/sass/decoder.h"
#include "sim/base/digest.h"
#include "sim/isa/launch_limits.h"

namespace heddle::importer {
namespace {

namespace fs = std::filesystem;

// Launches of one kernel share its code: each shows the part that it executed.
class Functions final : public LaunchRecorder::CodeChooser {
 public:
  struct Function {
    TracegHeader header;
    StaticCode code;
    uint32_t barriers = 1;
    bool used = false;  // by a launch that was kept
    uint32_t index = 0;
  };

  StaticCode* Choose(const TracegHeader& header) override { return &Of(header).code; }
  Function& Of(const TracegHeader& header) {
    const Key key(header.kernel_name, header.registers, header.shared_bytes, header.binary_version);
    auto [found, is_new] = by_key_.emplace(key, nullptr);
    if (is_new) {
      found->second = &functions_.emplace_back();
      found->second->header = header;
    }
    return *found->second;
  }
  std::list<Function>& all() { return functions_; }

 private:
  using Key = std::tuple<std::string, uint32_t, uint32_t, uint32_t>;
  std::list<Function> functions_;
  std::map<Key, Function*> by_key_;
};

struct ImportedLaunch {
  TracegHeader header;
  Functions::Function* function = nullptr;
  trace::RecordingHeader recording;
  std::vector<std::vector<std::byte>> chunks;
  std::vector<uint64_t> first_blocks;
};

class Importer {
 public:
  Importer(fs::path folder, const ImportOptions& options) : folder_(std::move(folder)), options_(options) {}

  Result<Imported> Run(const std::string& list_name) {
    HEDDLE_ASSIGN_OR_RETURN(auto source, OpenFile((folder_ / list_name).string()));
    LineReader lines(std::move(source));
    HEDDLE_ASSIGN_OR_RETURN(const KernelsList list, ReadKernelsList(&lines, list_name, &out_.faults));
    HEDDLE_RETURN_IF_ERROR(Check());
    for (const std::string& kernel : list.kernels) {
      HEDDLE_RETURN_IF_ERROR(Kernel(kernel));
      HEDDLE_RETURN_IF_ERROR(Check());
    }
    if (launches_.empty())
      return Error{ExitCode::kTrace, (folder_ / list_name).string(), "names no kernel that can be read",
                   "give the folder that the tracer's post-processing wrote"};
    Assemble();
    AddCopies(list.copies);
    return std::move(out_);
  }

 private:
  Status Check() const {
    if (options_.lenient || out_.faults.total() == 0) return Ok();
    return out_.faults.ToError();
  }

  Status Kernel(const std::string& file) {
    FaultLog before = out_.faults;
    LaunchRecorder recorder(file, &functions_, &out_.faults);
    const Status read = [&]() -> Status {
      if (file.ends_with(kTracezSuffix)) {
        HEDDLE_ASSIGN_OR_RETURN(const auto input, OpenRandomFile((folder_ / file).string()));
        return ReadTracez(input.get(), file, &recorder, &out_.faults);
      }
      HEDDLE_ASSIGN_OR_RETURN(auto source, OpenFile((folder_ / file).string()));
      LineReader lines(std::move(source));
      return ReadTraceg(&lines, file, &recorder, &out_.faults);
    }();
    if (!read.ok()) {
      if (!options_.lenient) return read.error();
      out_.faults.Add(file, 0, "a kernel that is left out", read.error().message);
      return Ok();
    }
    recorder.Finish();
    ImportedLaunch& launch = launches_.emplace_back();
    launch.header = recorder.header();
    launch.function = &functions_.Of(launch.header);
    launch.function->used = true;
    launch.function->barriers = std::max(launch.function->barriers, recorder.barriers());
    launch.recording = std::move(recorder.recording());
    launch.chunks = std::move(recorder.chunks());
    launch.first_blocks = recorder.first_blocks();
    for (const auto& [kind, count] : out_.faults.by_kind()) {
      const auto old = before.by_kind().find(kind);
      const uint64_t more = count - (old == before.by_kind().end() ? 0 : old->second);
      if (more != 0) launch.recording.notes.push_back({"damaged_recording", kind, more});
    }
    return Ok();
  }

  void Assemble() {
    trace::Trace& trace = out_.trace;
    trace.name =
        folder_.filename().empty() ? folder_.parent_path().filename().string() : folder_.filename().string();
    trace.doc = "recorded instructions, imported from Accel-Sim";
    for (Functions::Function& function : functions_.all())
      if (function.used) AddFunction(&function);
    std::map<uint64_t, uint32_t> streams;  // dense numbers, in the order of appearance
    for (ImportedLaunch& launch : launches_) {
      const auto stream = streams.emplace(launch.header.stream, static_cast<uint32_t>(streams.size())).first;
      AddLaunch(&launch, stream->second);
    }
  }

  // A module without a cubin for each architecture.
  uint32_t ModuleOf(uint32_t sm_version) {
    trace::Trace& trace = out_.trace;
    for (size_t i = 0; i < trace.modules.size(); ++i)
      if (trace.modules[i].sm_version == sm_version) return static_cast<uint32_t>(i);
    trace.modules.push_back({fmt::format("recorded on sm_{}", sm_version),
                             Sha256Hex(std::span<const std::byte>()),
                             {},
                             sm_version});
    return static_cast<uint32_t>(trace.modules.size() - 1);
  }

  void AddFunction(Functions::Function* function) {
    trace::Trace& trace = out_.trace;
    const TracegHeader& header = function->header;
    function->index = static_cast<uint32_t>(trace.functions.size());
    trace::Function& out = trace.functions.emplace_back();
    out.module = ModuleOf(header.binary_version);
    out.name = header.kernel_name;
    out.registers = header.registers;
    // -shmem leaves out what the system reserves.
    out.static_shared_bytes =
        header.shared_bytes + (header.binary_version >= 80 ? isa::kReservedSharedBytes : 0);
    out.barriers = function->barriers;
    trace.sass.push_back({function->index, sass::kDecoderVersion,
                          function->code.ToKernelCode(header.kernel_name, header.binary_version)});
  }

  void AddLaunch(ImportedLaunch* launch, uint32_t stream) {
    trace::Trace& trace = out_.trace;
    const auto index = static_cast<uint32_t>(trace.launches.size());
    const TracegHeader& header = launch->header;
    trace::Launch& out = trace.launches.emplace_back();
    out.name = fmt::format("kernel {}", header.kernel_id);
    out.function = launch->function->index;
    out.stream = stream;
    out.grid = {header.grid.x, header.grid.y, header.grid.z};
    out.block = {header.block.x, header.block.y, header.block.z};
    out.frozen_grid = true;
    launch->recording.code_stride = launch->function->code.stride();
    out_.warp_instructions += launch->recording.warp_instructions;
    trace.warp_streams.push_back({index, 0, 0, trace::EncodeRecording(launch->recording)});
    for (size_t i = 0; i < launch->chunks.size(); ++i)
      trace.warp_streams.push_back({index, launch->first_blocks[i], 0, std::move(launch->chunks[i])});
  }

  // What was copied to the device, as buffers without contents; ranges that touch are one.
  void AddCopies(std::vector<Copy> copies) {
    std::sort(copies.begin(), copies.end(),
              [](const Copy& a, const Copy& b) { return a.address < b.address; });
    std::vector<Copy> merged;
    for (const Copy& copy : copies) {
      if (copy.size_bytes == 0 || copy.address == 0) continue;
      if (!merged.empty() && copy.address <= merged.back().address + merged.back().size_bytes) {
        Copy& last = merged.back();
        last.size_bytes = std::max(last.size_bytes, copy.address + copy.size_bytes - last.address);
      } else {
        merged.push_back(copy);
      }
    }
    for (size_t i = 0; i < merged.size(); ++i) {
      trace::Buffer& buffer = out_.trace.buffers.emplace_back();
      buffer.name = fmt::format("copied_{}", i);
      buffer.shape = {trace::Expr(static_cast<int64_t>(merged[i].size_bytes))};
      buffer.alignment = 1;
      buffer.address = merged[i].address;
    }
  }

  fs::path folder_;
  const ImportOptions& options_;
  Imported out_;
  Functions functions_;
  std::vector<ImportedLaunch> launches_;
};

}  // namespace

Result<Imported> ImportAccelSim(const std::string& folder, const ImportOptions& options) {
  std::error_code ec;
  const fs::path path(folder);
  if (fs::is_directory(path, ec)) return Importer(fs::absolute(path), options).Run("kernelslist.g");
  if (fs::is_regular_file(path, ec))
    return Importer(fs::absolute(path).parent_path(), options).Run(path.filename().string());
  return Error{ExitCode::kTrace, folder, "there is no such folder",
               "give the folder that holds kernelslist.g"};
}

}  // namespace heddle::importer
