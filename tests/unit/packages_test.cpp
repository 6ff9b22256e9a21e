// The package lists of tools/packages.sh: what would be typed on each supported system.
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
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
  EXPECT_NE(debian.text.find("chromium\n"), std::string::npos) << debian.text;
  EXPECT_EQ(ubuntu.text.find("chromium"), std::string::npos);
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

// heddle_install on Ubuntu 24.04 where dpkg knows g++ and cmake only: as user `uid`, with apt-get told to speak.
Output Install(const std::string& uid, const std::string& groups) {
  const std::string release = testing::TempDir() + "os-release-" + std::to_string(getpid());
  std::ofstream(release) << "ID=ubuntu\nVERSION_ID=\"24.04\"\n";
  const Output output = Shell(
      "export HEDDLE_OS_RELEASE=" + release + "; id() { echo " + uid +
      "; }; dpkg-query() { case \"$3\" in g++|cmake) echo install ok installed ;; *) return 1 ;; esac; }; "
      "apt-get() { echo apt-get \"$@\" >&2; }; heddle_install " +
      groups);
  std::remove(release.c_str());
  return output;
}

TEST(Packages, WithoutRootTheLineToTypeIsPrinted) {
  const Output output = Install("1000", "build");
  EXPECT_NE(output.status, 0);
  EXPECT_NE(output.text.find("  sudo apt-get install -y ninja-build libboost-graph-dev "), std::string::npos)
      << output.text;
  EXPECT_EQ(output.text.find("cmake"), std::string::npos)
      << "what is there is not asked for again: " << output.text;
  EXPECT_EQ(output.text.find("apt-get update"), std::string::npos) << "nothing is installed";
}

TEST(Packages, RootInstallsWhatIsMissing) {
  const Output output = Install("0", "build test");
  EXPECT_EQ(output.status, 0) << output.text;
  EXPECT_NE(output.text.find("apt-get update -qq\n"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("Installing: ninja-build"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find(" clang-18 "), std::string::npos) << output.text;
}

TEST(Packages, UnknownSystemsAreRefused) { EXPECT_NE(Shell("heddle_packages build plan9 4").status, 0); }

}  // namespace
