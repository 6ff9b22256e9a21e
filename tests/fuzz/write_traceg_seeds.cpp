// Writes seeds for the fuzzers of recorded traces: write_traceg_seeds FOLDER
#include <fstream>
#include <string>

#include "tests/support/traceg_writer.h"
#include "tests/support/tracez_writer.h"

int main(int argc, char** argv) {
  using namespace heddle::importer;
  if (argc != 2) return 2;
  for (uint32_t version = 1; version <= kNewestVersion; ++version) {
    TracegHeader header = TestHeader({2, 1, 1}, {64, 1, 1});
    header.version = version;
    header.has_line_numbers = version == 4;
    std::ofstream(std::string(argv[1]) + "/version_" + std::to_string(version) + ".traceg")
        << TracegText(header, SampleBlocks());
    for (const bool dictionary : {false, true})
      std::ofstream(std::string(argv[1]) + "/version_" + std::to_string(version) +
                        (dictionary ? "_dictionary.tracez" : ".tracez"),
                    std::ios::binary)
          << TracezBytes(header, SampleBlocks(), {8, dictionary});
  }
  std::ofstream(std::string(argv[1]) + "/kernelslist.g")
      << "MemcpyHtoD,0x00007f0000000000,4096\nkernel-1.traceg\nkernel-2.traceg.xz\n";
  return 0;
}
