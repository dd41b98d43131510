// Weighted draws, echo and partial shuffle in a running loader: what is delivered, what is fetched, what is refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "foreload/loader.h"
#include "loader/ledger.h"
#include "prep/jpeg_samples.h"

namespace foreload {
namespace {

// What all ranks see together.
Seen read_all(LoaderOptions options, Epoch epochs) {
  options.epochs = epochs;
  Seen seen;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    Loader loader = open(options);
    for (Epoch e = 0; e < epochs; ++e) EXPECT_TRUE(read_epoch(loader, seen));
  }
  return seen;
}

std::vector<double> some_weights(std::size_t count) {
  std::vector<double> weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(static_cast<double>(i % 5));
  return weights;
}

LoaderOptions weighted(const Ledger& ledger, std::size_t count, std::uint64_t draws = 0) {
  LoaderOptions options = ledger.options();
  options.weights = some_weights(count);
  options.epoch_samples = draws;
  return options;
}

LoaderOptions echoed(const Ledger& ledger, std::uint64_t times) {
  LoaderOptions options = ledger.options();
  options.echo = times;
  return options;
}

LoaderOptions partly(const Ledger& ledger, double share, std::uint64_t homes) {
  LoaderOptions options = ledger.options();
  options.reshuffle = share;
  options.homes = homes;
  return options;
}

std::string refusal(const LoaderOptions& options) {
  auto loader = Loader::open(options);
  return loader.ok() ? "" : loader.error().message;
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
}

TEST(LoaderOrderTest, EachRelaxationDeliversItsScheduleOnEveryWorld) {
  const Ledger ledger(103);
  std::vector<LoaderOptions> all{weighted(ledger, 103), weighted(ledger, 103, 250), echoed(ledger, 3),
                                 partly(ledger, 0.25, 3), partly(ledger, 0, 2)};
  all.push_back(weighted(ledger, 103, 90));
  all.back().echo = 2;
  all.push_back(echoed(ledger, 4));
  all.back().echo_window = 50;
  for (LoaderOptions& options : all) {
    options.global_batch = 24;
    for (const LastBatch rule : {LastBatch::kRagged, LastBatch::kPad, LastBatch::kDrop}) {
      options.last_batch = rule;
      options.world = 1;
      const Seen one = read_all(options, 2);
      EXPECT_EQ(one, reference(103, options, 2));
      options.world = 3;
      EXPECT_EQ(read_all(options, 2), reference(103, options, 2));
      options.world = 1;
      options.cache = false;
      EXPECT_EQ(read_all(options, 2), one);
      options.cache = true;
    }
  }
}

TEST(LoaderOrderTest, EchoedBytesAreFetchedOnce) {
  constexpr std::uint64_t kSamples = 600;
  const Ledger ledger(kSamples);
  for (const std::uint64_t window : {0U, 200U, 600U}) {  // far more than look ahead has leases on
    LoaderOptions options = echoed(ledger, 4);
    options.echo_window = window;
    options.cache = false;
    options.epochs = 1;
    Loader loader = open(options);
    Seen seen;
    ASSERT_TRUE(read_epoch(loader, seen));
    std::map<SampleId, int> times;
    for (const auto& [place, id] : seen) ++times[id];
    for (SampleId id = 0; id < kSamples; ++id) EXPECT_EQ(times[id], 4) << id;
    const EpochStats epoch = loader.stats().epochs.at(0);
    EXPECT_EQ(epoch.samples, 4 * kSamples);
    EXPECT_EQ(epoch.source_bytes, kSamples * Ledger::kLength) << "window " << window;
    EXPECT_EQ(epoch.memory_bytes, 3 * kSamples * Ledger::kLength);
    EXPECT_TRUE(epoch.padded.empty());
  }
}

// Holds take what is left of the budget, and go when something must pass: slower, never stuck.
TEST(LoaderOrderTest, EchoWithoutRoomForItsWindowGoesOn) {
  const Ledger ledger(3000);
  LoaderOptions options = echoed(ledger, 3);
  options.echo_window = 3000;
  options.batch = 64;
  options.cache = false;
  options.workers = 1;
  const Seen expected = reference(3000, options, 1);
  int opened = 0;
  for (Bytes memory = 2_MiB; memory < 16_MiB && opened < 4; memory += 128_KiB) {
    options.memory = memory;
    auto loader = Loader::open(options);
    if (!loader.ok()) continue;  // less than anything needs
    ++opened;
    Seen seen;
    ASSERT_TRUE(read_epoch(*loader, seen));
    EXPECT_EQ(seen, expected);
    const Bytes fetched = loader->stats().epochs.at(0).source_bytes;
    EXPECT_GE(fetched, 3000 * Ledger::kLength);
    EXPECT_LE(fetched, 3 * 3000 * Ledger::kLength);
  }
  EXPECT_EQ(opened, 4);
}

constexpr std::size_t kLong = 600'000;

std::size_t length_of(SampleId id) {
  return id % 500 == 499 ? kLong : 900 + id % 7 * 30;
}

// How often each sample came; nothing when the budget has no room for a long one.
std::optional<std::map<SampleId, int>> count_ragged(Loader& loader) {
  std::map<SampleId, int> times;
  for (;;) {
    auto batch = loader.next();
    if (!batch.ok() && batch.error().code == Code::kNoMemory) return std::nullopt;
    EXPECT_TRUE(batch.ok()) << batch.error().message;
    if (!batch.ok() || !*batch) return times;
    for (std::size_t i = 0; i < (*batch)->size(); ++i) {
      const SampleId id = (*batch)->ids()[i];
      const std::uint64_t first = (*batch)->offsets()[i];
      EXPECT_EQ((*batch)->offsets()[i + 1] - first, length_of(id));
      EXPECT_EQ((*batch)->data()[first], static_cast<std::byte>(id));
      ++times[id];
    }
  }
}

// Held samples lie all over transit, so that a long one finds no room in one piece: then they go.
TEST(LoaderOrderTest, ALongSampleDrivesHoldsOut) {
  constexpr std::uint64_t kSamples = 1000;
  const TestFolder folder;
  for (std::uint64_t id = 0; id < kSamples; ++id) {
    folder.write(fmt::format("s{:04}.bin", id), std::string(length_of(id), static_cast<char>(id)));
  }
  LoaderOptions options;
  options.dataset = {folder.path()};
  options.batch = 2;
  options.echo = 4;
  options.echo_window = kSamples;
  options.chain = {ragged(DType::kU8, kLong, {.headerless = true})};
  options.cache = false;
  options.workers = 1;
  int done = 0;
  for (Bytes memory = 4_MiB; memory < 32_MiB && done < 4; memory += 128_KiB) {
    options.memory = memory;
    auto loader = Loader::open(options);
    if (!loader.ok()) continue;
    const auto times = count_ragged(*loader);
    if (!times) continue;
    ++done;
    for (SampleId id = 0; id < kSamples; ++id) EXPECT_EQ(times->at(id), 4) << id;
  }
  EXPECT_EQ(done, 4);
}

TEST(LoaderOrderTest, EachRepeatIsAugmentedAnew) {
  const TestFolder folder;
  for (std::uint64_t i = 0; i < 12; ++i) {
    const auto bytes = make_jpeg({.seed = 1 + i});
    folder.write("p" + std::to_string(i) + ".jpg", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  LoaderOptions options;
  options.dataset = {folder.path()};
  options.batch = 4;
  options.echo = 3;
  options.chain = {random_resized_crop(32)};
  options.dtype = DType::kU8;
  options.memory = 64_MiB;
  Loader loader = open(options);
  std::map<SampleId, std::set<std::string>> looks;
  for (;;) {
    auto batch = loader.next();
    ASSERT_TRUE(batch.ok()) << batch.error().message;
    if (!*batch) break;
    const Bytes size = (*batch)->sample_spec().bytes();
    for (std::size_t i = 0; i < (*batch)->size(); ++i) {
      const auto bytes = (*batch)->data().subspan(i * size, size);
      looks[(*batch)->ids()[i]].emplace(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  ASSERT_EQ(looks.size(), 12U);
  for (const auto& [id, different] : looks) EXPECT_EQ(different.size(), 3U) << "sample " << id;
}

TEST(LoaderOrderTest, ResumeContinuesExactlyAlsoOnAnotherWorld) {
  const Ledger ledger(120);
  for (LoaderOptions options : {weighted(ledger, 120, 200), echoed(ledger, 3), partly(ledger, 0.3, 4)}) {
    options.global_batch = 12;
    const Seen expected = reference(120, options, 2);
    State state;
    Seen seen;
    {
      Loader loader = open(options);
      ASSERT_TRUE(read_epoch(loader, seen, 5));
      state = loader.position();
    }
    EXPECT_EQ(state.position, 60U);
    options.world = 2;
    options.last_batch = LastBatch::kAuto;
    for (options.rank = 0; options.rank < 2; ++options.rank) {
      Loader loader = open(options);
      ASSERT_TRUE(loader.seek(state).ok());
      EXPECT_TRUE(read_epoch(loader, seen));
      EXPECT_TRUE(read_epoch(loader, seen));
    }
    EXPECT_EQ(seen, expected);
  }
}

// Each of four ranks has a cache for its quarter: with a full shuffle it sees another quarter in every epoch.
TEST(LoaderOrderTest, SamplesThatStayAtHomeAreReadOnce) {
  constexpr std::uint64_t kSamples = 2000;
  const Ledger ledger(kSamples);
  std::map<double, Bytes> fetched;  // by rank 1, beyond its quarter
  for (const double share : {0.0, 0.2, 1.0}) {
    LoaderOptions options = ledger.options(4);
    options.reshuffle = share;
    options.world = 4;
    options.rank = 1;
    options.workers = 1;
    options.epochs = 3;
    for (Bytes memory = 2_MiB; memory < 32_MiB; memory += 32_KiB) {  // until its quarter fits
      options.memory = memory;
      auto loader = Loader::open(options);
      if (!loader.ok()) continue;
      const Bytes quarter = kSamples / 4 * (Ledger::kLength + 16);
      if (loader->stats().cache_capacity < quarter) continue;
      Seen seen;
      for (int e = 0; e < 3; ++e) ASSERT_TRUE(read_epoch(*loader, seen));
      const auto epochs = loader->stats().epochs;
      for (const EpochStats& epoch : epochs) {
        const Bytes read = epoch.memory_bytes + epoch.disk_bytes + epoch.source_bytes;
        EXPECT_EQ(read, epoch.samples * Ledger::kLength + epoch.filled_bytes);
      }
      if (share == 0) {
        EXPECT_EQ(epochs[1].source_bytes + epochs[2].source_bytes, 0U);
      }
      // All together: what a home needs in the next epoch is read in this one if storage has nothing else to do.
      const Bytes all = epochs[0].source_bytes + epochs[1].source_bytes + epochs[2].source_bytes;
      fetched[share] = all - kSamples / 4 * Ledger::kLength;
      break;
    }
  }
  ASSERT_EQ(fetched.size(), 3U);
  const Bytes both = 2 * kSamples / 4 * Ledger::kLength;
  EXPECT_EQ(fetched[0], 0U);
  // Those of other homes, and once each those of its own that were away in the epochs before.
  constexpr double kAway = 0.2 * 3 / 4;
  const double expected = kAway + kAway * (1 - kAway * kAway) / 2;
  EXPECT_NEAR(static_cast<double>(fetched[0.2]) / static_cast<double>(both), expected, 0.04);
  EXPECT_GT(fetched[1], both / 2);
}

TEST(LoaderOrderTest, ABatchMayBeOneSampleManyTimes) {
  const Ledger ledger(3);
  LoaderOptions options = ledger.options(45'000);
  options.weights = {0, 1, 0};
  options.epoch_samples = 100'000;
  options.memory = 512_MiB;
  for (const bool cache : {true, false}) {
    options.cache = cache;
    Loader loader = open(options);
    std::uint64_t samples = 0;
    for (;;) {
      auto batch = loader.next();
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      if (!*batch) break;
      for (const SampleId id : (*batch)->ids()) ASSERT_EQ(id, 1U);
      samples += (*batch)->size();
    }
    EXPECT_EQ(samples, 100'000U);
  }
}

TEST(LoaderOrderTest, AStateOfAnotherOrderIsRefusedWithBothNamed) {
  const Ledger ledger(60);
  const auto state_of = [](const LoaderOptions& options) { return open(options).position(); };
  const auto told = [&](const LoaderOptions& saved, const LoaderOptions& here) {
    Loader loader = open(here);
    const Status status = loader.seek(state_of(saved));
    return status.ok() ? std::string() : status.error().message;
  };
  const LoaderOptions plain = ledger.options();
  expect_words(told(plain, echoed(ledger, 4)), {"plan is every sample once", "here it is echo 4 in windows of 8"});
  expect_words(told(echoed(ledger, 2), echoed(ledger, 4)), {"echo 2 in windows of 8", "echo 4 in windows of 8"});
  expect_words(told(partly(ledger, 0.25, 2), partly(ledger, 0.25, 3)),
               {"reshuffle 0.25 with 2 homes", "reshuffle 0.25 with 3 homes"});
  expect_words(told(partly(ledger, 0.5, 1), plain), {"reshuffle 0.5 with 1 home", "every sample once"});
  expect_words(told(weighted(ledger, 60), plain),
               {"plan is most likely one with weights", "here it is global batch 8", "every sample once"});
  LoaderOptions other = weighted(ledger, 60);
  other.weights[5] += 3;
  expect_words(told(other, weighted(ledger, 60)),
               {"plan is most likely one with other weights", "here it is global batch 8", "weights "});
  expect_words(told(weighted(ledger, 60, 70), weighted(ledger, 60)), {"70 draws", "a draw per sample"});
  LoaderOptions echo = weighted(ledger, 60);
  echo.echo = 3;
  expect_words(told(echo, weighted(ledger, 60)), {"echo 3 in windows of 8", "here it is weights "});
  expect_words(told(plain, weighted(ledger, 60, 70)), {"every sample once", "weights ", "70 draws"});
  LoaderOptions larger = echoed(ledger, 2);
  larger.echo_window = 8;
  larger.batch = 16;
  expect_words(told(echoed(ledger, 2), larger), {"global batch 8", "global batch 16"});
  EXPECT_EQ(told(weighted(ledger, 60, 70), weighted(ledger, 60, 70)), "");
}

TEST(LoaderOrderTest, WhatContradictsIsRefusedWithBothNamed) {
  const Ledger ledger(60);
  LoaderOptions options = weighted(ledger, 60);
  options.shuffle = false;
  expect_words(refusal(options), {"weights", "shuffle"});
  options = weighted(ledger, 60);
  options.reshuffle = 0.5;
  expect_words(refusal(options), {"weights", "reshuffle 0.5"});
  expect_words(refusal(weighted(ledger, 59)), {"weights: there are 59", "60 samples"});
  options = weighted(ledger, 60);
  options.weights[7] = -2;
  expect_words(refusal(options), {"weights", "sample 7 is -2"});
  options = ledger.options();
  options.epoch_samples = 5;
  expect_words(refusal(options), {"epoch_samples 5", "weights"});
  options = echoed(ledger, 2);
  options.reshuffle = 0.5;
  expect_words(refusal(options), {"echo 2", "reshuffle 0.5"});
  expect_words(refusal(echoed(ledger, 0)), {"echo 0", "1 … 1000"});
  options = ledger.options();
  options.echo_window = 4;
  expect_words(refusal(options), {"echo_window 4", "echo"});
  expect_words(refusal(partly(ledger, 1.5, 0)), {"reshuffle 1.5", "0 … 1"});
  expect_words(refusal(partly(ledger, 1, 4)), {"homes 4", "reshuffle"});
  options = partly(ledger, 0.5, 4);
  options.shuffle = false;
  expect_words(refusal(options), {"reshuffle 0.5", "shuffle"});
}

}  // namespace
}  // namespace foreload
