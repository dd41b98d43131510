// An agent that is told to end: nothing that it had claimed stays behind.
#include "host/host_testing.h"
#include "host/stream_card.h"
#include "host/survey.h"
#include "host/workshop.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// A learner whose own process prepares nothing, so that whatever is claimed was claimed by others.
HostChild learner(const Ledger& ledger, const std::string& host) {
  return HostChild([&ledger, host](const HostChild::Tell& tell, int) {
    auto member = Member::join(host, {.budget = 256_MiB});
    auto nobody = member.ok() ? Workshop::open(*member, {.threads = 0}) : member.error();
    LoaderOptions options = ledger.options(8);
    options.host = host;
    options.memory = 256_MiB;
    options.epochs = 100'000;
    auto loader = Loader::open(options);
    tell({.what = nobody.ok() && loader.ok() ? 0 : 1});
    while (loader.ok() && loader->next().ok()) continue;  // until it is killed
  });
}

std::uint64_t prepared(Member& member) {
  std::uint64_t samples = 0;
  const auto survey = survey_host(member);
  for (const StreamSurvey& stream : survey ? survey->streams : std::vector<StreamSurvey>()) {
    for (const auto& helper : stream.prepared_by) samples += helper.samples;
  }
  return samples;
}

unsigned claimed(Member& member) {
  unsigned count = 0;
  for (const ObjectInfo& object : member.control().objects()) {
    if (object.key.kind != ObjectKey::Kind::kRing) continue;
    const auto memory = member.fetch(object.id);
    if (!memory.ok()) continue;
    const auto bytes = (*memory)->memory().bytes();
    const auto card = read_card(bytes, bytes.size());
    auto region = Region::map_file((*memory)->memory().file(), card->ring_offset(), card->ring_bytes(), "a stream");
    const auto ring = Ring::attach(card->ring, std::move(*region));
    for (std::uint32_t slot = 0; slot < ring->slots(); ++slot) {
      for (std::uint32_t i = 0; i < card->ring.batch; ++i) count += ring->is_claimed({slot, i}) ? 1 : 0;
    }
  }
  return count;
}

// In a process of its own: the parent of forked children has no threads.
TEST(DrainTest, WorkersThatEndHaveFinishedWhatTheyHadAndGivenBackTheirCores) {
  const Ledger ledger(600);
  const std::string host = fresh_host();
  HostChild trainer = learner(ledger, host);
  const auto opened = trainer.next();
  ASSERT_TRUE(opened && opened->what == 0);
  HostChild agent([&](const HostChild::Tell& tell, int) {
    const auto drain = [&]() -> int {
      auto member = Member::join(host, {.budget = 256_MiB});
      if (!member.ok()) return 1;
      for (int round = 0; round < soak(100, 10); ++round) {
        const std::uint64_t before = prepared(**member);
        auto workshop = Workshop::open(*member, {.threads = 2, .scratch = 8_MiB});
        if (!workshop.ok()) return 2;
        const Time until = now() + 30s;
        while (prepared(**member) < before + 50 && now() < until) ::usleep(500);
        if (prepared(**member) < before + 50) return 3;
        workshop->reset();
        if (claimed(**member) != 0) return 4;
        if ((*member)->control().cores_in_use(now()) != 0) return 5;
      }
      return 0;
    };
    tell({.what = drain()});
  });
  const auto told = agent.next(120s);
  EXPECT_EQ(told ? told->what : -1, 0);
}

}  // namespace
}  // namespace foreload
