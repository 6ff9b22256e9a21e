// Reads a description's text into a Draft. Private to sim/config.
//
// The language is a subset of protobuf's text format: fields, messages in braces, lists in brackets, #
// comments. It is read here and not by TextFormat::Parser because that stops at the first fault and points
// behind it.
#pragma once

#include <string_view>

#include "sim/config/draft.h"

namespace heddle::config {

// Adds the fields in `text` to what the draft holds: values replace inherited ones, and the first element of
// a list drops the inherited list. Returns false after a syntax error, which then is the draft's only fault;
// all other faults (unknown fields, wrong types, fields given twice) are collected.
bool ParseText(std::string_view text, std::string_view file, Draft* draft);

}  // namespace heddle::config
