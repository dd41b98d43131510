// Tier stacks of two learners of a host that share their disks: each keeps its own homes, and both read what is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/clock.h"
#include "base/test_folder.h"
#include "tier/tier_stack.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 5000;
constexpr std::uint64_t kSamples = 20;

// A learner with a disk cache: even ids are at home with learner 0, odd ones with learner 1.
class Learner {
 public:
  Learner(const Source& source, const std::string& folder, std::uint32_t rank, std::span<std::byte> board,
          std::function<bool(MemberId)> is_alive)
      : seat_(*DiskBoard::open(board, std::move(is_alive)), rank) {
    arena_ = std::move(*Arena::create({.samples = kSamples, .transit = kSamples * Arena::footprint(kLength)}));
    auto store = std::move(*DiskStore::open({.folder = folder,
                                             .rank = rank,
                                             .samples = {.count = kSamples,
                                                         .fingerprint = source.fingerprint(),
                                                         .length = [](SampleId) { return kLength; },
                                                         .stamp = [&](SampleId id) { return source.locate(id).stamp; }},
                                             .total_bytes = kSamples * kLength}));
    store->keep(Placement::plan(kSamples, kSamples * kLength, 1,
                                [rank](SampleId id) { return id % 2 == rank ? kLength : Bytes{0}; }));
    auto bottom = std::make_unique<SourceTier>(source, std::move(*open_read_engine({})), std::nullopt);
    tiers_ = std::make_unique<TierStack>(source, std::make_unique<KeptHomes>(nothing_), *arena_, std::move(bottom),
                                         std::make_unique<DiskTier>(std::move(store)));
    seat_.sit({.index = static_cast<std::uint8_t>(rank + 1), .generation = 1}, &tiers_->disk()->store());
    tiers_->share_disks(&seat_);
  }

  TierStack& tiers() { return *tiers_; }
  DiskSeat& seat() { return seat_; }
  std::string data() const { return tiers_->disk()->store().path() + "/data"; }
  Answer ask(Request request) {
    request.from = tiers_->nearest(request.id);
    Answer answer = tiers_->request(request, now());
    for (const Origin origin : {Origin::kDisk, Origin::kSource}) {
      while (tiers_->start_next(origin, now())) {
      }
    }
    return answer;
  }
  Arrival wait_one() {
    std::vector<Arrival> arrivals;
    while (arrivals.empty()) tiers_->wait(arrivals, now() + 10s);
    return std::move(arrivals[0]);
  }
  // What others want is read, and written.
  std::vector<SampleId> serve() {
    std::vector<SampleId> served;
    while (const auto id = tiers_->take_wanted()) {
      served.push_back(*id);
      if (!tiers_->lacks(*id)) continue;
      EXPECT_EQ(ask({.id = *id, .urgent = true, .fill = true, .far = true}).kind, Ask::kQueued);
      (void)wait_one();
    }
    wait_for_disk();
    return served;
  }
  void wait_for_disk() {
    const Time end = now() + 20s;
    while (!tiers_->is_idle() && now() < end) std::this_thread::sleep_for(1ms);
  }
  // Where it comes from, if its bytes are right.
  std::optional<Origin> get(SampleId id) {
    if (ask({.id = id}).kind != Ask::kQueued) return std::nullopt;
    const Arrival came = wait_one();
    const auto letter = static_cast<std::byte>('a' + id);
    const bool right = came.status.ok() && came.lease.bytes().size() == kLength &&
                       std::ranges::all_of(came.lease.bytes(), [&](std::byte b) { return b == letter; });
    return right ? std::optional(came.origin) : std::nullopt;
  }

 private:
  DiskSeat seat_;
  Placement nothing_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<TierStack> tiers_;
};

class DisksTest : public testing::Test {
 protected:
  DisksTest() : memory_(DiskBoard::region_bytes(kSamples, 2) / sizeof(std::uint64_t)) {
    for (std::uint64_t id = 0; id < kSamples; ++id) {
      folder_.write("s" + std::to_string(100 + id) + ".bin", std::string(kLength, static_cast<char>('a' + id)));
    }
    source_ = std::move(*open_source({.datasets = {folder_.path()}}));
    format();
    for (std::uint32_t rank = 0; rank < 2; ++rank) open(rank);
  }
  void format() {
    std::ranges::fill(memory_, 0);
    DiskBoard::format(std::as_writable_bytes(std::span(memory_)), kSamples, 2, now() - 60s,
                      [](SampleId id) { return std::optional(static_cast<DiskBoard::Seat>(id % 2)); });
  }
  void open(std::uint32_t rank) {
    learners_[rank].reset();
    learners_[rank] =
        std::make_unique<Learner>(*source_, disk_.path(), rank, std::as_writable_bytes(std::span(memory_)),
                                  [this](MemberId id) { return learners_[id.index - 1u] != nullptr; });
  }
  Learner& learner(std::uint32_t rank) { return *learners_[rank]; }
  // All odd samples are on the disk of learner 1.
  void warm() {
    for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(1).get(id), Origin::kSource);
    learner(1).wait_for_disk();
  }
  void damage() {
    std::fstream data(learner(1).data(), std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t at = 10; at < kSamples / 2 * kLength; at += kLength) {
      data.seekp(static_cast<std::streamoff>(at));
      data.put('!');
    }
  }

  TestFolder folder_;
  TestFolder disk_;
  std::unique_ptr<Source> source_;
  std::vector<std::uint64_t> memory_;
  std::array<std::unique_ptr<Learner>, 2> learners_;
};

TEST_F(DisksTest, WhatIsAtHomeBesideIsBroughtThereAndReadFromThere) {
  EXPECT_EQ(learner(0).ask({.id = 3}).kind, Ask::kElsewhere);
  EXPECT_EQ(learner(0).ask({.id = 3}).kind, Ask::kElsewhere);
  EXPECT_EQ(learner(0).ask({.id = 5}).kind, Ask::kElsewhere);
  EXPECT_EQ(learner(1).serve(), (std::vector<SampleId>{3, 5}));
  EXPECT_EQ(learner(0).get(3), Origin::kDisk);
  EXPECT_EQ(learner(0).get(5), Origin::kDisk);
  EXPECT_FALSE(learner(0).tiers().disk()->store().has(3)) << "it is kept once";
  EXPECT_TRUE(learner(0).tiers().keeps(7)) << "read whole, because it will be";
}

TEST_F(DisksTest, WhoDoesNotWaitReadsItFromTheSource) {
  EXPECT_EQ(learner(0).ask({.id = 3, .alone = true}).kind, Ask::kQueued);
  EXPECT_EQ(learner(0).wait_one().origin, Origin::kSource);
}

TEST_F(DisksTest, NobodyWaitsForALearnerThatIsGoneOrTakesNoMore) {
  learner(1).seat().stop_taking();
  EXPECT_EQ(learner(0).get(3), Origin::kSource);
  learners_[1].reset();
  EXPECT_EQ(learner(0).get(5), Origin::kSource);
}

TEST_F(DisksTest, WhatALearnerThatIsGoneHadCanStillBeRead) {
  warm();
  learners_[1].reset();
  for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(0).get(id), Origin::kDisk);
}

TEST_F(DisksTest, ANewStartFindsWhatIsThere) {
  warm();
  for (auto& old : learners_) old.reset();
  format();
  for (std::uint32_t rank = 0; rank < 2; ++rank) open(rank);
  for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(0).get(id), Origin::kDisk);
  for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(1).get(id), Origin::kDisk);
}

TEST_F(DisksTest, DamagedBytesAreNeverTakenAndTheirOwnerReplacesThem) {
  warm();
  damage();
  for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(0).get(id), Origin::kSource);
  EXPECT_EQ(learner(1).serve().size(), kSamples / 2);
  EXPECT_EQ(learner(1).tiers().disk()->store().damaged(), kSamples / 2);
  for (SampleId id = 1; id < kSamples; id += 2) EXPECT_EQ(learner(0).get(id), Origin::kDisk) << "it is there again";
}

TEST_F(DisksTest, AFalseDoubtCostsOneReadOfTheDisk) {
  warm();
  learner(0).seat().doubt(3, *learner(0).seat().board().find(3));
  EXPECT_FALSE(learner(0).seat().has_beside(3));
  EXPECT_EQ(learner(1).serve(), std::vector<SampleId>{3});
  EXPECT_EQ(learner(1).tiers().disk()->store().damaged(), 0u);
  EXPECT_EQ(learner(0).get(3), Origin::kDisk);
}

}  // namespace
}  // namespace foreload
