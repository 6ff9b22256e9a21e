#include "tools/explain/source_lines.h"

#include <fmt/format.h>

#include "frontend/sass/line_table.h"

namespace heddle::explain {

std::map<uint32_t, std::string> SourceLinesOf(const trace::Trace& trace, uint32_t ordinal) {
  std::map<uint32_t, std::string> lines;
  if (ordinal >= trace.launches.size()) return lines;
  const trace::Function& function = trace.functions[trace.launches[ordinal].function];
  const trace::Module& module = trace.modules[function.module];
  if (module.recorded()) return lines;
  const Result<std::vector<sass::SourceLine>> table =
      sass::ReadLineTable(module.cubin, module.name, ".text." + function.name);
  if (!table.ok()) return lines;
  for (size_t i = 0; i < table->size(); ++i) {
    const sass::SourceLine& line = (*table)[i];
    if (line.file.empty() || line.line == 0) continue;
    const size_t slash = line.file.rfind('/');
    lines[static_cast<uint32_t>(i)] =
        fmt::format("{}:{}", slash == std::string::npos ? line.file : line.file.substr(slash + 1), line.line);
  }
  return lines;
}

}  // namespace heddle::explain
