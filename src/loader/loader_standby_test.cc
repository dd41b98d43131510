// Loaders that leave all prep to other processes of their host: nothing is prepared here while somebody else does it,
// and nothing is lost when nobody does.
#include <algorithm>
#include <random>

#include "host/host_testing.h"
#include "host/stream_card.h"
#include "host/workshop.h"
#include "loader/ledger.h"
#include "prep/jpeg_samples.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 600;
constexpr Epoch kEpochs = 3;

LoaderOptions without_workers(const Ledger& ledger, const std::string& host) {
  LoaderOptions options = ledger.options(8);
  options.host = host;
  options.memory = 256_MiB;
  options.workers = 0;
  return options;
}

// A member that only prepares, as `foreload agent`.
HostChild agent(const std::string& host, Bytes scratch = 8_MiB) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host, {.budget = 256_MiB});
    if (!member.ok()) return tell({.what = -1});
    const auto workshop = Workshop::open(*member, {.threads = 2, .scratch = scratch});
    if (!workshop.ok()) return tell({.what = -2});
    tell({.what = 1});
    wait_for_end(until);
  });
}

struct Done {
  std::uint64_t here = 0;
  std::uint64_t elsewhere = 0;
};

// How many samples of the host's only stream were prepared by this process, and by others. (No Observer: it takes the
// locks of its own process for nobody's.)
Done prepared(const std::string& host) {
  const auto member = *Member::join(host, {});
  Done done;
  for (const ObjectInfo& object : member->control().objects()) {
    if (object.key.kind != ObjectKey::Kind::kRing) continue;
    const auto memory = *member->fetch(object.id);
    const StreamCard card = *read_card(memory->memory().bytes(), object.bytes);
    Region region = *Region::map_file(memory->memory().file(), card.ring_offset(), card.ring_bytes(), "");
    const auto ring = Ring::attach(card.ring, std::move(region));
    for (unsigned i = 0; i < kMostMembers; ++i) {
      (i == member->id().index ? done.here : done.elsewhere) += ring->prepared_by(i);
    }
  }
  return done;
}

// Reads all epochs and tells 2, or what is wrong, with: samples prepared here, by others, and warnings. Tells 1 after
// the first epoch; then waits for the parent's word, if it is to.
HostChild learner(const LoaderOptions& asked, bool waits = false) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    LoaderOptions options = asked;
    std::uint64_t warnings = 0;
    options.warn = [&](const std::string& text) {
      warnings += text.find("foreload agent --host " + options.host) != std::string::npos ? 1 : 100;
    };
    auto loader = Loader::open(options);
    if (!loader.ok()) return tell({.what = -1});
    Seen seen;
    if (!read_epoch(*loader, seen)) return tell({.what = -2});
    tell({.what = 1});
    if (waits) wait_for_end(until);
    for (Epoch e = 1; e < kEpochs; ++e) {
      if (!read_epoch(*loader, seen)) return tell({.what = -3});
    }
    const bool right = seen == reference(kSamples, options, kEpochs) && !testing::Test::HasFailure();
    const Done done = prepared(options.host);
    const bool fits = (loader->stats().threads > 0) == (warnings > 0);
    tell({.what = !right ? -4 : !fits ? -5 : 2, .numbers = {done.here, done.elsewhere, warnings}});
  });
}

TEST(LoaderStandbyTest, WithoutWorkersOthersPrepareEverything) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild helper = agent(host);
  ASSERT_EQ(helper.next()->what, 1);
  HostChild job = learner(without_workers(ledger, host));
  ASSERT_EQ(job.next()->what, 1);
  const auto told = job.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 2);
  EXPECT_EQ(told->numbers[0], 0u) << "prepared by the learner's own process";
  EXPECT_GE(told->numbers[1], kEpochs * kSamples);
  EXPECT_EQ(told->numbers[2], 0u) << "warnings";
}

TEST(LoaderStandbyTest, WhenNobodyComesItPreparesItselfAndSaysSoOnce) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const Time began = now();
  HostChild job = learner(without_workers(ledger, fresh_host()));
  const auto first = job.next();
  ASSERT_TRUE(first) << "it waits for workers that nobody has";
  ASSERT_EQ(first->what, 1);
  EXPECT_GE(now() - began, std::chrono::milliseconds(1900)) << "an agent might have come";
  const auto told = job.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 2);
  EXPECT_GE(told->numbers[0], kEpochs * kSamples);
  EXPECT_EQ(told->numbers[1], 0u);
  EXPECT_EQ(told->numbers[2], 1u) << "warnings";
}

TEST(LoaderStandbyTest, AnAgentThatComesInTimeIsWaitedFor) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild job = learner(without_workers(ledger, host));
  ::usleep(300'000);
  HostChild helper = agent(host);
  ASSERT_EQ(job.next()->what, 1);
  const auto told = job.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 2);
  EXPECT_EQ(told->numbers[0], 0u);
}

TEST(LoaderStandbyTest, WhenTheAgentIsKilledBetweenEpochsItGoesOnBitIdentically) {
  FORELOAD_SKIP_UNDER_TSAN();
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild helper = agent(host);
  ASSERT_EQ(helper.next()->what, 1);
  HostChild job = learner(without_workers(ledger, host), true);
  ASSERT_EQ(job.next()->what, 1);
  helper.kill();
  job.finish();
  const auto told = job.next();
  ASSERT_TRUE(told) << "it waits for the dead";
  EXPECT_EQ(told->what, 2);
  EXPECT_GT(told->numbers[0], 0u);
  EXPECT_EQ(told->numbers[2], 1u) << "warnings";
}

TEST(LoaderStandbyTest, WheneverTheAgentIsKilledItGoesOnBitIdentically) {
  FORELOAD_SKIP_UNDER_TSAN();
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(30, 3); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    HostChild helper = agent(host);
    HostChild job = learner(without_workers(ledger, host));
    ::usleep(random() % 60'000);
    helper.kill();
    ASSERT_EQ(job.next()->what, 1);
    const auto told = job.next();
    ASSERT_TRUE(told);
    ASSERT_EQ(told->what, 2);
  }
}

TEST(LoaderStandbyTest, WhenTheAgentIsStoppedItGoesOn) {
  FORELOAD_SKIP_UNDER_TSAN();
  if (std::getenv("FORELOAD_SOAK") == nullptr) GTEST_SKIP() << "takes a quarter of a minute";
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  HostChild helper = agent(host);
  ASSERT_EQ(helper.next()->what, 1);
  HostChild job = learner(without_workers(ledger, host), true);
  ASSERT_EQ(job.next()->what, 1);
  helper.stop();
  job.finish();
  const auto told = job.next(std::chrono::seconds(60));
  ASSERT_TRUE(told) << "it waits for somebody who is stopped";
  EXPECT_EQ(told->what, 2);
  EXPECT_GT(told->numbers[0], 0u);
}

// In a process of its own: the parent of forked children has no threads.
int in_child(const std::function<int()>& body) {
  HostChild child([&](const HostChild::Tell& tell, int) { tell({.what = body()}); });
  const auto told = child.next(std::chrono::seconds(60));
  return told ? told->what : -100;
}

// Bytes of an epoch.
std::vector<std::byte> tensors(Loader& loader) {
  std::vector<std::byte> all;
  for (auto batch = loader.next(); batch.ok() && *batch; batch = loader.next()) {
    all.insert(all.end(), (*batch)->data().begin(), (*batch)->data().end());
  }
  return all;
}

TEST(LoaderStandbyTest, WhenTheAgentHasNotTheMemoryForASampleItGoesOn) {
  FORELOAD_SKIP_UNDER_TSAN();
  if (std::getenv("FORELOAD_SOAK") == nullptr) GTEST_SKIP() << "takes a quarter of a minute";
  const TestFolder folder;
  const auto picture = make_jpeg({.width = 600, .height = 400});
  const std::string text(reinterpret_cast<const char*>(picture.data()), picture.size());
  for (int id = 0; id < 20; ++id) folder.write("a/" + std::to_string(id) + ".jpg", text);
  const std::string host = fresh_host();
  HostChild helper = agent(host, 1_KiB);
  ASSERT_EQ(helper.next()->what, 1);
  EXPECT_EQ(0, in_child([&] {
              LoaderOptions options{.dataset = {folder.path()}, .batch = 4, .chain = {random_resized_crop(64)}};
              options.memory = 256_MiB;
              auto alone = Loader::open(options);
              options.host = host;
              options.workers = 0;
              auto shared = Loader::open(options);
              if (!alone.ok() || !shared.ok()) return 1;
              const std::vector<std::byte> expected = tensors(*alone);
              if (expected.empty() || tensors(*shared) != expected) return 2;
              return prepared(host).here > 0 ? 0 : 3;
            }));
}

TEST(LoaderStandbyTest, TheWorkersOfAnotherLoaderOfTheProcessPrepareForItToo) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              LoaderOptions options = without_workers(ledger, host);
              int warnings = 0;
              options.warn = [&](const std::string&) { ++warnings; };
              auto train = Loader::open(options);
              options.workers = 1;
              auto validation = Loader::open(options);
              if (!train.ok() || !validation.ok()) return 1;
              if (train->stats().threads != 1 || validation->stats().threads != 1) return 2;
              Seen seen;
              if (!read_epoch(*train, seen) || seen != reference(kSamples, options, 1)) return 3;
              return warnings == 0 ? 0 : 4;
            }));
}

TEST(LoaderStandbyTest, MembersSeeWhoHasWorkers) {
  const Ledger ledger(kSamples);
  const std::string host = fresh_host();
  EXPECT_EQ(0, in_child([&] {
              const auto member = *Member::join(host, {.budget = 256_MiB});
              const Control& control = member->control();
              LoaderOptions options = without_workers(ledger, host);
              std::optional<Loader> idle(*Loader::open(options));
              if (control.anybody_prepares()) return 1;
              options.workers = 2;
              std::optional<Loader> busy(*Loader::open(options));
              if (!control.anybody_prepares() || control.members()[0].workers != 2) return 2;
              busy.reset();  // the other one still has a claim on them
              if (control.members()[0].workers != 2) return 3;
              idle.reset();
              return control.anybody_prepares() ? 4 : 0;
            }));
}

TEST(LoaderStandbyTest, WithoutAHostThereIsNobodyElse) {
  const Ledger ledger(10);
  LoaderOptions options = ledger.options(2);
  options.workers = 0;
  const auto loader = Loader::open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().code, Code::kInvalid);
  EXPECT_NE(loader.error().message.find("foreload agent --host NAME"), std::string::npos) << loader.error().message;
}

}  // namespace
}  // namespace foreload
