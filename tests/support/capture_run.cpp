#include "tests/support/capture_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "frontend/trace/htrace.h"
#include "tests/support/cubin_builder.h"

namespace heddle::testing_support {

namespace fs = std::filesystem;

CaptureFolder::CaptureFolder() { cubin_ = WriteCubin("k.cubin", "k"); }

std::string CaptureFolder::WriteCubin(const std::string& name, const std::string& kernel,
                                      size_t instructions) const {
  testing::CubinSpec spec;
  spec.kernel = kernel;
  spec.code.assign(instructions, {0x000000000000794d, 0x000fea0003800000});  // EXIT
  const std::vector<std::byte> bytes = testing::BuildCubin(spec);
  return Write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string CaptureFolder::Write(const std::string& name, const std::string& bytes) const {
  std::ofstream(Path(name), std::ios::binary) << bytes;
  return Path(name);
}

Outcome CaptureFolder::Capture(const std::string& script, const std::string& options,
                               const std::string& environment, const std::string& before) const {
  return CaptureRaw("module m " + cubin_ + "\nfunction f m k\nalloc a 4096\n" + script, options, environment,
                    before);
}

Outcome CaptureFolder::CaptureRaw(const std::string& script, const std::string& options,
                                  const std::string& environment, const std::string& before) const {
  const std::string file = Write("script", script);
  return Shell("LD_LIBRARY_PATH=" HEDDLE_BINARY_DIR
               "/tests/support/capture/doubles HEDDLE_NVDISASM=/nonexistent " +
               environment + " " HEDDLE_BINARY_DIR "/tools/heddle/heddle capture -o " + Path("out.htrace") +
               " " + options + " -- " + before +
               " " HEDDLE_BINARY_DIR "/tests/support/capture/heddle_capture_player " + file);
}

trace::Trace CaptureFolder::Read(const std::string& name) const {
  Result<trace::Trace> trace = trace::ReadTrace(Path(name));
  EXPECT_TRUE(trace.ok()) << trace.error().ToString();
  return trace.ok() ? std::move(*trace) : trace::Trace{};
}

std::vector<std::string> CaptureFolder::Traces() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("out") && name.ends_with(".htrace")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t Parameter(const trace::Launch& launch, size_t offset, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes && offset + i < launch.parameters.size(); ++i)
    value |= std::to_integer<uint64_t>(launch.parameters[offset + i]) << 8 * i;
  return value;
}

}  // namespace heddle::testing_support
