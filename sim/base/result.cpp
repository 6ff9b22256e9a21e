#include "sim/base/result.h"

namespace heddle {

std::string Error::ToString() const {
  std::string text = place.empty() ? message : place + ": " + message;
  if (!next_step.empty()) text += "\n  " + next_step;
  return text;
}

}  // namespace heddle
