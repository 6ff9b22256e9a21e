// The buffers of a launch description and what they hold. Private to frontend/trace.
#pragma once

#include <string>

#include "frontend/trace/expression.h"
#include "frontend/trace/launch.pb.h"
#include "frontend/trace/text_format.h"
#include "frontend/trace/trace.h"

namespace heddle::trace {

// An expression that names nothing becomes its value; one that names something is tried with `scope` and kept
// as text.
Result<Expr> MakeExpr(const std::string& text, const Scope& scope, const std::string& place);

// Appends the buffer to the trace and its shape to the scope. Contents that are lists, files or derived from
// another buffer become bytes.
Status AddBuffer(const pb::Buffer& buffer, const Locator& at, const std::string& target, Scope* scope,
                 Trace* trace);

}  // namespace heddle::trace
