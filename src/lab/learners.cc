#include "lab/learners.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace foreload {

namespace {

constexpr std::size_t kWorstSteps = 10;

std::pair<Epoch, std::uint64_t> number_of(const StepStory& step) {
  return {step.epoch, step.step};
}

class Comparison {
 public:
  explicit Comparison(std::span<const RunStory> stories) : stories_(stories), at_(stories.size()) {
    for (const RunStory& story : stories) {
      found_.learners.push_back({.rank = story.rank});
      found_.seconds += (story.consumed_until - story.consumed_from) / static_cast<double>(stories.size());
    }
  }

  LearnersStory run() {
    while (const auto steps = next_common()) add(*steps);
    found_.bytes_ratio = mean_bytes_ > 0 ? most_bytes_ / mean_bytes_ : 1;
    found_.misses_ratio = mean_misses_ > 0 ? most_misses_ / mean_misses_ : 1;
    std::ranges::sort(found_.worst, std::greater<>(), [](const WorstStep& step) { return step.waited - step.mean; });
    return std::move(found_);
  }

 private:
  // The next step that every story has; all are in order.
  std::optional<std::vector<const StepStory*>> next_common() {
    if (stories_.empty()) return std::nullopt;
    for (;;) {
      std::pair<Epoch, std::uint64_t> wanted{};
      for (std::size_t i = 0; i < stories_.size(); ++i) {
        if (at_[i] == stories_[i].steps.size()) return std::nullopt;
        wanted = std::max(wanted, number_of(stories_[i].steps[at_[i]]));
      }
      std::vector<const StepStory*> steps;
      for (std::size_t i = 0; i < stories_.size(); ++i) {
        const StepStory& step = stories_[i].steps[at_[i]];
        if (number_of(step) == wanted) {
          steps.push_back(&step);
        } else {
          ++at_[i];
        }
      }
      if (steps.size() < stories_.size()) continue;
      for (std::size_t& at : at_) ++at;
      return steps;
    }
  }

  void add(const std::vector<const StepStory*>& steps) {
    const auto count = static_cast<double>(steps.size());
    double waits = 0, bytes = 0, misses = 0, most_bytes = 0, most_misses = 0;
    std::size_t slowest = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepStory& step = *steps[i];
      LearnerStory& learner = found_.learners[i];
      learner.waits.fetch += step.waits.fetch;
      learner.waits.prep += step.waits.prep;
      learner.bytes += step.bytes;
      learner.missed_bytes += step.missed_bytes;
      learner.misses += step.misses;
      waits += step.waits.total();
      bytes += static_cast<double>(step.bytes);
      misses += static_cast<double>(step.misses);
      most_bytes = std::max(most_bytes, static_cast<double>(step.bytes));
      most_misses = std::max(most_misses, static_cast<double>(step.misses));
      if (step.waits.total() > steps[slowest]->waits.total()) slowest = i;
    }
    const double longest = steps[slowest]->waits.total();
    ++found_.steps;
    found_.longest_wait += longest;
    found_.mean_wait += waits / count;
    mean_bytes_ += bytes / count;
    most_bytes_ += most_bytes;
    mean_misses_ += misses / count;
    most_misses_ += most_misses;
    if (longest <= 0) return;
    ++found_.learners[slowest].slowest;
    keep({steps[slowest]->epoch, steps[slowest]->step, found_.learners[slowest].rank, longest, waits / count});
  }

  void keep(const WorstStep& step) {
    const auto surplus = [](const WorstStep& worst) { return worst.waited - worst.mean; };
    if (found_.worst.size() < kWorstSteps) return found_.worst.push_back(step);
    const auto least = std::ranges::min_element(found_.worst, {}, surplus);
    if (surplus(*least) < surplus(step)) *least = step;
  }

  std::span<const RunStory> stories_;
  std::vector<std::size_t> at_;
  LearnersStory found_;
  double mean_bytes_ = 0, most_bytes_ = 0, mean_misses_ = 0, most_misses_ = 0;
};

}  // namespace

LearnersStory compare_learners(std::span<const RunStory> stories) {
  return Comparison(stories).run();
}

}  // namespace foreload
