// What a note of the capture means, and what the user can do about it.
#pragma once

#include <cstdint>
#include <string>

namespace heddle::capture {

namespace pb {
class Note;
}

std::string Advice(const pb::Note& note);
// Of a CUptiResult: "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35): ...".
std::string CuptiAdvice(uint32_t status);

}  // namespace heddle::capture
