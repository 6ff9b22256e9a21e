// "--set path=value" on a Draft. Private to sim/config.
#pragma once

#include <string>

#include "sim/config/draft.h"

namespace heddle::config {

// Sets one value: "l2.size_bytes=100Mi". Elements of lists go by index, or by the values of their key fields
// joined with dots: "sm.tensor[HMMA.16.8.16.f16.f32].latency_cycles=20". A list of numbers can be given
// whole: "sms_per_gpc=[18,18]". Faults carry the override as their place.
void ApplyOverride(const std::string& text, Draft* draft);

// The key fields' values of an element of a repeated message, joined with dots; empty when it has none.
std::string KeyOf(const google::protobuf::Message& element);

}  // namespace heddle::config
