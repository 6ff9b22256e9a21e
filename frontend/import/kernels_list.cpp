#include "frontend/import/kernels_list.h"

#include "frontend/import/text.h"
#include "frontend/import/tracez.h"

namespace heddle::importer {
namespace {

// "MemcpyHtoD,0x00007f0123,4096"
bool ParseCopy(std::string_view line, Copy* copy) {
  const auto parts = SplitThree(line);
  return parts && Parse((*parts)[1], &copy->address, 16) && Parse((*parts)[2], &copy->size_bytes) &&
         copy->address + copy->size_bytes >= copy->address;
}

}  // namespace

Result<KernelsList> ReadKernelsList(LineReader* lines, std::string_view file, FaultLog* faults) {
  KernelsList list;
  for (;;) {
    std::string_view line;
    HEDDLE_ASSIGN_OR_RETURN(const LineReader::Got got, lines->Next(&line));
    if (got == LineReader::Got::kEnd) return list;
    const auto fault = [&](std::string_view kind) {
      faults->Add(file, lines->line_number(), kind, line.substr(0, 80));
    };
    line = TrimEnd(line);
    if (got == LineReader::Got::kTooLong) {
      fault("a line longer than any command");
    } else if (line.starts_with("MemcpyHtoD")) {
      Copy copy;
      if (!ParseCopy(line, &copy))
        fault("a copy that is no 'MemcpyHtoD,0xADDRESS,BYTES'");
      else
        list.copies.push_back(copy);
    } else if (line.starts_with("kernel")) {
      const bool inside =
          line.find('/') == std::string_view::npos && line.find('\\') == std::string_view::npos;
      if (!inside)
        fault("a kernel's file outside the folder of the list");
      else if (!line.ends_with(".traceg") && !line.ends_with(".traceg.xz") && !line.ends_with(kTracezSuffix))
        fault("a kernel's file that is neither .traceg nor .traceg.xz nor .tracez");
      else
        list.kernels.emplace_back(line);
    }
  }
}

}  // namespace heddle::importer
