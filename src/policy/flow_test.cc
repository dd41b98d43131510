// Fetch, prep and work that nobody waits for, on one machine under a virtual clock. Half of the samples are in memory,
// and the learner asks for 95 % of what storage, or the workers, can give, unless a test says otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <vector>

#include "base/sanitizer.h"
#include "policy/flow_simulation.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr double kLoad = 0.95;
constexpr std::uint64_t kWarm = 64;  // steps until the look-ahead is full

// All, or one of them where the code is instrumented: they are simulated hours.
template <typename T>
std::vector<T> some_of(std::initializer_list<T> all) {
  return kHasSanitizer ? std::vector<T>{*all.begin()} : std::vector<T>(all);
}

// Half of the samples, strewn.
bool strewn(std::uint64_t step, std::uint64_t index) {
  return ((step * 16 + index) * 0x9e3779b97f4a7c15ull >> 40) % 2 == 0;
}

// Half of them, but so many steps have all and then as many nothing.
std::function<bool(std::uint64_t, std::uint64_t)> clustered(std::uint64_t steps) {
  return [steps](std::uint64_t step, std::uint64_t) { return step / steps % 2 == 0; };
}

Duration scaled(double seconds) {
  return Duration(static_cast<std::int64_t>(1e9 * seconds));
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// The step of a learner that asks for this share of what the scene can give.
Duration step_for(const FlowScene& scene, double load) {
  const auto batch = static_cast<double>(scene.batch);
  const double fetch = batch / 2 * static_cast<double>(scene.sample) / scene.bytes_per_second;
  const double prep = batch * seconds(scene.prep) / scene.workers;
  return scaled(std::max(fetch, prep) / load);
}

FlowScene scene_of(std::function<bool(std::uint64_t, std::uint64_t)> cached) {
  FlowScene scene{.cached = std::move(cached)};
  scene.step = step_for(scene, kLoad);
  return scene;
}

FlowReport run(const FlowScene& scene) {
  return FlowSimulation(scene).run();
}

FlowScene with_background(FlowScene scene) {
  scene.fills = true;
  scene.rewrite = 3ms;
  return scene;
}

// The most reads of the stream that began in so many steps in a row, against what is usual.
double burst(const FlowScene& scene, const FlowReport& report, std::uint64_t steps) {
  std::uint64_t most = 0;
  for (std::uint64_t first = kWarm; first + steps <= scene.steps; ++first) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = first; i < first + steps; ++i) sum += report.started[i];
    most = std::max(most, sum);
  }
  const double usual = static_cast<double>(report.stream_reads * steps) / static_cast<double>(scene.steps);
  return static_cast<double>(most) / usual;
}

TEST(FlowTest, TheBatchNeededSoonestArrivesFirst) {
  for (const FlowScene& scene : {scene_of(strewn), scene_of(clustered(16)), with_background(scene_of(strewn))}) {
    const FlowReport report = run(scene);
    Time read{};
    Time published{};
    for (std::uint64_t step = 0; step < scene.steps; ++step) {
      // Two reads may overtake each other by what their latencies differ, two workers by what their samples do. What is
      // in memory may be prepared while others wait for bytes.
      const bool from_storage = !scene.cached(step, 0);
      if (!from_storage) continue;
      ASSERT_LE(read, report.bytes_complete[step] + scene.latency) << step;
      ASSERT_LE(published, report.published[step] + scene.latency + 2 * scene.prep) << step;
      read = std::max(read, report.bytes_complete[step]);
      published = std::max(published, report.published[step]);
    }
  }
}

TEST(FlowTest, TheLearnerWaitsRarelyAndNeverLong) {
  for (const std::uint64_t transit : some_of<std::uint64_t>({16, 64, 256})) {
    for (const auto& cached : {std::function(strewn), clustered(4), clustered(16), clustered(64)}) {
      for (const bool background : {false, true}) {
        FlowScene scene = background ? with_background(scene_of(cached)) : scene_of(cached);
        scene.transit = transit;
        const FlowReport report = run(scene);
        const Duration mean = report.elapsed / static_cast<std::int64_t>(scene.steps);
        EXPECT_LE(report.wait_quantile(0.99), 3 * mean);
        EXPECT_LE(report.wait_quantile(1), 5 * mean);
      }
    }
  }
}

TEST(FlowTest, ReadsAreSpreadOverTheSteps) {
  for (const auto& cached : {std::function(strewn), clustered(4), clustered(16)}) {
    const FlowScene scene = scene_of(cached);
    const FlowReport report = run(scene);
    EXPECT_LE(burst(scene, report, 8), 1.6);
    EXPECT_LE(seconds(report.waited()), 2 * seconds(scene.step)) << "the first batch, and hardly another";
  }
}

TEST(FlowTest, StorageIsBusyWhileSomethingIsWanted) {
  for (const Duration latency : {1ms, 20ms}) {
    for (const auto& cached : {std::function(strewn), clustered(8)}) {
      FlowScene scene = scene_of(cached);
      scene.step = {};
      scene.latency = latency;
      scene.prep = 100us;
      const FlowReport report = run(scene);
      const double busy = static_cast<double>(report.stream_reads * scene.sample) / scene.bytes_per_second;
      EXPECT_GE(busy / seconds(report.elapsed), 0.93) << "latency " << seconds(latency);
    }
  }
}

// Of the two that compete: what the learner waits more because of the other.
Duration harm(const FlowScene& scene) {
  FlowScene alone = scene;
  alone.fills = false;
  alone.rewrite = {};
  return run(scene).waited() - run(alone).waited();
}

TEST(FlowTest, FillingHomesMakesNobodyLate) {
  for (const std::uint64_t transit : some_of<std::uint64_t>({16, 32, 256})) {
    FlowScene scene = scene_of(strewn);
    scene.transit = transit;
    scene.fills = true;
    EXPECT_LE(harm(scene), 2 * scene.step) << "transit " << transit << ", of " << scene.steps << " steps";
  }
  for (const std::uint64_t steps : {4, 8, 16}) {
    FlowScene scene = scene_of(clustered(steps));
    scene.fills = true;
    EXPECT_LE(harm(scene), 2 * scene.step) << "clusters of " << steps;
  }
  FlowScene careless = scene_of(strewn);
  careless.transit = 16;
  careless.fills = careless.unasked = true;
  EXPECT_GE(harm(careless), 100 * careless.step) << "with no decision at all it would";
}

TEST(FlowTest, TheFirstBatchDoesNotWaitForFills) {
  FlowScene scene = scene_of([](auto, auto) { return false; });
  scene.transit = 8;  // less than the depth: storage would have places for others
  scene.steps = 4;
  const Duration alone = run(scene).waits[0];
  scene.fills = true;
  EXPECT_EQ(run(scene).waits[0], alone);
  scene.unasked = true;
  EXPECT_GT(run(scene).waits[0], alone);
}

TEST(FlowTest, FillsGetWhatStorageHasLeft) {
  for (const double load : some_of({0.2, 0.5, 0.8, 0.95})) {
    for (const auto& cached : {std::function(strewn), clustered(8)}) {
      FlowScene scene = scene_of(cached);
      scene.prep = 200us;
      scene.step = step_for(scene, load);
      scene.fills = true;
      const FlowReport report = run(scene);
      const double reads = seconds(report.elapsed) * scene.bytes_per_second / static_cast<double>(scene.sample);
      const double left = reads - static_cast<double>(report.stream_reads);
      EXPECT_GE(static_cast<double>(report.filled), 0.9 * left) << "load " << load;
    }
  }
}

// Workers are what is scarce, or storage is.
FlowScene rewriting_scene(unsigned workers, double storage) {
  FlowScene scene{.bytes_per_second = storage, .workers = workers, .cached = strewn};
  scene.prep = 200us * workers;
  scene.step = step_for(scene, kLoad);
  scene.rewrite = 5 * scene.prep;
  return scene;
}

TEST(FlowTest, RewritingMakesNobodyLate) {
  for (const unsigned workers : {1, 2, 4}) {
    for (const double storage : {200e6, 2e9}) {
      const FlowScene scene = rewriting_scene(workers, storage);
      EXPECT_LE(harm(scene), scene.step / 2) << workers << " workers";
    }
  }
  FlowScene careless = rewriting_scene(2, 2e9);
  careless.rewrite = 30ms;
  careless.step = step_for(careless, 0.8);
  EXPECT_LE(harm(careless), careless.step / 2) << "it takes longer than the ring lasts";
  careless.unasked = true;
  EXPECT_GE(harm(careless), 20 * careless.step);
}

TEST(FlowTest, RewritingGetsTheTimeThatWorkersHaveLeft) {
  for (const unsigned workers : {1, 2, 4}) {
    for (const double storage : {200e6, 2e9}) {
      const FlowScene scene = rewriting_scene(workers, storage);
      const FlowReport report = run(scene);
      EXPECT_GE(report.rewritten * 10, 8 * (report.prep_idle / scene.rewrite)) << workers << " workers, " << storage;
    }
  }
  FlowScene hungry = rewriting_scene(4, 200e6);
  hungry.step = {};  // it waits for bytes, and the workers have time
  const FlowReport report = run(hungry);
  EXPECT_GE(report.rewritten * 2, report.prep_idle / hungry.rewrite);
}

TEST(FlowTest, ALearnerThatPausesLeavesItsTimeToOthers) {
  FlowScene scene = with_background(scene_of(strewn));
  scene.rewrite = 40ms;  // while it steps, the ring does not last so long
  scene.pause = [](std::uint64_t step) { return step == 500 ? Duration(10s) : Duration{}; };
  const FlowReport report = run(scene);
  EXPECT_GE(report.filled, static_cast<std::uint64_t>(0.95 * 10 * scene.bytes_per_second) / scene.sample);
  EXPECT_GE(report.rewritten, 0.95 * 10 * scene.workers / seconds(scene.rewrite));
  EXPECT_LE(seconds(report.waited()), 10 * seconds(scene.step)) << "when it comes back";
}

}  // namespace
}  // namespace foreload
