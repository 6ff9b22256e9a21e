// A committed trace as a script for the player, and what was captured of it with the committed trace's check.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frontend/trace/trace.h"
#include "tests/support/capture_run.h"

namespace heddle::testing_support {

std::string Text(const std::vector<std::byte>& bytes);

// A player's script that does what a trace describes; its files go to `folder`. Buffers are b0, b1, ..., functions f0, ...
std::string ScriptOf(const trace::Trace& trace, const trace::ResolvedTrace& resolved,
                     const CaptureFolder& folder);

// Captured contents, parameters and code; the check and the decoded SASS of the original. The buffers that launch number `launch` is given
// get their names and types back.
trace::Trace WithCheckOf(const trace::Trace& original, const trace::ResolvedTrace& resolved,
                         trace::Trace captured, size_t launch = 0);

}  // namespace heddle::testing_support
