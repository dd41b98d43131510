// What a loader takes of its host, and gives back: when it is closed, when it can not be opened, when batches outlive
// it.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "host/host_testing.h"
#include "loader/ledger.h"
#include "loader/seams.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 600;

LoaderOptions in_host(const Ledger& ledger, const std::string& host, Bytes memory = 256_MiB) {
  LoaderOptions options = ledger.options(8);
  options.host = host;
  options.memory = memory;
  return options;
}

struct Taken {
  std::size_t objects = 0;
  Bytes reserved = 0;
  bool operator==(const Taken&) const = default;
};

Taken taken(Control& control) {
  Taken all{.objects = control.objects().size()};
  for (const ObjectInfo& object : control.objects()) all.reserved += object.reserved;
  for (const MemberInfo& member : control.members()) all.reserved += member.reserved;
  return all;
}

// Workers let go of a stream when they look next.
bool comes_to(Control& control, const Taken& wanted) {
  const Time until = now() + std::chrono::seconds(10);
  while (taken(control) != wanted && now() < until) ::usleep(2'000);
  return taken(control) == wanted;
}

// In a process of its own: the parent of forked children has no threads.
int in_child(const std::function<int()>& body) {
  HostChild child([&](const HostChild::Tell& tell, int) { tell({.what = body()}); });
  const auto told = child.next(std::chrono::seconds(120));
  return told ? told->what : -100;
}

TEST(LoaderSeatTest, ValidationLoadersThatAreClosedLeaveNothing) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              auto train = Loader::open(in_host(ledger, host));
              if (!train.ok() || !train->next().ok()) return 1;
              Control& control = (*Member::join(host, {}))->control();
              const Taken before = taken(control);
              for (int round = 0; round < soak(200, 20); ++round) {
                auto validation = Loader::open(in_host(ledger, host));
                if (!validation.ok() || !validation->next().ok()) return 2;
              }
              return comes_to(control, before) ? 0 : 3;
            }));
}

TEST(LoaderSeatTest, ALoaderThatCanNotBeOpenedLeavesNothing) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              std::vector<Loader> loaders;
              LoaderOptions options = in_host(ledger, host, 64_MiB);
              auto first = Loader::open(options);
              if (!first.ok()) return 1;
              Control& control = (*Member::join(host, {}))->control();
              for (int i = 0; i < 300; ++i) {
                const Taken before = taken(control);
                auto next = Loader::open(options);
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

TEST(LoaderSeatTest, ABatchThatOutlivesItsLoaderKeepsItsMemoryAndItsShareOfTheBudget) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              std::optional<Loader> loader(*Loader::open(in_host(ledger, host)));
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
              Control& control = (*Member::join(host, {}))->control();
              const Bytes reserved = ring(control);
              loader.reset();
              if (ring(control) != reserved) return 2;
              if (std::memcmp(batch->data().data(), before.data(), before.size()) != 0) return 3;
              const auto member = *Member::join(host, {});
              batch.reset();
              return ring(member->control()) == 0 ? 0 : 4;
            }));
}

// R18: what a forked child does with its copy of a batch harms nothing that the child has opened since.
TEST(LoaderSeatTest, AForkedChildThatDropsABatchClosesNothingOfItsOwn) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              std::optional<Loader> loader(*Loader::open(in_host(ledger, host)));
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
              return (*Member::join(host, {}))->control().objects().empty() ? 3 : 0;
            }));
}

// While another process prepares for it, and is prepared for.
TEST(LoaderSeatTest, SeekingInAHostReadsWhatIsThere) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  const auto seeker = [&](const HostChild::Tell& tell, int) {
    std::mt19937 random(seed + static_cast<unsigned>(::getpid()));
    const LoaderOptions options = in_host(ledger, host);
    auto loader = Loader::open(options);
    if (!loader.ok()) return tell({.what = -1});
    const Seen expected = reference(kSamples, options, 3);
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
TEST(LoaderSeatTest, TheBudgetIsDividedByTheRanksOfThisMachine) {
  const Ledger ledger(kSamples);
  const auto capacity = [&](std::uint32_t local) {
    LoaderOptions options = in_host(ledger, fresh_host(), 128_MiB);
    options.batch = 1;
    options.world = 512;
    options.local_world = local;
    const auto loader = Loader::open(options);
    return loader.ok() ? static_cast<int>(loader->stats().cache_capacity / Ledger::kLength) : -1;
  };
  EXPECT_EQ(0, in_child([&] { return capacity(0); }));
  EXPECT_GE(in_child([&] { return capacity(2); }), static_cast<int>(kSamples));
}

TEST(LoaderSeatTest, AMachineHasNoMoreRanksThanTheJob) {
  const Ledger ledger(kSamples);
  LoaderOptions options = ledger.options(8);
  options.world = 2;
  options.local_world = 3;
  const auto loader = Loader::open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_NE(loader.error().message.find("local_world 3"), std::string::npos) << loader.error().message;
}

TEST(LoaderSeatTest, ACoreThatIsNotGivenBackIsTakenAfterAWhile) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild keeper([&](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host, {.budget = 256_MiB, .cores = 1});
    if (!member.ok() || !(*member)->control().take_core(now())) return tell({.what = -1});
    tell({});
    wait_for_end(until);
  });
  ASSERT_EQ(keeper.next()->what, 0);
  HostChild learner([&](const HostChild::Tell& tell, int) {
    auto loader = Loader::open(in_host(ledger, host));
    Seen seen;
    tell({.what = loader.ok() && read_epoch(*loader, seen) ? 1 : -1});
  });
  const auto told = learner.next(std::chrono::seconds(60));
  ASSERT_TRUE(told) << "it waits for the core";
  EXPECT_EQ(told->what, 1);
}

TEST(LoaderSeatTest, WithOneBatchAheadEverySampleStillComesOnceInAHostOfCoresThatATestChooses) {
  const Ledger ledger(kSamples);
  for (const std::string& host : {std::string(), fresh_host()}) {
    EXPECT_EQ(0, in_child([&] {
                LoaderOptions options = in_host(ledger, host);
                options.cache = false;  // everything goes through the bytes of two batches
                options.held_batches = 1;
                auto loader = open_with_seams(options, {.slots = 2, .host_cores = 5});
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
