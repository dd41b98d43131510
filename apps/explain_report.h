// What recorded runs were like, as JSON and as lines that fit one screen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "command.h"
#include "lab/learners.h"
#include "lab/run_story.h"

namespace foreload {

// The name of a sample, or nothing where only numbers are known.
using NameOf = std::function<std::string(SampleId)>;

inline constexpr const char* kOriginNames[kOrigins] = {"source", "disk", "peer"};

inline double share(double part, double whole) {
  return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0;
}

inline double rate(std::uint64_t amount, double seconds) {
  return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
}

struct TitledStory {
  std::string file;
  RunStory story;
};

Json story_json(const TitledStory& told, const NameOf& name_of);
Json learners_json(const LearnersStory& learners);
std::vector<std::string> story_lines(const TitledStory& told, const NameOf& name_of);
std::vector<std::string> learners_lines(std::span<const TitledStory> told, const LearnersStory& learners);

}  // namespace foreload
