// "Did you mean": the nearest of a list of names to one that was mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heddle {

// Letters inserted, removed, replaced or swapped with their neighbour to get from one to the other.
size_t EditDistance(std::string_view from, std::string_view to);

// The candidate nearest to `name`, or one that `name` begins; empty if none is near (a third of the letters,
// at least two). Of equals the first.
std::string Suggest(std::string_view name, std::span<const std::string> candidates);

// `; did you mean "x"?`, or nothing when there is no suggestion.
std::string DidYouMean(std::string_view name, std::span<const std::string> candidates);

}  // namespace heddle
