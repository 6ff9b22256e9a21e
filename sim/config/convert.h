// Between the messages of gpu.proto and the plain structs; private to sim/config. The definitions are
// generated.
#pragma once

#include "sim/config/gpu.pb.h"
#include "sim/config/gpu_description.h"

namespace heddle::config {

// Fields that `in` lacks keep what `out` holds.
void FromProto(const pb::Gpu& in, Gpu* out);

// `out` starts empty; every field that is not optional is set.
void ToProto(const Gpu& in, pb::Gpu* out);

}  // namespace heddle::config
