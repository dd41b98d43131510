// Made by all processes of an MPI job: see peers_mpi_test.cc.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>

#include "peers/mpi_job.h"
#include "peers/mpi_testing.h"

namespace foreload {
namespace {

TEST(MpiExchangeTest, EverybodyGetsWhatAllExchange) {
  const std::string mine(peers->host() == 0 ? 1024 : peers->host(), static_cast<char>('a' + peers->host()));
  const auto all = meet(mine);
  ASSERT_EQ(all.size(), peers->hosts());
  EXPECT_EQ(all[peers->host()], mine);
  EXPECT_EQ(all[1], "b");
  EXPECT_EQ(all[0], std::string(1024, 'a'));
}

TEST(MpiExchangeTest, WhatIsExchangedArrivesWhileOthersReadWithoutPause) {
  Shelf shelf;
  meet();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Duration longest{};
  const unsigned rounds = std::getenv("FORELOAD_SOAK") != nullptr ? 1'000 : 25;
  for (unsigned round = 0; round < rounds; ++round) {
    for (const Time until = now() + std::chrono::microseconds(random() % 5'000); now() < until;) {
      EXPECT_EQ(fetch_one(neighbour(), sample_of(neighbour())).result, PeerResult::kHere);
    }
    const Time start = now();
    const auto all = meet(fmt::format("{} {}", round, peers->host()));
    longest = std::max(longest, now() - start);
    for (HostIndex host = 0; host < peers->hosts(); ++host) EXPECT_EQ(all[host], fmt::format("{} {}", round, host));
  }
  fmt::print("host {}: the longest exchange took {:.0f} ms\n", peers->host(), 1e3 * seconds(longest));
}

TEST(MpiExchangeTest, AHostThatComesLateToAnExchangeIsAskedAgainAndWaitedFor) {
  for (unsigned round = 0; round < 4; ++round) {
    if (round % peers->hosts() == peers->host()) std::this_thread::sleep_for(250ms);
    const auto all = meet(fmt::format("{} {}", round, peers->host()));
    for (HostIndex host = 0; host < peers->hosts(); ++host) EXPECT_EQ(all[host], fmt::format("{} {}", round, host));
  }
}

TEST(MpiExchangeTest, AHostExposesAFewArenasAndIsToldWhenThereAreTooMany) {
  constexpr Bytes kPage = 4096;
  const Region region = *Region::map((MpiJob::kMostExposed + 1) * kPage, "a test");
  const auto key = [](std::size_t i) { return PeerKey{.fingerprint = 100 + i}; };
  const auto expose = [&](std::size_t i) { return peers->expose(key(i), region.bytes().subspan(i * kPage, kPage), 0); };
  for (std::size_t i = 0; i < MpiJob::kMostExposed; ++i) EXPECT_TRUE(expose(i).ok());
  EXPECT_EQ(expose(0).error().code, Code::kInvalid) << "it is exposed already";
  EXPECT_EQ(expose(MpiJob::kMostExposed).error().code, Code::kNoMemory);
  EXPECT_TRUE(peers->withdraw(key(7), now() + kPatience));
  EXPECT_TRUE(expose(MpiJob::kMostExposed).ok());
  for (std::size_t i = 0; i <= MpiJob::kMostExposed; ++i) EXPECT_TRUE(peers->withdraw(key(i), now() + kPatience));
  meet();
}

}  // namespace
}  // namespace foreload
