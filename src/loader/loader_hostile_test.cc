// A member that writes anything into the memory that it shares with the others: they may get wrong bytes, errors, or
// nothing at all, but nobody dies of it.
#include <cstring>
#include <random>

#include "host/host_testing.h"
#include "host/stream_card.h"
#include "loader/ledger.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 200;

// Opens, reads and closes loaders, again and again.
HostChild victim(const Ledger& ledger, const std::string& host, std::uint64_t seed) {
  LoaderOptions options = ledger.options(8);
  options.host = host;
  options.memory = 64_MiB;
  options.seed = seed;
  return HostChild([=](const HostChild::Tell& tell, int) {
    for (std::uint64_t round = 0;; ++round) {
      auto loader = Loader::open(options);
      if (round == 0) tell({.what = loader.ok() ? 1 : -1});
      if (!loader.ok()) {
        ::usleep(1'000);
        continue;
      }
      std::atomic<bool> over{false};
      std::jthread impatient([&] {  // it may wait for a batch that never comes
        for (int i = 0; i < 100 && !over; ++i) ::usleep(1'000);
        while (!over) {
          loader->interrupt();
          ::usleep(1'000);
        }
      });
      for (int i = 0; i < 100; ++i) {
        const auto batch = loader->next();
        if (!batch.ok()) break;
      }
      over = true;
    }
  });
}

std::uint64_t something(std::mt19937_64& random, std::uint64_t before) {
  switch (random() % 6) {
    case 0:
      return 0;
    case 1:
      return ~std::uint64_t{0};
    case 2:
      return random();
    case 3:
      return before ^ std::uint64_t{1} << random() % 64;
    case 4:
      return random() % 10;
    default:
      return before + (random() % 3 - 1);
  }
}

// Of a stream's memory: all but the bytes in transit, where only the feeder writes.
std::span<std::byte> part_of(const SharedObject& object, std::mt19937_64& random) {
  const std::span<std::byte> all = object.memory().bytes();
  const auto card = read_card(all, all.size());
  if (!card.ok()) return all.first(std::min<std::size_t>(all.size(), StreamCard::kBytes));
  return random() % 256 == 0 ? all.first(StreamCard::kBytes) : all.subspan(card->ring_offset(), card->ring_bytes());
}

void scribble(std::span<std::byte> memory, std::mt19937_64& random) {
  // Mostly where tables and counts are.
  const std::size_t words =
      (random() % 2 == 0 ? std::min<std::size_t>(memory.size(), 64 << random() % 14) : memory.size()) / 8;
  std::byte* at = memory.data() + random() % words * 8;
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  word = something(random, word);
  std::memcpy(at, &word, 8);
}

HostChild attacker(const std::string& host, unsigned seed, bool control_too) {
  return HostChild([=](const HostChild::Tell&, int) {
    std::mt19937_64 random(seed);
    const auto member = Member::join(host, {});
    if (!member.ok()) return;
    std::map<ObjectId, std::shared_ptr<SharedObject>> objects;
    for (std::uint64_t round = 0;; ++round) {
      if (round % 1000 == 0) {
        objects.clear();
        for (const ObjectInfo& object : (*member)->control().objects()) {
          if (auto got = (*member)->fetch(object.id); got.ok()) objects[object.id] = std::move(*got);
        }
      }
      for (const auto& [id, object] : objects) scribble(part_of(*object, random), random);
      if (control_too && round % 8 == 0) scribble((*member)->control().memory().bytes(), random);
      if (round % 16 == 0) ::usleep(100);
    }
  });
}

void attack(bool control_too) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  const Ledger ledger(kSamples);
  for (int round = 0; round < soak(60, 3); ++round) {
    SCOPED_TRACE(round);
    const std::string host = fresh_host();
    std::vector<HostChild> victims;
    for (const std::uint64_t order : {0, 1, 1}) victims.push_back(victim(ledger, host, order));
    for (HostChild& one : victims) ASSERT_EQ(one.next()->what, 1);
    const HostChild hostile = attacker(host, seed + static_cast<unsigned>(round), control_too);
    ::usleep(400'000);
    for (HostChild& one : victims) {
      int status = 0;
      ASSERT_EQ(::waitpid(one.pid(), &status, WNOHANG), 0) << "it died of signal " << WTERMSIG(status);
    }
  }
}

TEST(LoaderHostileTest, NobodyDiesOfWhatAnotherWritesIntoStreamsAndHomes) {
  FORELOAD_SKIP_UNDER_TSAN();
  attack(false);
}

TEST(LoaderHostileTest, NobodyDiesOfWhatAnotherWritesIntoTheControlBlock) {
  FORELOAD_SKIP_UNDER_TSAN();
  attack(true);
}

}  // namespace
}  // namespace foreload
