// Runs as an MPI job of two or more: every process makes the same tests at the same time. See tests/peers_mpi_test.py.
#include "peers/peers_mpi.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "peers/mpi_testing.h"

namespace foreload {
namespace {

TEST(PeersMpiTest, AllReadFromAllAtTheSameTimeAndTheBytesAreTheSamples) {
  Shelf shelf;
  meet();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::uint64_t amount = std::getenv("FORELOAD_SOAK") != nullptr ? 10'000 : 1'000;
  std::map<std::uint64_t, std::pair<SampleId, std::vector<std::byte>>> wanted;
  std::vector<PeerEnd> ends;
  std::uint64_t asked = 0;
  for (std::uint64_t ended = 0; ended < amount;) {
    while (asked < amount && wanted.size() < 200) {
      const HostIndex host = random() % peers->hosts();
      std::vector<PeerWant> wants;
      for (unsigned i = random() % 40 + 1; i > 0 && asked < amount; --i, ++asked) {
        const SampleId id = host + random() % (kSamples / peers->hosts()) * peers->hosts();
        auto& [sample, bytes] = wanted[asked];
        sample = id;
        bytes.resize(length_of(id));
        wants.push_back({.id = id, .into = bytes, .token = asked});
      }
      peers->fetch(host, kKey, wants, now() + kPatience);
    }
    ends.clear();
    peers->wait(ends, now() + kPatience);
    ASSERT_FALSE(ends.empty());
    for (const PeerEnd& end : ends) {
      ASSERT_EQ(wanted.count(end.token), 1u) << "one end each";
      const auto& [id, bytes] = wanted[end.token];
      EXPECT_EQ(end.result, PeerResult::kHere) << id;
      EXPECT_TRUE(is_whole(id, bytes)) << id;
      wanted.erase(end.token);
      ++ended;
    }
  }
  meet();
  EXPECT_TRUE(peers->take_warnings().empty());
}

TEST(PeersMpiTest, WhatItsHomeDoesNotHoldIsAbsent) {
  Shelf shelf;
  meet();
  EXPECT_EQ(fetch_one(neighbour(), sample_of(neighbour())).result, PeerResult::kHere);
  EXPECT_EQ(fetch_one(neighbour(), sample_of(peers->host())).result, PeerResult::kAbsent);
  EXPECT_EQ(fetch_one(neighbour(), kSamples).result, PeerResult::kWrong) << "there is no such sample";
  meet();
}

TEST(PeersMpiTest, AnotherDatasetOrRosterIsRefused) {
  Shelf shelf;
  meet();
  PeerKey key = kKey;
  key.fingerprint = 99;
  EXPECT_EQ(fetch_one(neighbour(), 1, key).result, PeerResult::kRefused);
  key = kKey;
  key.roster = 99;
  EXPECT_EQ(fetch_one(neighbour(), 1, key).result, PeerResult::kRefused);
  EXPECT_TRUE(peers->take_warnings().empty()) << "it may come to have them";
  meet();
}

TEST(PeersMpiTest, AFlippedBitIsFound) {
  Shelf shelf;
  const SampleId mine = sample_of(peers->host());
  shelf.bytes_of(mine)[length_of(mine) / 2] ^= std::byte{4};
  meet();
  const SampleId theirs = sample_of(neighbour());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fetch_one(neighbour(), theirs).result, PeerResult::kWrong);
  EXPECT_EQ(fetch_one(neighbour(), theirs + peers->hosts()).result, PeerResult::kHere) << "the others are whole";
  static std::size_t times = 1;
  EXPECT_EQ(peers->take_warnings().size(), std::exchange(times, 0)) << "once";
  meet();
}

TEST(PeersMpiTest, ASlotThatChangesDuringTheReadIsNotBelieved) {
  Shelf shelf;
  SampleId large = peers->host();
  while (length_of(large) != 3 * MpiDesk::kPiece) large += peers->hosts();
  const auto all = meet(std::to_string(large));
  std::atomic<bool> stopping = false;
  std::thread changes([&] {
    while (!stopping) shelf.revive(large);
  });
  const SampleId theirs = std::stoul(all[neighbour()]);
  bool seen = false;
  for (const Time until = now() + kPatience; !seen && now() < until;) {
    const Got got = fetch_one(neighbour(), theirs);
    seen = got.result == PeerResult::kAbsent;
    EXPECT_TRUE(seen || got.result == PeerResult::kHere) << "between two changes";
  }
  EXPECT_TRUE(seen);
  meet();
  stopping = true;
  changes.join();
  meet();
  EXPECT_EQ(fetch_one(neighbour(), theirs).result, PeerResult::kHere) << "now it rests";
  meet();
}

TEST(PeersMpiTest, AnArenaIsTakenBackWhileOthersReadIt) {
  for (int round = 0; round < 5; ++round) {
    auto shelf = std::make_unique<Shelf>();
    meet();
    std::atomic<bool> gone = false;
    std::thread leaves([&] {
      std::this_thread::sleep_for(20ms);
      shelf.reset();  // and its memory
      gone = true;
    });
    bool refused = false;
    for (const Time until = now() + kPatience; !(refused && gone) && now() < until;) {
      const std::vector<SampleId> ids(20, sample_of(neighbour()));
      for (const Got& got : fetch(neighbour(), ids, now() + kPatience)) {
        const bool here = got.result == PeerResult::kHere;
        refused = refused || got.result == PeerResult::kRefused;
        EXPECT_TRUE(here || got.result == PeerResult::kAbsent || got.result == PeerResult::kRefused);
        EXPECT_TRUE(!here || is_whole(ids[0], got.bytes));
      }
    }
    leaves.join();
    EXPECT_TRUE(refused && gone);
    meet();
  }
  EXPECT_TRUE(peers->take_warnings().empty());
}

TEST(PeersMpiTest, NothingIsBegunAfterItsDeadline) {
  Shelf shelf;
  meet();
  const auto got = fetch(neighbour(), {sample_of(neighbour())}, now() - 1s);
  EXPECT_EQ(got[0].result, PeerResult::kUnreachable);
  static std::size_t times = 1;
  EXPECT_EQ(peers->take_warnings().size(), std::exchange(times, 0)) << "once";
  meet();
}

// With gets that the machine carries out by itself a stopped host is read as any other; over a network of sockets it
// does not answer.
TEST(PeersMpiTest, AStoppedHostCostsOneDeadlineAndWritesNothingLater) {
  const bool sockets = std::getenv("FORELOAD_TEST_SOCKETS") != nullptr;
  Shelf shelf;
  const auto pids = meet(std::to_string(::getpid()));
  if (peers->host() == 0) {
    const pid_t other = std::stoi(pids[1]);
    ASSERT_EQ(::kill(other, SIGSTOP), 0);
    std::vector<SampleId> ids;
    for (SampleId id = 1; id < kSamples; id += peers->hosts()) ids.push_back(id);
    const Time deadline = now() + 500ms;
    auto got = fetch(1, ids, deadline);
    EXPECT_LT(now() - deadline, 30s) << "a little later at most";
    std::size_t late = 0;
    for (Got& each : got) {
      late += each.result == PeerResult::kUnreachable ? 1 : 0;
      std::fill(each.bytes.begin(), each.bytes.end(), std::byte{0x5a});
    }
    EXPECT_TRUE(!sockets || late == ids.size()) << late;
    for (int again = 0; sockets && again < 3; ++again) {
      const Time far = now() + kPatience;
      for (const Got& each : fetch(1, ids, far)) EXPECT_EQ(each.result, PeerResult::kUnreachable);
      EXPECT_LT(now(), far) << "it is known not to answer";
      std::this_thread::sleep_for(PeerHealth::kFirstPause);
    }
    ASSERT_EQ(::kill(other, SIGCONT), 0);
    for (const Time until = now() + kPatience; now() < until && fetch_one(1, 1).result != PeerResult::kHere;) {
      std::this_thread::sleep_for(10ms);
    }
    for (const SampleId id : ids) EXPECT_EQ(fetch_one(1, id).result, PeerResult::kHere) << "it is back";
    for (const Got& each : got) {
      EXPECT_TRUE(std::all_of(each.bytes.begin(), each.bytes.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
    }
    (void)peers->take_warnings();
  }
  meet();
}

// Over sockets with little room: see tests/peers_mpi_test.py.
TEST(PeersMpiTest, NotesToAStoppedHostDoNotPileUp) {
  if (std::getenv("FORELOAD_TEST_SMALL_SOCKETS") == nullptr) GTEST_SKIP() << "sockets take them all";
  Shelf shelf;
  const auto pids = meet(std::to_string(::getpid()));
  if (peers->host() == 0) {
    const pid_t other = std::stoi(pids[1]);
    // The first get of all makes a lock inside of MPI, which waits for that host.
    EXPECT_EQ(fetch_one(1, sample_of(1)).result, PeerResult::kHere);
    ASSERT_EQ(::kill(other, SIGSTOP), 0);
    (void)fetch(1, {sample_of(1)}, now() + 100ms);  // one: of many, MPI itself waits for room
    std::this_thread::sleep_for(4s);                // while its get asks for hurry
    const std::size_t unsent = peers->unsent();
    fmt::print("{} notes are not sent\n", unsent);
    EXPECT_LE(unsent, 4u) << "one of a kind";
    EXPECT_GT(unsent, 0u) << "or this shows nothing";
    ASSERT_EQ(::kill(other, SIGCONT), 0);
    (void)peers->take_warnings();
  }
  meet();
}

TEST(PeersMpiTest, AHostAloneHasNobodyToReadFrom) {
  if (peers->hosts() > 1) GTEST_SKIP() << "it is not";
  EXPECT_EQ(meet("mine"), std::vector<std::string>{"mine"});
  Shelf shelf;
  EXPECT_EQ(fetch_one(0, 1).result, PeerResult::kRefused);
}

TEST(PeersMpiTest, AWakeEndsAWait) {
  std::vector<PeerEnd> ends;
  std::thread waker([] {
    std::this_thread::sleep_for(50ms);
    peers->wake();
  });
  const Time start = now();
  peers->wait(ends, start + kPatience);
  EXPECT_LT(now() - start, kPatience / 2);
  EXPECT_TRUE(ends.empty());
  waker.join();
}

TEST(PeersMpiTest, WithoutWorkItTakesAFewPercentOfACore) {
  Shelf shelf;
  meet();
  std::this_thread::sleep_for(200ms);
  const double before = cpu_seconds();
  std::this_thread::sleep_for(4s);
  const double share = (cpu_seconds() - before) / 4;
  fmt::print("host {}: {:.2f} % of a core without work\n", peers->host(), 100 * share);
  EXPECT_LE(share, 0.03);
  meet();
}

TEST(PeersMpiTest, MpiIsStartedOnce) {
  EXPECT_FALSE(MpiPeers::open().ok());
}

// For a test that kills: reads from the neighbour until the end, once its process is to be found in the folder "pid".
int hold() {
  Shelf shelf;
  meet();
  std::filesystem::create_directories("pid");
  std::ofstream(fmt::format("pid/{}", ::getpid())).flush();
  for (const Time until = now() + kPatience; now() < until;) {
    (void)fetch(neighbour(), {sample_of(neighbour())}, now() + kPatience);
  }
  return 0;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto opened = foreload::MpiPeers::open();
  if (!opened.ok()) {
    fmt::print(stderr, "{}\n", opened.error().message);
    return 2;
  }
  foreload::peers = opened->get();
  if (argc > 1 && std::string_view(argv[1]) == "--hold") return foreload::hold();
  return RUN_ALL_TESTS();
}
