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
#include "base/region.h"
#include "peers/mpi_job.h"
#include "tier/shared_arena.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSamples = 300;
constexpr Duration kPatience = 60s;  // far more than anything takes
const PeerKey kKey{.fingerprint = 11, .validators = 12, .roster = 13};

MpiPeers* peers = nullptr;

// Some of one piece, of many, and around a piece's end.
Bytes length_of(SampleId id) {
  constexpr Bytes kEdges[] = {MpiDesk::kPiece, MpiDesk::kPiece - 1, MpiDesk::kPiece + 1, 3 * MpiDesk::kPiece, 1};
  const SampleId kind = id / 4 % 13;  // the same on every host
  return kind < std::size(kEdges) ? kEdges[kind] : 1000 + id * 7919 % 150'000;
}
std::byte content(SampleId id, Bytes at) {
  return static_cast<std::byte>(id * 31 + at + (at >> 8) * 17);
}
bool is_whole(SampleId id, std::span<const std::byte> bytes) {
  for (Bytes i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != content(id, i)) return false;
  }
  return bytes.size() == length_of(id);
}
HostIndex home_of(SampleId id) {
  return static_cast<HostIndex>(id % peers->hosts());
}

// A host's arena, with the samples that it is home of; exposed while it lives.
class Shelf {
 public:
  explicit Shelf(const PeerKey& key = kKey)
      : key_(key), region_(*Region::map(SharedArena::region_bytes(options()), "a test")) {
    SampleId id = 0;
    const auto next = [&] { return id < kSamples ? std::optional(id++) : std::nullopt; };
    SharedArena::format(region_.bytes(), options(), next, length_of);
    arena_ = std::move(*SharedArena::open(region_.bytes(), options(), {}, [](MemberId) { return true; }));
    arena_->reserved_to(arena_->end());
    for (SampleId each = 0; each < kSamples; ++each) {
      if (home_of(each) == peers->host()) put(each);
    }
    EXPECT_TRUE(peers->expose(key_, region_.bytes(), kSamples).ok());
  }
  ~Shelf() { EXPECT_TRUE(withdraw()); }
  bool withdraw() { return peers->withdraw(key_, now() + kPatience); }

  std::span<std::byte> bytes_of(SampleId id) { return region_.bytes().subspan(slot(id).offset, length_of(id)); }
  SlotCopy slot(SampleId id) {
    return SlotCopy::parse(region_.bytes().subspan(SharedArena::slot_offset(id)).first<SlotCopy::kBytes>());
  }
  // Another life of the slot, with the same bytes.
  void revive(SampleId id) {
    auto* word = reinterpret_cast<std::uint64_t*>(region_.bytes().data() + SharedArena::slot_offset(id));
    std::atomic_ref(*word).fetch_add(std::uint64_t{1} << 48);
  }

 private:
  static SharedArenaOptions options() {
    Bytes homes = 0;
    for (SampleId id = 0; id < kSamples; ++id) homes += SharedArena::footprint(length_of(id));
    return {.samples = kSamples, .homes = homes};
  }
  void put(SampleId id) {
    std::span<std::byte> into;
    ASSERT_EQ(arena_->begin(id, length_of(id), into), SharedArena::Begun::kMine);
    for (Bytes i = 0; i < into.size(); ++i) into[i] = content(id, i);
    (void)arena_->commit(id, length_of(id));
  }

  PeerKey key_;
  Region region_;
  std::unique_ptr<SharedArena> arena_;
};

// All processes of the job come here.
std::vector<std::string> meet(const std::string& mine = "") {
  auto all = peers->exchange(mine, now() + kPatience);
  EXPECT_TRUE(all.ok());
  if (!all.ok()) std::abort();  // the others are somewhere else: nothing that follows would mean anything
  return std::move(*all);
}

// A sample from a host, by a deadline.
struct Got {
  PeerResult result = PeerResult::kUnreachable;
  std::vector<std::byte> bytes;
};
std::vector<Got> fetch(HostIndex host, const std::vector<SampleId>& ids, Time deadline, const PeerKey& key = kKey) {
  std::vector<Got> got(ids.size());
  std::vector<PeerWant> wants;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    got[i].bytes.resize(length_of(ids[i]));
    wants.push_back({.id = ids[i], .into = got[i].bytes, .token = i});
  }
  peers->fetch(host, key, wants, deadline);
  std::vector<PeerEnd> ends;
  while (ends.size() < ids.size() && now() < deadline + kPatience) peers->wait(ends, deadline + kPatience);
  EXPECT_EQ(ends.size(), ids.size());
  for (const PeerEnd& end : ends) got[end.token].result = end.result;
  return got;
}
Got fetch_one(HostIndex host, SampleId id, const PeerKey& key = kKey) {
  return std::move(fetch(host, {id}, now() + kPatience, key)[0]);
}
HostIndex neighbour() {
  return (peers->host() + 1) % peers->hosts();
}
SampleId sample_of(HostIndex host) {
  return host + peers->hosts() * 3;
}

TEST(PeersMpiTest, EverybodyGetsWhatAllExchange) {
  const std::string mine(peers->host() == 0 ? 1024 : peers->host(), static_cast<char>('a' + peers->host()));
  const auto all = meet(mine);
  ASSERT_EQ(all.size(), peers->hosts());
  EXPECT_EQ(all[peers->host()], mine);
  EXPECT_EQ(all[1], "b");
  EXPECT_EQ(all[0], std::string(1024, 'a'));
}

TEST(PeersMpiTest, WhatIsExchangedArrivesWhileOthersReadWithoutPause) {
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

TEST(PeersMpiTest, AHostThatComesLateToAnExchangeIsAskedAgainAndWaitedFor) {
  for (unsigned round = 0; round < 4; ++round) {
    if (round % peers->hosts() == peers->host()) std::this_thread::sleep_for(250ms);
    const auto all = meet(fmt::format("{} {}", round, peers->host()));
    for (HostIndex host = 0; host < peers->hosts(); ++host) EXPECT_EQ(all[host], fmt::format("{} {}", round, host));
  }
}

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

TEST(PeersMpiTest, AHostExposesAFewArenasAndIsToldWhenThereAreTooMany) {
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
    ASSERT_EQ(::kill(other, SIGCONT), 0);
    for (const SampleId id : ids) EXPECT_EQ(fetch_one(1, id).result, PeerResult::kHere) << "it is back";
    for (const Got& each : got) {
      EXPECT_TRUE(std::all_of(each.bytes.begin(), each.bytes.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
    }
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
  EXPECT_LE(share, 0.045) << "3 %, and as much again for a machine whose wake-ups are dear";
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
