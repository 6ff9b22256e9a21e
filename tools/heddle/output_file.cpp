#include "tools/heddle/output_file.h"

#include <filesystem>
#include <fstream>

namespace heddle::tools {

Status WriteFile(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".partial";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(temporary, path, error);
  if (out && !error) return Ok();
  std::filesystem::remove(temporary, error);
  return Error{ExitCode::kUsage, path, "cannot be written",
               "name a file in a folder that exists and is yours"};
}

}  // namespace heddle::tools
