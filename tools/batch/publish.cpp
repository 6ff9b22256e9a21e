#include "tools/batch/publish.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "sim/results/results.h"

namespace heddle::batch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = size_t{1} << 20;

Error Failed(const std::string& path, const std::string& what) {
  return {ExitCode::kUsage, path, fmt::format("{}: {}", what, std::strerror(errno)),
          "free some space; what was published before is whole"};
}

class File {
 public:
  File(const std::string& path, int flags) : descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

bool CopyAll(int from, int to) {
  std::vector<char> buffer(kCopyBytes);
  while (true) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got <= 0) return got == 0;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = write(to, buffer.data() + done, static_cast<size_t>(got - done));
      if (put < 0) return false;
      done += put;
    }
  }
}

}  // namespace

Status Publish(const std::string& database, const std::string& target) {
  {
    // Opening for writing rolls back what a dead writer left.
    HEDDLE_ASSIGN_OR_RETURN(sqlite::Database check,
                            sqlite::Database::Open(database, sqlite::Database::Mode::kReadWrite));
    HEDDLE_RETURN_IF_ERROR(check.QueryInteger("SELECT COUNT(*) FROM launch"));
  }
  const std::string temporary = target + ".tmp";
  {
    const File from(database, O_RDONLY), to(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (from.get() < 0) return Failed(database, "cannot be read");
    if (to.get() < 0 || !CopyAll(from.get(), to.get()) || fsync(to.get()) != 0)
      return Failed(temporary, "cannot be written");
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) return Failed(target, "cannot be put in place");
  const fs::path folder = fs::path(target).parent_path();
  const File entry(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
  if (entry.get() >= 0) fsync(entry.get());  // some file systems refuse it for folders
  return Ok();
}

uint64_t LaunchCount(const std::string& database) {
  std::error_code error;
  if (database.empty() || !fs::exists(database, error)) return 0;
  Result<sqlite::Database> opened = sqlite::Database::Open(database, sqlite::Database::Mode::kReadWrite);
  if (!opened.ok()) return 0;
  const Result<int64_t> count = opened->QueryInteger("SELECT COUNT(*) FROM launch");
  return count.ok() ? static_cast<uint64_t>(*count) : 0;
}

std::string WorkingFile(const std::string& database) {
  std::error_code error;
  for (const std::string& path : {database + ".partial", database})
    if (fs::exists(path, error)) return path;
  return "";
}

}  // namespace heddle::batch
