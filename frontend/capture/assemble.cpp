#include "frontend/capture/assemble.h"

#include <algorithm>
#include <filesystem>

#include "frontend/capture/assembler.h"
#include "frontend/capture/record_file.h"
#include "frontend/trace/htrace.h"

namespace heddle::capture {

namespace fs = std::filesystem;

Result<Captured> AssembleTrace(const std::string& folder, const trace::Toolchain& toolchain) {
  Assembler assembler(folder, toolchain);
  HEDDLE_ASSIGN_OR_RETURN(
      const RecordFileEnd end,
      ReadRecords(folder + "/records", [&](const pb::Record& record) { assembler.Take(record); }));
  Captured captured = assembler.Finish(end.in_order, end.lost_bytes);
  HEDDLE_RETURN_IF_ERROR(trace::Validate(captured.trace, folder));
  return captured;
}

Result<std::vector<std::string>> ProcessFolders(const std::string& folder) {
  std::error_code ec;
  if (fs::is_regular_file(fs::path(folder) / "records", ec)) return std::vector<std::string>{folder};
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec))
    if (fs::is_regular_file(entry.path() / "records", ec)) found.push_back(entry.path().string());
  if (found.empty())
    return Error{ExitCode::kTrace, folder, "holds no records of a capture",
                 "give the folder that `heddle capture` named"};
  // Process numbers mostly grow, so that this is the order in which they started.
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

}  // namespace heddle::capture
