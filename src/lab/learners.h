// How unequal the learners of one job were, from the stories of all of them. Steps are compared by number, not by time:
// clocks of different machines have nothing in common.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "foreload/types.h"
#include "lab/run_story.h"

namespace foreload {

struct LearnerStory {
  std::uint32_t rank = 0;
  Waits waits;                // in the steps that all have
  std::uint64_t slowest = 0;  // steps in which nobody waited longer, and it did wait
  Bytes bytes = 0;            // that it consumed
  Bytes missed_bytes = 0;     // of them: had to be read for it
  std::uint64_t misses = 0;
};

struct WorstStep {
  Epoch epoch = 0;
  std::uint64_t step = 0;
  std::uint32_t rank = 0;  // who waited longest
  double waited = 0;       // seconds
  double mean = 0;         // of all learners
};

// The largest of a step's learners over their mean, of the sums over all steps: 1 is equal.
struct LearnersStory {
  std::vector<LearnerStory> learners;  // in the order of the stories
  std::uint64_t steps = 0;             // that all of them have
  double seconds = 0;                  // the mean time from a learner's first batch to its last
  double mean_wait = 0;                // seconds
  double longest_wait = 0;             // in every step that of the one who waited longest: a job in step loses it
  double bytes_ratio = 1;
  double misses_ratio = 1;
  std::vector<WorstStep> worst;  // by how much longer than the mean somebody waited

  // What would be gained if all waited equally long.
  double lost() const { return longest_wait - mean_wait; }
  // More than a twentieth of the time, and at least a quarter of what is waited for.
  bool is_unequal() const { return lost() > 0.05 * seconds && lost() >= 0.25 * longest_wait; }
};

// REQUIRES: the stories were told with their steps.
LearnersStory compare_learners(std::span<const RunStory> stories);

}  // namespace foreload
