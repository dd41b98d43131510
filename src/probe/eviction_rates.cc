#include "probe/eviction_rates.h"

#include <cmath>
#include <memory>
#include <vector>

#include "plan/use_counts.h"
#include "policy/counted_room.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSeed = 1;

Schedule schedule_of(const EvictionCase& subject) {
  ScheduleOptions options{.samples = subject.samples, .seed = kSeed};
  if (subject.zipf > 0) {
    std::vector<double> weights(subject.samples);
    for (std::uint64_t i = 0; i < weights.size(); ++i) weights[i] = std::pow(static_cast<double>(i + 1), -subject.zipf);
    options.weights = std::make_shared<const WeightTable>(*WeightTable::create(weights));
  }
  return Schedule(options);
}

}  // namespace

EvictionRates eviction_rates(const EvictionCase& subject, bool warm) {
  const JobShape shape{
      .samples = subject.samples, .global_batch = subject.batch * subject.hosts, .world = subject.hosts};
  const Stream stream(schedule_of(subject), SliceAssignment(shape), {.epochs = subject.epochs});
  const auto capacity = static_cast<std::uint64_t>(subject.cached * static_cast<double>(subject.samples));
  const Moment from = warm ? stream.assignment().positions_per_epoch() : 0;
  EvictionRates rates;
  const auto rate = [&](Eviction kind, const Placement& placement) {
    const auto policy = make_eviction(kind, placement, stream);
    CountedRoom room(subject.samples, capacity);
    std::uint64_t hits = 0;
    std::uint64_t uses = 0;
    policy->restart(0);
    for_each_use(stream, subject.epochs, [&](SampleId id, Moment now) {
      const bool hit = room.use(*policy, id, now);
      if (now < from) return;
      hits += hit ? 1 : 0;
      ++uses;
    });
    rates.uses = uses / (subject.epochs - (warm ? 1 : 0));
    return static_cast<double>(hits) / static_cast<double>(uses);
  };
  const auto one = [](SampleId) { return Bytes{1}; };
  rates.fixed = rate(Eviction::kStatic, Placement::plan(subject.samples, capacity, kSeed, one));
  rates.frequency = rate(Eviction::kFrequency, Placement::plan_most_used(count_uses(stream), capacity, kSeed, one));
  rates.belady = rate(Eviction::kBelady, {});
  rates.lru = rate(Eviction::kLru, {});
  return rates;
}

}  // namespace foreload
