// Runs a command line for a test and gives back what it printed and how it ended.
#pragma once

#include <string>

namespace heddle::testing_support {

struct Outcome {
  int exit_code = -1;  // 128 + n when signal n ended it
  std::string out;
  std::string err;
};

// Through /bin/sh.
Outcome Shell(const std::string& command);

// A folder that is removed with this object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

}  // namespace heddle::testing_support
