// R19 for a host: eight members in different states read a small dataset for a thousand epochs, others come and go,
// some of them killed. Neither the members nor the host have more at the end than at the beginning.
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>

#include "host/survey.h"
#include "loader/host_learner.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 60;
constexpr unsigned kMembers = 8;
constexpr Epoch kWarmUp = 10;
// Of malloc, and of the accounts of the last 1,024 epochs. ASan keeps what was freed.
#if defined(__has_feature)
constexpr Bytes kSlack = __has_feature(address_sanitizer) ? 1_GiB : 2_MiB;
#else
constexpr Bytes kSlack = 2_MiB;
#endif

// What a process has.
struct Footprint {
  Bytes resident = 0;
  Bytes proportional = 0;
  std::size_t descriptors = 0;
  std::size_t threads = 0;   // beside fetchers
  std::size_t fetchers = 0;  // of loaders that feed their own ring
};

std::size_t entries(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

std::size_t fetchers_of(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    count += name == "fl-fetch" ? 1 : 0;
  }
  return count;
}

Footprint look_at(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  const std::size_t fetchers = fetchers_of(folder);
  Footprint found{
      .descriptors = entries(folder + "/fd"), .threads = entries(folder + "/task") - fetchers, .fetchers = fetchers};
  std::ifstream file(folder + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes kib = 0;
    words >> name >> kib;
    if (name == "Rss:") found.resident = kib << 10;
    if (name == "Pss:") found.proportional = kib << 10;
  }
  return found;
}

// The least of a while: somebody may be at its door.
Footprint footprint_of(pid_t process) {
  Footprint least = look_at(process);
  for (int i = 0; i < 20; ++i) {
    ::usleep(10'000);
    const Footprint found = look_at(process);
    least = {.resident = std::min(least.resident, found.resident),
             .proportional = std::min(least.proportional, found.proportional),
             .descriptors = std::min(least.descriptors, found.descriptors),
             .threads = std::min(least.threads, found.threads),
             .fetchers = std::min(least.fetchers, found.fetchers)};
  }
  return least;
}

// Some are ranks of one job, some have the same seed; one keeps nothing, one is slow, one validates after every epoch.
HostChild member(const Ledger& ledger, const std::string& host, unsigned index, Epoch epochs) {
  return HostChild([&ledger, host, index, epochs](const HostChild::Tell& tell, int until) {
    LoaderOptions options = in_host(ledger, host);
    options.seed = index / 2;
    options.world = index < 2 ? 2 : 1;
    options.rank = index < 2 ? index : 0;
    options.cache = index != 4;
    options.workers = 1 + index % 2;
    auto loader = Loader::open(options);
    if (!loader.ok()) return tell({.what = -1});
    const auto read = [&](Epoch from, Epoch to) {
      for (Epoch e = from; e < to; ++e) {
        if (!reads_epoch(*loader, options, kSamples, e)) return false;
        if (index == 5) ::usleep(2'000);
        if (index != 6) continue;
        auto validation = Loader::open(in_host(ledger, host));
        if (!validation.ok() || !reads_epoch(*validation, in_host(ledger, host), kSamples, 0)) return false;
      }
      return true;
    };
    tell({.what = 1});
    for (Epoch from = 0; wait_for_word(until);) {
      const Epoch to = from == 0 ? kWarmUp : epochs;
      if (!read(from, to)) return tell({.what = -2});
      tell({.what = 1});
      from = to;
    }
  });
}

// Comes, reads a little, and goes: as one should, without a word, or by force.
HostChild visitor(const Ledger& ledger, const std::string& host, unsigned fate) {
  return HostChild([&ledger, host, fate](const HostChild::Tell& tell, int) {
    LoaderOptions options = in_host(ledger, host);
    options.seed = 100 + fate % 3;
    options.workers = 1;
    auto loader = Loader::open(options);
    if (!loader.ok()) return tell({.what = -1});
    tell({.what = 1});
    Seen seen;
    const bool right = read_epoch(*loader, seen, fate % 7) && !testing::Test::HasFailure();
    tell({.what = right ? 2 : -2});
    if (fate % 3 == 1) ::_exit(0);
    if (fate % 3 == 2) ::raise(SIGKILL);
  });
}

struct Picture {
  Taken taken{};
  std::size_t members = 0;
  std::vector<unsigned> full{};  // batches that each learner has when all rest
  bool operator==(const Picture&) const = default;
};

Picture picture_of(const std::string& host) {
  auto control = watch_host(*HostName::parse(host), std::chrono::seconds(5));
  auto observer = Observer::open(host);
  if (!control.ok() || !control->has_value() || !observer.ok() || !observer->has_value()) return {};
  Picture picture{.taken = taken(**control), .members = (*control)->members().size()};
  const auto survey = (*observer)->look();
  if (!survey) return {};
  for (const StreamSurvey& stream : survey->streams) picture.full.push_back(stream.published);
  std::ranges::sort(picture.full);
  return picture;
}

// What stays so when nobody does anything.
Picture settled(const std::string& host) {
  Picture before = picture_of(host);
  for (int i = 0, same = 0; i < 200 && same < 10; ++i) {
    ::usleep(50'000);
    Picture after = picture_of(host);
    same = after == before ? same + 1 : 0;
    before = std::move(after);
  }
  return before;
}

void all_do_their_part(std::vector<HostChild>& members, const std::function<void()>& meanwhile) {
  for (const HostChild& one : members) one.go_on();
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::optional<Told> told;
    const Time until = now() + std::chrono::minutes(20);
    while (!told && now() < until) {
      meanwhile();
      told = members[i].next(std::chrono::milliseconds(50));
    }
    ASSERT_TRUE(told) << "member " << i;
    ASSERT_EQ(told->what, 1) << "member " << i;
  }
}

TEST(LoaderDriftTest, NothingGrowsInAThousandEpochsWhileMembersComeAndGo) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  const auto epochs = static_cast<Epoch>(soak(1'000));
  std::vector<HostChild> members;
  for (unsigned i = 0; i < kMembers; ++i) {
    members.push_back(member(ledger, host, i, epochs));
    const auto told = members.back().next();
    ASSERT_TRUE(told && told->what == 1) << i;
  }
  const auto visit = [&] {
    HostChild guest = visitor(ledger, host, random());
    const auto told = guest.next();
    ASSERT_TRUE(told && told->what == 1);
    if (random() % 2 == 0) {
      ::usleep(random() % 10'000);
      return guest.kill();
    }
    const auto read = guest.next();
    ASSERT_TRUE(read && read->what == 2);
    (void)guest.wait();
  };
  all_do_their_part(members, visit);
  const Picture before = settled(host);
  std::vector<Footprint> had;
  for (const HostChild& one : members) had.push_back(footprint_of(one.pid()));

  all_do_their_part(members, visit);
  const Picture after = settled(host);
  EXPECT_EQ(after.taken.objects, before.taken.objects);
  EXPECT_EQ(after.taken.reserved, before.taken.reserved);
  EXPECT_EQ(after.members, kMembers);
  EXPECT_EQ(after.full, before.full) << "batches that can be ready at once";
  for (unsigned i = 0; i < kMembers; ++i) {
    SCOPED_TRACE("member " + std::to_string(i));
    const Footprint has = footprint_of(members[i].pid());
    EXPECT_LE(has.resident, had[i].resident + kSlack);
    EXPECT_LE(has.proportional, had[i].proportional + kSlack);
    EXPECT_EQ(has.descriptors, had[i].descriptors);
    EXPECT_EQ(has.threads, had[i].threads);
    EXPECT_LE(has.fetchers, 1u) << "of the one loader, when it does not read another job's ring";
  }
}

}  // namespace
}  // namespace foreload
