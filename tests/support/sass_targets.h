// What the fuzzers and the mutation test do with arbitrary bytes: everything that must not crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace heddle::testing {

// Reads the bytes as a cubin. Returns whether they are one.
bool TryCubin(std::span<const std::byte> bytes);

// Takes the bytes as 16 bytes of code and "OPCODE OPERANDS" text; decodes for sm_80 and sm_100, asks for registers,
// effect and text of the result. Returns whether they decode.
bool TryListing(std::span<const std::byte> bytes);

// Takes the bytes as the listing's JSON.
bool TryJson(std::span<const std::byte> bytes);

}  // namespace heddle::testing
