// What a loader takes of its host, and gives back: when it is closed, when it can not be opened, when batches outlive
// it.
#include <fcntl.h>

#include <cstring>
#include <random>

#include "loader/host_learner.h"
#include "loader/seams.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 600;

class LoaderSeatTest : public testing::Test {
 protected:
  LoaderOptions options(Bytes memory = 256_MiB) const { return in_host(ledger_, host_, memory); }

  const Ledger ledger_{kSamples};
  const std::string host_ = fresh_host();
};

// In a process of its own: the parent of forked children has no threads.
int in_child(const std::function<int()>& body) {
  HostChild child([&](const HostChild::Tell& tell, int) { tell({.what = body()}); });
  const auto told = child.next(std::chrono::seconds(120));
  return told ? told->what : -100;
}

TEST_F(LoaderSeatTest, ValidationLoadersThatAreClosedLeaveNothing) {
  EXPECT_EQ(0, in_child([&] {
              auto train = Loader::open(options());
              if (!train.ok() || !train->next().ok()) return 1;
              Control& control = (*Member::join(host_, {}))->control();
              const Taken before = taken(control);
              for (int round = 0; round < soak(200, 20); ++round) {
                auto validation = Loader::open(options());
                if (!validation.ok() || !validation->next().ok()) return 2;
              }
              return comes_to(control, before) ? 0 : 3;
            }));
}

// Four ranks of which each needs more than an eighth of the memory.
TEST_F(LoaderSeatTest, AHostWithLessRoomThanTheOthersCountOnSaysSoOnce) {
  EXPECT_EQ(0, in_child([&] {
              const auto warnings_of = [&](Bytes memory) {
                const RosterHost host{.learners = 4, .memory = memory / 2};
                LoaderOptions own = options(memory);
                own.host = fresh_host();
                own.world = 8;
                own.local_world = 4;
                int warnings = 0;
                own.warn = [&](const std::string& text) { warnings += text.find("count on") != std::string::npos; };
                auto loader = open_with_seams(own, {.roster = Roster::create({host, host}).value()});
                for (int i = 0; i < 3; ++i) {
                  if (!loader.ok() || !loader->next().ok()) return -1;
                }
                return warnings;
              };
              return warnings_of(18_MiB) == 1 && warnings_of(256_MiB) == 0 ? 0 : 1;
            }));
}

TEST_F(LoaderSeatTest, ALoaderThatCanNotBeOpenedLeavesNothing) {
  EXPECT_EQ(0, in_child([&] {
              std::vector<Loader> loaders;
              const LoaderOptions small = options(64_MiB);
              auto first = Loader::open(small);
              if (!first.ok()) return 1;
              Control& control = (*Member::join(host_, {}))->control();
              for (int i = 0; i < 300; ++i) {
                const Taken before = taken(control);
                auto next = Loader::open(small);
                if (next.ok()) {
                  loaders.push_back(std::move(*next));
                  continue;
                }
                if (next.error().code != Code::kNoMemory) return 2;
                return comes_to(control, before) ? 0 : 3;
              }
              return 4;
            }));
}

TEST_F(LoaderSeatTest, ABatchThatOutlivesItsLoaderKeepsItsMemoryAndItsShareOfTheBudget) {
  EXPECT_EQ(0, in_child([&] {
              std::optional<Loader> loader(*Loader::open(options()));
              auto got = loader->next();
              if (!got.ok()) return 1;
              std::optional<Batch> batch = std::move(*got);
              const auto data = batch->data();
              const std::vector<std::byte> before(data.begin(), data.end());
              const auto ring = [](Control& control) {
                Bytes bytes = 0;
                for (const ObjectInfo& object : control.objects()) {
                  if (object.key.kind == ObjectKey::Kind::kRing) bytes += object.reserved;
                }
                return bytes;
              };
              Control& control = (*Member::join(host_, {}))->control();
              const Bytes reserved = ring(control);
              loader.reset();
              if (ring(control) != reserved) return 2;
              if (std::memcmp(batch->data().data(), before.data(), before.size()) != 0) return 3;
              const auto member = *Member::join(host_, {});
              batch.reset();
              return ring(member->control()) == 0 ? 0 : 4;
            }));
}

// R18: what a forked child does with its copy of a batch harms nothing that the child has opened since.
TEST_F(LoaderSeatTest, AForkedChildThatDropsABatchClosesNothingOfItsOwn) {
  EXPECT_EQ(0, in_child([&] {
              std::optional<Loader> loader(*Loader::open(options()));
              auto got = loader->next();
              if (!got.ok()) return 1;
              std::optional<Batch> batch = std::move(*got);
              loader.reset();  // the batch is all that this process has of the host
              const pid_t child = ::fork();
              if (child == 0) {
                std::vector<int> files;
                for (int i = 0; i < 64; ++i) files.push_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
                batch.reset();
                for (const int file : files) {
                  if (::fcntl(file, F_GETFD) < 0) ::_exit(1);
                }
                ::_exit(0);
              }
              int status = -1;
              if (::waitpid(child, &status, 0) != child || status != 0) return 2;
              return (*Member::join(host_, {}))->control().objects().empty() ? 3 : 0;
            }));
}

// While another process prepares for it, and is prepared for.
TEST_F(LoaderSeatTest, SeekingInAHostReadsWhatIsThere) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const auto seeker = [&](const HostChild::Tell& tell, int) {
    std::mt19937 random(seed + static_cast<unsigned>(::getpid()));
    const LoaderOptions own = options();
    auto loader = Loader::open(own);
    if (!loader.ok()) return tell({.what = -1});
    const Seen expected = reference(kSamples, own, 3);
    for (int round = 0; round < soak(500, 50); ++round) {
      State state = loader->position();
      state.epoch = random() % 2;
      state.position = random() % loader->batches_per_epoch() * 8;
      Seen seen;
      if (!loader->seek(state).ok() || !read_epoch(*loader, seen, 1 + random() % 10)) return tell({.what = -2});
      if (seen.empty() || !std::ranges::includes(expected, seen)) return tell({.what = -3});
    }
    tell({.what = testing::Test::HasFailure() ? -4 : 1});
  };
  HostChild first(seeker);
  HostChild second(seeker);
  for (HostChild* child : {&first, &second}) {
    const auto told = child->next(std::chrono::seconds(60));
    ASSERT_TRUE(told);
    EXPECT_EQ(told->what, 1);
  }
}

// A job over many machines needs room here for the streams of those ranks alone that are here.
TEST_F(LoaderSeatTest, TheBudgetIsDividedByTheRanksOfThisMachine) {
  const auto capacity = [&](std::uint32_t local) {
    LoaderOptions own = in_host(ledger_, fresh_host(), 128_MiB);
    own.batch = 1;
    own.world = 512;
    own.local_world = local;
    const auto loader = Loader::open(own);
    return loader.ok() ? static_cast<int>(loader->stats().cache_capacity / Ledger::kLength) : -1;
  };
  EXPECT_EQ(0, in_child([&] { return capacity(0); }));
  EXPECT_GE(in_child([&] { return capacity(2); }), static_cast<int>(kSamples));
}

TEST_F(LoaderSeatTest, AMachineHasNoMoreRanksThanTheJob) {
  LoaderOptions own = ledger_.options(8);
  own.world = 2;
  own.local_world = 3;
  const auto loader = Loader::open(own);
  ASSERT_FALSE(loader.ok());
  EXPECT_NE(loader.error().message.find("local_world 3"), std::string::npos) << loader.error().message;
}

TEST_F(LoaderSeatTest, ACoreThatIsNotGivenBackIsTakenAfterAWhile) {
  HostChild keeper([&](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host_, {.budget = 256_MiB, .cores = 1});
    if (!member.ok() || !(*member)->control().take_core(now())) return tell({.what = -1});
    tell({});
    wait_for_end(until);
  });
  ASSERT_EQ(keeper.next()->what, 0);
  HostChild learner([&](const HostChild::Tell& tell, int) {
    auto loader = Loader::open(options());
    Seen seen;
    tell({.what = loader.ok() && read_epoch(*loader, seen) ? 1 : -1});
  });
  const auto told = learner.next(std::chrono::seconds(60));
  ASSERT_TRUE(told) << "it waits for the core";
  EXPECT_EQ(told->what, 1);
}

TEST_F(LoaderSeatTest, WithOneBatchAheadEverySampleStillComesOnceInAHostOfCoresThatATestChooses) {
  for (const std::string& host : {std::string(), fresh_host()}) {
    EXPECT_EQ(0, in_child([&] {
                LoaderOptions own = in_host(ledger_, host);
                own.cache = false;  // everything goes through the bytes of two batches
                own.held_batches = 1;
                auto loader = open_with_seams(own, {.slots = 2, .host_cores = 5});
                if (!loader.ok()) return 1;
                if (loader->stats().ring_slots != 2) return 2;
                Seen seen;
                if (!read_epoch(*loader, seen) || seen.size() != kSamples) return 3;
                return host.empty() || (*Member::join(host, {}))->control().cores() == 5 ? 0 : 4;
              }));
  }
}

}  // namespace
}  // namespace foreload
