// What the rules in gpu.proto demand of a description, and what its numbers demand of each other.
// Private to sim/config.
#pragma once

#include "sim/config/draft.h"
#include "sim/config/gpu_description.h"

namespace heddle::config {

// Presence, ranges, powers of two, duplicate keys: everything that rules say of single fields.
void CheckRules(Draft* draft);

// Sets absent fields whose rule has in_old_results, in messages that are there.
void FillOldResults(google::protobuf::Message* message);

// Relations between fields, for those that are not broken already. `gpu` is the draft's message as plain
// structs.
void CheckRelations(const Gpu& gpu, Draft* draft);

}  // namespace heddle::config
