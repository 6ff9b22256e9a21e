// The package lists of tools/packages.sh: what would be typed on each supported system.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

struct Output {
  std::string text;
  int status;
};

Output Shell(const std::string& line) {
  const std::string command = "bash -c '. " HEDDLE_SOURCE_DIR "/tools/packages.sh; " + line + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 256> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  return {text, pclose(pipe)};
}

TEST(Packages, DebianAndUbuntuNameTheirCompilers) {
  const Output debian = Shell("heddle_packages test debian 12");
  EXPECT_NE(debian.text.find("clang-14\n"), std::string::npos) << debian.text;
  const Output ubuntu = Shell("heddle_packages test ubuntu 24.04");
  EXPECT_NE(ubuntu.text.find("clang-18\n"), std::string::npos) << ubuntu.text;
  EXPECT_EQ(ubuntu.text.find("clang-14\n"), std::string::npos);
}

TEST(Packages, BuildNeedsNeitherGpuToolsNorPython) {
  for (const char* system : {"debian 12", "ubuntu 24.04"}) {
    const Output output = Shell(std::string("heddle_packages build ") + system);
    EXPECT_EQ(output.status, 0);
    for (const char* package : {"libboost-graph-dev\n", "libprotobuf-dev\n", "libsqlite3-dev\n"}) {
      EXPECT_NE(output.text.find(package), std::string::npos) << system;
    }
    EXPECT_EQ(output.text.find("python"), std::string::npos);
    EXPECT_EQ(output.text.find("cuda"), std::string::npos);
  }
}

TEST(Packages, UnknownSystemsAreRefused) { EXPECT_NE(Shell("heddle_packages build plan9 4").status, 0); }

}  // namespace
