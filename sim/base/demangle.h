// Names of C++ entities as people write them.
#pragma once

#include <string>

namespace heddle {

// "_Z3foov" -> "foo()". What is no mangled name, is damaged or is longer than 8192 bytes is given back as it is: names come
// from files, and what a name unfolds to can be exponentially longer.
std::string Demangled(const std::string& name);

}  // namespace heddle
