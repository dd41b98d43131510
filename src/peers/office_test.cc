// An agent's office and shelf in a host whose other members are played by the test: real shared memory, desks and
// arenas, and a transport that answers as the test says.
#include "peers/office.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/clock.h"
#include "base/hash.h"
#include "host/host_testing.h"
#include "peers/arena_shelf.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 3000;
constexpr PeerKey kKey{.fingerprint = 11, .validators = 12, .roster = 13};

std::byte letter_of(SampleId id) {
  return static_cast<std::byte>('a' + id % 26);
}

// Gives every sample with an id below `has`, to whoever asks host 1; host 2 refuses, host 3 never has it.
class AnsweringTransport final : public PeerTransport {
 public:
  struct Call {
    HostIndex host = 0;
    PeerKey key{};
    std::size_t wants = 0;
  };

  void fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) override {
    MutexLock lock(mutex_);
    EXPECT_GT(deadline, now());
    calls_.push_back({host, key, wants.size()});
    for (const PeerWant& want : wants) {
      PeerResult result = host == 2 ? PeerResult::kRefused : PeerResult::kAbsent;
      if (host == 1) result = PeerResult::kHere;
      if (host == 1) std::ranges::fill(want.into, letter_of(want.id));
      ends_.push_back({want.token, result});
    }
  }
  void wait(std::vector<PeerEnd>& ends, Time until) override {
    MutexLock lock(mutex_);
    while (ends_.empty() && !woken_ && now() < until) changed_.wait_until(mutex_, until);
    woken_ = false;
    ends.insert(ends.end(), ends_.begin(), ends_.end());
    ends_.clear();
  }
  void wake() override {
    MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  std::vector<std::string> take_warnings() override { return {}; }
  std::vector<Call> calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<PeerEnd> ends_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<Call> calls_ FORELOAD_GUARDED_BY(mutex_);
  bool woken_ FORELOAD_GUARDED_BY(mutex_) = false;
};

class OfficeTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSamples = 50;

  OfficeTest() : member_(*Member::join(fresh_host(), {.budget = 256_MiB, .at_step = nullptr})) {
    open_arena();
    open_stream();
    inventory_ = std::move(*Inventory::open(member_));
    const Time end = now() + 20s;
    while (now() < end && (inventory_->lists()->streams.empty() || inventory_->lists()->arenas.empty())) {
      std::this_thread::sleep_for(1ms);
    }
  }

  // Homes for the even ids.
  void open_arena() {
    const SharedArenaOptions options{.samples = kSamples, .homes = kSamples * SharedArena::footprint(kLength)};
    const Bytes bytes = SharedArena::region_bytes(options);
    const auto fill = [&](const SharedMemory& memory) {
      SampleId id = 0;
      const auto next = [&]() -> std::optional<SampleId> {
        id += 2;
        return id <= kSamples ? std::optional(id - 2) : std::nullopt;
      };
      SharedArena::format(memory.bytes(), options, next, [](SampleId) { return kLength; });
      return memory.reserve(0, bytes);
    };
    arena_memory_ = *member_->open({.key = arena_key(kKey), .bytes = bytes, .reserve = bytes, .fill = fill});
    arena_ = std::move(
        *SharedArena::open(arena_memory_->memory().bytes(), options, member_->id(), [](MemberId) { return true; }));
    arena_->reserved_to(arena_->end());
  }

  void open_stream() {
    StreamCard card{.ring = {.slots = 2, .batch = 4, .sample_bytes = 64},
                    .homes = arena_memory_->id(),
                    .desk = (PeerDesk::region_bytes(64 * kLength) + 4095) / 4096 * 4096,
                    .peers = kKey,
                    .chain = {.transforms = {array(DType::kU8, {64}, true)}}};
    const auto fill = [&](const SharedMemory& memory) -> Status {
      FORELOAD_ASSIGN(Region ring, Region::map_file(memory.file(), card.ring_offset(), card.ring_bytes(), ""));
      ring_ = Ring::create(card.ring, std::move(ring));
      return write_card(card, memory.bytes());
    };
    stream_memory_ = *member_->open({.key = {ObjectKey::Kind::kRing, 1, 2},
                                     .bytes = card.region_bytes(),
                                     .reserve = card.region_bytes(),
                                     .fill = fill});
    desk_.emplace(stream_memory_->memory().bytes().subspan(card.desk_offset(), card.desk));
    desk_->begin([](MemberId) { return true; });
  }

  void put(SampleId id) {
    std::span<std::byte> into;
    ASSERT_EQ(arena_->begin(id, kLength, into), SharedArena::Begun::kMine);
    std::ranges::fill(into, letter_of(id));
    (void)arena_->commit(id, kLength);
  }

  // Asks for all at once, and waits for their ends: whether the bytes came, and are right.
  std::map<SampleId, bool> asked(const std::vector<std::pair<SampleId, HostIndex>>& wanted) {
    for (const auto& [id, host] : wanted) EXPECT_TRUE(desk_->ask(id, host, kLength, now()));
    member_->control().peer_signal().raise();
    std::map<SampleId, bool> ends;
    const Time last = now() + 20s;
    while (ends.size() < wanted.size() && now() < last) {
      const std::uint32_t seen = ring_->feeder_signal();
      desk_->take(now(), [&](const PeerDesk::End& end) {
        ends[end.id] =
            end.bytes && std::ranges::all_of(*end.bytes, [&](std::byte b) { return b == letter_of(end.id); });
      });
      if (ends.size() < wanted.size()) ring_->wait_as_feeder(seen, now() + 100ms);
    }
    return ends;
  }

  std::shared_ptr<Member> member_;
  std::shared_ptr<SharedObject> arena_memory_;
  std::unique_ptr<SharedArena> arena_;
  std::shared_ptr<SharedObject> stream_memory_;
  std::shared_ptr<Ring> ring_;
  std::optional<PeerDesk> desk_;
  std::unique_ptr<Inventory> inventory_;
  AnsweringTransport transport_;
};

TEST_F(OfficeTest, WhatAStreamAsksForComesFromItsHomeWithOneRequestPerHost) {
  FORELOAD_SKIP_UNDER_TSAN();
  const auto office = std::move(*Office::open(*inventory_, transport_, {.names = {"self", "a", "b", "c"}}));
  const auto ends = asked({{1, 1}, {3, 1}, {5, 3}, {7, 1}, {9, 2}});
  EXPECT_EQ(ends, (std::map<SampleId, bool>{{1, true}, {3, true}, {5, false}, {7, true}, {9, false}}));
  std::map<HostIndex, std::size_t> wants;
  for (const auto& call : transport_.calls()) {
    wants[call.host] += call.wants;
    EXPECT_EQ(call.key, kKey);
  }
  EXPECT_EQ(wants, (std::map<HostIndex, std::size_t>{{1, 3}, {2, 1}, {3, 1}}));
  EXPECT_LE(transport_.calls().size(), 5u);
  EXPECT_TRUE(office->take_warnings().empty()) << "a refusal at the beginning is no news";
}

TEST_F(OfficeTest, AHostThatDoesNotExistEndsAtOnce) {
  FORELOAD_SKIP_UNDER_TSAN();
  const auto office = std::move(*Office::open(*inventory_, transport_, {.names = {"self", "a"}}));
  EXPECT_EQ(asked({{1, 7}, {3, 0}}), (std::map<SampleId, bool>{{1, false}, {3, false}})) << "none, and oneself";
  EXPECT_TRUE(transport_.calls().empty());
}

TEST_F(OfficeTest, WhatIsUnderWayEndsBeforeTheOfficeDoes) {
  FORELOAD_SKIP_UNDER_TSAN();
  for (int turn = 0; turn < soak(200, 20); ++turn) {
    auto office = std::move(*Office::open(*inventory_, transport_, {.names = {"self", "a"}}));
    const SampleId id = static_cast<SampleId>(turn) + 100;
    EXPECT_TRUE(desk_->ask(id, 1, kLength, now()));
    member_->control().peer_signal().raise();
    office.reset();
    // Either it was answered, or nobody has taken it, and nobody will.
    desk_->take(now(), [](const PeerDesk::End&) {});
    desk_->take(now() + PeerDesk::kPatience, [](const PeerDesk::End& end) { EXPECT_FALSE(end.bytes); });
    EXPECT_EQ(desk_->open(), 0u);
    EXPECT_TRUE(desk_->has_room(desk_->longest())) << "no piece of the room is in anybody's hands";
  }
}

TEST_F(OfficeTest, TheShelfGivesWhatIsHereWantsWhatIsNotAndKnowsNothingElse) {
  ArenaShelf shelf(*inventory_);
  EXPECT_TRUE(shelf.knows(kKey));
  for (const PeerKey& other : {PeerKey{12, 12, 13}, PeerKey{11, 13, 13}, PeerKey{11, 12, 14}, PeerKey{11, 12, 0}}) {
    EXPECT_FALSE(shelf.knows(other));
    EXPECT_EQ(shelf.take(other, {.id = 0, .length = kLength}).kind, PeerShelf::Taken::Kind::kAbsent);
  }
  put(4);
  const auto here = shelf.take(kKey, {.id = 4, .length = kLength});
  ASSERT_EQ(here.kind, PeerShelf::Taken::Kind::kHere);
  EXPECT_EQ(here.hash, hash_bytes(here.lease.bytes()));
  EXPECT_EQ(here.lease.bytes()[0], letter_of(4));

  const std::vector<PeerItem> items{{.id = 4, .length = kLength}, {.id = 6, .length = kLength}, {.id = 1ull << 60}};
  const std::uint32_t seen = ring_->feeder_signal();
  shelf.expect(kKey, items);
  EXPECT_NE(ring_->feeder_signal(), seen) << "whoever can read it is woken";
  EXPECT_EQ(arena_->take_wanted(), std::optional<SampleId>(6));
  EXPECT_EQ(arena_->take_wanted(), std::nullopt);

  EXPECT_EQ(shelf.take(kKey, {.id = 6, .length = kLength}).kind, PeerShelf::Taken::Kind::kLater);
  EXPECT_EQ(shelf.take(kKey, {.id = 7, .length = kLength}).kind, PeerShelf::Taken::Kind::kAbsent) << "no home here";
  EXPECT_EQ(shelf.take(kKey, {.id = ~0ull, .length = kLength}).kind, PeerShelf::Taken::Kind::kAbsent);
  EXPECT_EQ(shelf.take(kKey, {.id = 4, .length = ~0ull}).kind, PeerShelf::Taken::Kind::kLater)
      << "never beyond its memory";
}

TEST_F(OfficeTest, ALeaseKeepsTheMemoryOfItsArena) {
  put(8);
  std::optional<PeerShelf::Taken> taken;
  {
    ArenaShelf shelf(*inventory_);
    taken = shelf.take(kKey, {.id = 8, .length = kLength});
  }
  inventory_.reset();
  arena_.reset();
  arena_memory_.reset();
  ASSERT_EQ(taken->kind, PeerShelf::Taken::Kind::kHere);
  EXPECT_TRUE(std::ranges::all_of(taken->lease.bytes(), [](std::byte b) { return b == letter_of(8); }));
}

TEST_F(OfficeTest, BeforeTrainersBeginWhatTheyWillHaveIsLater) {
  ArenaShelf shelf(*inventory_);
  const PeerKey other{.fingerprint = 1, .validators = 2, .roster = 3};
  EXPECT_FALSE(shelf.knows(other));
  shelf.begin(now());
  EXPECT_TRUE(shelf.knows(other));
  EXPECT_EQ(shelf.take(other, {.id = 1, .length = 1}).kind, PeerShelf::Taken::Kind::kLater);
  shelf.begin(now() - 31s);
  EXPECT_FALSE(shelf.knows(other));
}

}  // namespace
}  // namespace foreload
