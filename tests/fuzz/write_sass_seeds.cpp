// Writes seeds for the SASS fuzzers: write_sass_seeds FOLDER. The folder's name says for which.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/sass_seeds.h"

namespace {

void Write(const std::filesystem::path& path, const void* data, size_t size) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const std::string kind = folder.filename().string();
  int index = 0;
  if (kind.find("cubin") != std::string::npos) {
    for (const auto& bytes : heddle::testing::CubinSeeds())
      Write(folder / std::to_string(index++), bytes.data(), bytes.size());
    return 0;
  }
  for (const auto& seed : heddle::testing::ListingSeeds()) {
    std::string bytes(16, '\0');
    std::memcpy(bytes.data(), &seed.low, 8);
    std::memcpy(bytes.data() + 8, &seed.high, 8);
    bytes += seed.text;
    if (kind.find("json") != std::string::npos) {
      const size_t space = seed.text.find(' ');
      bytes = R"([{},[{"function-name":"k","sass-instructions":[{"opcode":")" + seed.text.substr(0, space) +
              R"(","operands":")" + seed.text.substr(space + 1) + R"("}]}]])";
    }
    Write(folder / std::to_string(index++), bytes.data(), bytes.size());
  }
  return 0;
}
