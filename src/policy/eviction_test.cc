#include "policy/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <list>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "plan/test_statistics.h"
#include "plan/use_counts.h"
#include "policy/counted_room.h"

namespace foreload {
namespace {

struct Job {
  std::uint64_t samples = 1;
  std::uint64_t global_batch = 1;
  std::uint32_t world = 1;
  std::uint32_t rank = 0;
  Epoch epochs = 1;
  std::uint64_t seed = 1;
  LastBatch last = LastBatch::kAuto;
  std::vector<double> weights{};
  std::uint64_t echo = 1;
};

Stream stream_of(const Job& job) {
  std::shared_ptr<const WeightTable> weights;
  if (!job.weights.empty()) weights = std::make_shared<const WeightTable>(*WeightTable::create(job.weights));
  const Schedule schedule(
      {.samples = job.samples, .seed = job.seed, .weights = weights, .echo = job.echo, .echo_window = job.samples});
  const JobShape shape{
      .samples = schedule.size(), .global_batch = job.global_batch, .world = job.world, .last_batch = job.last};
  return Stream(schedule, SliceAssignment(shape), {.rank = job.rank, .epochs = job.epochs});
}

Job random_job(std::mt19937_64& random, std::uint64_t most_samples) {
  Job job;
  job.samples = 1 + random() % most_samples;
  job.world = static_cast<std::uint32_t>(1 + random() % 4);
  job.rank = static_cast<std::uint32_t>(random() % job.world);
  job.global_batch = 1 + random() % (2 * job.samples);
  job.epochs = 1 + random() % 8;
  job.seed = random();
  job.last = random() % 2 == 0 ? LastBatch::kPad : LastBatch::kRagged;
  if (random() % 3 == 0) {
    for (std::uint64_t i = 0; i < job.samples; ++i) job.weights.push_back(1.0 / static_cast<double>(i + 1));
  }
  if (random() % 4 == 0) job.echo = 2;
  return job;
}

std::vector<SampleId> trace_of(const Stream& stream, Epoch epochs) {
  std::vector<SampleId> trace;
  for_each_use(stream, epochs, [&](SampleId id, Moment) { trace.push_back(id); });
  return trace;
}

std::uint64_t hits(EvictionPolicy& policy, const Stream& stream, std::uint64_t capacity) {
  CountedRoom room(stream.schedule().options().samples, capacity);
  std::uint64_t sum = 0;
  policy.restart(0);
  for_each_use(stream, stream.epochs(), [&](SampleId id, Moment now) { sum += room.use(policy, id, now) ? 1 : 0; });
  EXPECT_LE(room.used(), capacity);
  return sum;
}

// The most hits that any choice of victims, or of nobody, can have: over all sets of samples that may be there.
int most_hits(const std::vector<SampleId>& trace, std::uint64_t samples, int capacity) {
  std::vector<int> best(1ull << samples, -1);
  best[0] = 0;
  for (const SampleId id : trace) {
    std::vector<int> after(best.size(), -1);
    const std::uint64_t bit = 1ull << id;
    for (std::uint64_t set = 0; set < best.size(); ++set) {
      if (best[set] < 0) continue;
      const bool hit = (set & bit) != 0;
      after[set] = std::max(after[set], best[set] + (hit ? 1 : 0));
      if (hit) continue;
      if (std::popcount(set) < capacity) after[set | bit] = std::max(after[set | bit], best[set]);
      for (std::uint64_t rest = set; rest != 0; rest &= rest - 1) {
        const std::uint64_t changed = (set & ~(rest & -rest)) | bit;
        if (capacity > 0) after[changed] = std::max(after[changed], best[set]);
      }
    }
    best = std::move(after);
  }
  return *std::ranges::max_element(best);
}

TEST(EvictionTest, NoChoiceHasMoreHitsThanBelady) {
  std::mt19937_64 random(fresh_seed());
  for (int turn = 0; turn < (soak() ? 2000 : 200); ++turn) {
    const Job job = random_job(random, 9);
    const Stream stream = stream_of(job);
    BeladyEviction belady(stream);
    const auto capacity = random() % (job.samples + 1);
    ASSERT_EQ(hits(belady, stream, capacity),
              most_hits(trace_of(stream, job.epochs), job.samples, static_cast<int>(capacity)))
        << job.samples << " samples, world " << job.world << ", capacity " << capacity << ", seed " << job.seed
        << (job.weights.empty() ? "" : ", weighted") << (job.echo > 1 ? ", echoed" : "");
  }
}

TEST(EvictionTest, LruKeepsTheLatestUsed) {
  std::mt19937_64 random(fresh_seed());
  for (int turn = 0; turn < 100; ++turn) {
    const Job job = random_job(random, 60);
    const Stream stream = stream_of(job);
    const std::uint64_t capacity = 1 + random() % job.samples;
    LruEviction lru(job.samples);
    CountedRoom room(job.samples, capacity);
    std::list<SampleId> latest;
    for_each_use(stream, job.epochs, [&](SampleId id, Moment now) {
      const auto found = std::ranges::find(latest, id);
      ASSERT_EQ(room.use(lru, id, now), found != latest.end());
      if (found != latest.end()) latest.erase(found);
      latest.push_front(id);
      if (latest.size() > capacity) latest.pop_back();
    });
  }
}

TEST(EvictionTest, StaticKeepsThePlacement) {
  const Job job{.samples = 500, .global_batch = 10, .epochs = 3};
  const Stream stream = stream_of(job);
  const Placement placement = Placement::plan(500, 100, 1, [](SampleId) { return Bytes{1}; });
  const auto policy = make_eviction(Eviction::kStatic, placement, stream);
  CountedRoom room(500, 100);
  for_each_use(stream, 3, [&](SampleId id, Moment now) {
    ASSERT_EQ(room.use(*policy, id, now), now >= 500 && placement.is_home(id));
  });
  for (SampleId id = 0; id < 500; ++id) EXPECT_EQ(room.has(id), placement.is_home(id));
}

// In epochs with every sample once, all reuses span an epoch's end: no policy can have more hits than its capacity.
TEST(EvictionTest, OneLearnerGainsNothingByEvicting) {
  const Job job{.samples = 4000, .global_batch = 50, .epochs = 6};
  const Stream stream = stream_of(job);
  for (const std::uint64_t capacity : {500u, 1000u, 2000u}) {
    BeladyEviction belady(stream);
    EXPECT_EQ(hits(belady, stream, capacity), capacity * 5);
    LruEviction lru(job.samples);
    const double c = static_cast<double>(capacity) / 4000;
    EXPECT_NEAR(static_cast<double>(hits(lru, stream, capacity)) / (5 * 4000), c + (1 - c) * std::log(1 - c), 0.01);
  }
}

TEST(EvictionTest, BeladyHasMoreHitsThanFrequencyOnHostsThatShareNothing) {
  const Job job{.samples = 2000, .global_batch = 40, .world = 4, .rank = 1, .epochs = 20};
  const Stream stream = stream_of(job);
  const auto one = [](SampleId) { return Bytes{1}; };
  const Placement random_homes = Placement::plan(2000, 500, 1, one);
  const Placement most_used = Placement::plan_most_used(count_uses(stream), 500, 1, one);
  KeptHomes fixed(random_homes);
  KeptHomes frequency(most_used);
  BeladyEviction belady(stream);
  const std::uint64_t by_frequency = hits(frequency, stream, 500);
  EXPECT_GT(by_frequency, hits(fixed, stream, 500));
  EXPECT_GT(hits(belady, stream, 500), by_frequency * 11 / 10);
}

// Zipf's weights: drawn with replacement.
TEST(EvictionTest, BeladyHasMoreHitsThanTheOthersOfWeightedDraws) {
  Job job{.samples = 3000, .global_batch = 30, .epochs = 8};
  for (std::uint64_t i = 0; i < job.samples; ++i) job.weights.push_back(1.0 / static_cast<double>(i + 1));
  const Stream stream = stream_of(job);
  const auto one = [](SampleId) { return Bytes{1}; };
  const Placement most_used = Placement::plan_most_used(count_uses(stream), 300, 1, one);
  KeptHomes frequency(most_used);
  LruEviction lru(job.samples);
  BeladyEviction belady(stream);
  const std::uint64_t by_frequency = hits(frequency, stream, 300);
  EXPECT_GT(by_frequency, hits(lru, stream, 300));
  EXPECT_GT(hits(belady, stream, 300), by_frequency * 104 / 100);
}

// A room whose samples can not always go.
class BusyRoom : public CountedRoom {
 public:
  using CountedRoom::CountedRoom;
  bool evict(SampleId id) override {
    asked.push_back(id);
    return !busy.contains(id) && CountedRoom::evict(id);
  }
  std::set<SampleId> busy;
  std::vector<SampleId> asked;
};

TEST(EvictionTest, AVictimInUseStaysAndTheNextOneGoes) {
  LruEviction lru(10);
  BusyRoom room(10, 3);
  for (const SampleId id : {1u, 2u, 3u}) EXPECT_FALSE(room.use(lru, id, id));
  room.busy = {1};
  EXPECT_FALSE(room.use(lru, 4, 4));
  EXPECT_EQ(room.asked, (std::vector<SampleId>{1, 2}));
  EXPECT_TRUE(room.has(1) && room.has(3) && room.has(4));
  room.busy = {1, 3, 4};
  EXPECT_FALSE(room.use(lru, 5, 5));
  EXPECT_FALSE(room.has(5)) << "nobody could go: it passes through";
  room.busy.clear();
  EXPECT_FALSE(room.use(lru, 6, 6));
  EXPECT_FALSE(room.has(1)) << "it kept its place in the order";
  EXPECT_TRUE(room.has(6));
}

TEST(EvictionTest, FewSamplesGoForOneThatDoesNotFit) {
  class Holes : public BusyRoom {
   public:
    using BusyRoom::BusyRoom;
    bool take(SampleId id) override { return id != 99 && CountedRoom::take(id); }
  } room(100, 50);
  LruEviction lru(100);
  for (SampleId id = 0; id < 50; ++id) EXPECT_FALSE(room.use(lru, id, id));
  EXPECT_FALSE(room.use(lru, 99, 50));
  EXPECT_EQ(room.used(), 50 - 16u);
}

TEST(EvictionTest, ASampleThatDidNotArriveIsNoResident) {
  LruEviction lru(10);
  BusyRoom room(10, 2);
  for (const SampleId id : {1u, 2u}) (void)room.use(lru, id, id);
  (void)static_cast<CountedRoom&>(room).CountedRoom::evict(1);
  lru.lost(1);
  (void)room.use(lru, 3, 3);
  EXPECT_TRUE(room.asked.empty()) << "there was room";
  (void)room.use(lru, 4, 4);
  EXPECT_EQ(room.asked, (std::vector<SampleId>{2}));
}

TEST(EvictionTest, AfterAJumpVictimsAreThoseOfTheNewPlace) {
  const Job job{.samples = 300, .global_batch = 10, .world = 3, .epochs = 0};
  const Stream stream = stream_of(job);
  BeladyEviction belady(stream);
  BusyRoom room(300, 40);
  belady.restart(0);
  for_each_use(stream, 5, [&](SampleId id, Moment now) { (void)room.use(belady, id, now); });
  belady.restart(stream.moment(stream.batch(20), 0));
  room.asked.clear();
  NextUse next_use(stream);
  std::size_t victims = 0;
  const auto use = [&](SampleId used, Moment now) {
    std::vector<bool> before(300);
    for (SampleId id = 0; id < 300; ++id) before[id] = room.has(id);
    (void)room.use(belady, used, now);
    next_use.advance(now);
    Moment furthest = 0;
    for (SampleId id = 0; id < 300; ++id) furthest = std::max(furthest, before[id] ? next_use.of(id) : 0);
    for (const SampleId victim : room.asked) EXPECT_EQ(next_use.of(victim), furthest);
    victims += room.asked.size();
    room.asked.clear();
  };
  for (std::uint64_t number = 20; number < 40; ++number) {
    const BatchPlan batch = stream.batch(number);
    for (std::uint64_t i = 0; i < batch.count; ++i) use(stream.sample(batch, i), stream.moment(batch, i));
  }
  EXPECT_GT(victims, 0u);
}

}  // namespace
}  // namespace foreload
