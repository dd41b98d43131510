#include "nearest.h"

#include <algorithm>

namespace foreload {

namespace {

// The least number of letters to change, add, remove or swap with their neighbours.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      cost[i][j] = std::max(i, j);
      if (i == 0 || j == 0) continue;
      const std::size_t changed = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 40;  // no option is longer, and the table stays small
  constexpr std::size_t kShortestBeginning = 3;
  if (word.empty() || word.size() > kLongest) return {};
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= kShortestBeginning && candidate.compare(0, word.size(), word) == 0;
    const std::size_t cost = begins ? 1 : distance(word, candidate);
    const bool shorter = !best.empty() && candidate.size() < best.size();
    if (cost > least || (cost == least && !shorter)) continue;
    least = cost;
    best = candidate;
  }
  return best;
}

}  // namespace foreload
