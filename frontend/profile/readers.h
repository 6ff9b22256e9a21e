// One reader a format; profile.h has the contract.
#pragma once

#include <istream>
#include <string>

#include "frontend/profile/profile.h"

namespace heddle::profile {

Result<Profile> ReadNsightSystems(const std::string& path);
Result<Profile> ReadNsightCompute(std::istream* in, const std::string& place);
Result<Profile> ReadKineto(std::istream* in, const std::string& place);

// An error in a file that was handed in.
Error Malformed(std::string place, std::string message, std::string next_step = {});

// Adds a metric unless one of that name is there.
void AddMetric(Launch* launch, std::string name, std::string unit, double value);

}  // namespace heddle::profile
