// Writes seeds for the fuzzers of traces and launch descriptions: write_trace_seeds CONTAINER_FOLDER DESCRIPTION_FOLDER
#include <fstream>
#include <string>

#include "frontend/trace/htrace.h"
#include "tests/unit/fake_toolchain.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ofstream(std::string(argv[2]) + "/scale.launch.textproto") << heddle::trace::kScaleDescription;
  return heddle::trace::WriteTrace(heddle::trace::SampleTrace(), std::string(argv[1]) + "/sample.htrace").ok()
             ? 0
             : 1;
}
