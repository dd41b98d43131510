// What someone who mistyped a word may have meant.
#pragma once

#include <string>
#include <vector>

namespace foreload {

// The candidate that is nearest to `word`: a letter in three may be wrong, missing, too much or swapped with the next,
// or the end may be missing; of equally near ones the shortest. Empty: none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace foreload
