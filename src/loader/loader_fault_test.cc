// Bad samples and failing reads: what the loader does when the data or the storage misbehaves.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "loader/ledger.h"
#include "loader/seams.h"
#include "prep/chain.h"
#include "prep/jpeg_samples.h"

namespace foreload {
namespace {

// Makes sample `id` unusable: a file of another length can not be the array that the chain expects.
void damage(const Ledger& ledger, std::uint64_t id, std::size_t length) {
  ledger.folder().write(Ledger::file(id), std::string(length, 'x'));
}

TEST(LoaderFaultTest, ABadSampleFailsTheRunAndIsNamed) {
  const Ledger ledger(50);
  damage(ledger, 17, 100);
  LoaderOptions options = ledger.options();
  options.shuffle = false;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok());
  Seen seen;
  ASSERT_TRUE(read_epoch(*loader, seen, 2)) << "batches before the bad sample arrive";
  auto batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kBadSample);
  EXPECT_NE(batch.error().message.find("s000017.bin"), std::string::npos) << batch.error().message;
  EXPECT_FALSE(loader->next().ok()) << "the run is over";
}

TEST(LoaderFaultTest, ReplacementsAreTheSameForEveryRankAndThreadCount) {
  const Ledger ledger(120);
  damage(ledger, 3, 100);
  damage(ledger, 77, 0);
  damage(ledger, 119, 513);
  LoaderOptions options = ledger.options();
  options.on_error = OnError::kReplace;
  options.epochs = 2;
  options.global_batch = 12;
  options.last_batch = LastBatch::kRagged;
  std::optional<Seen> expected;
  for (std::uint32_t world : {1u, 2u, 3u}) {
    options.world = world;
    options.workers = world;
    Seen seen;
    std::uint64_t replaced = 0;
    for (options.rank = 0; options.rank < world; ++options.rank) {
      auto loader = Loader::open(options);
      ASSERT_TRUE(loader.ok()) << loader.error().message;
      ASSERT_TRUE(read_epoch(*loader, seen));
      ASSERT_TRUE(read_epoch(*loader, seen));
      const LoaderStats stats = loader->stats();
      replaced += stats.quarantine.size();
      for (const Quarantined& bad : stats.quarantine) {
        EXPECT_TRUE(bad.id == 3 || bad.id == 77 || bad.id == 119) << bad.id << ": " << bad.reason;
      }
    }
    EXPECT_GE(replaced, 6u);
    EXPECT_EQ(seen.size(), 240u);
    if (!expected) expected = seen;
    EXPECT_EQ(seen, *expected) << "world " << world;
  }
}

std::vector<std::byte> prepared(const std::vector<Transform>& transforms, std::span<const std::byte> sample,
                                const PrepKey& key) {
  const Chain chain = std::move(Chain::compile({.transforms = transforms})).value();
  ChainRunner runner(chain);
  std::vector<std::byte> out(chain.output().bytes());
  EXPECT_TRUE(runner.begin(sample, key));
  EXPECT_TRUE(runner.finish(out));
  return out;
}

TEST(LoaderFaultTest, ASubstituteIsAugmentedWithTheKeyOfThePlaceThatItFills) {
  constexpr std::uint64_t kImages = 24;
  const TestFolder folder;
  std::vector<std::vector<std::byte>> images;
  for (std::uint64_t id = 0; id < kImages; ++id) {
    images.push_back(make_jpeg({.width = 80, .height = 60, .seed = id}));
    const auto* text = reinterpret_cast<const char*>(images[id].data());
    const bool bad = id % 5 == 2;
    folder.write("a/" + std::string(1, static_cast<char>('a' + id)) + ".jpg",
                 bad ? "no image" : std::string(text, images[id].size()));
  }
  LoaderOptions options;
  options.dataset = {folder.path()};
  options.batch = 6;
  options.seed = 11;
  options.chain = {random_resized_crop(16), random_flip(), normalize(kImageNet)};
  options.memory = 64_MiB;
  options.on_error = OnError::kReplace;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok()) << loader.error().message;
  const Schedule schedule({.samples = kImages, .seed = options.seed});
  std::uint64_t substitutes = 0;
  for (Epoch epoch = 0; epoch < 2; ++epoch) {
    for (auto batch = loader->next(); *batch; batch = loader->next()) {
      const Batch& got = **batch;
      const std::size_t length = got.data().size() / got.size();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Position position = got.positions()[i];
        substitutes += got.ids()[i] != schedule.sample_at(epoch, position);
        const auto expected = prepared(options.chain, images[got.ids()[i]], {options.seed, epoch, position});
        EXPECT_TRUE(std::ranges::equal(got.data().subspan(i * length, length), expected))
            << "epoch " << epoch << ", position " << position << ", id " << got.ids()[i];
      }
    }
  }
  EXPECT_EQ(substitutes, 2u * 5u);
}

TEST(LoaderFaultTest, TheCapOnReplacementsEndsTheRun) {
  const Ledger ledger(40);
  for (std::uint64_t id = 0; id < 40; ++id) damage(ledger, id, 100);
  LoaderOptions options = ledger.options();
  options.on_error = OnError::kReplace;
  options.limits.replacements = 25;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok());
  auto batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_NE(batch.error().message.find("25 samples were replaced"), std::string::npos) << batch.error().message;
}

TEST(LoaderFaultTest, AFileThatChangedSinceIndexingIsDataChanged) {
  const Ledger ledger(30);
  ASSERT_TRUE(Loader::open(ledger.options()).ok());  // writes the index
  LoaderOptions options = ledger.options();
  options.on_error = OnError::kReplace;  // not a bad sample: never replaced
  options.shuffle = false;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok());
  // In place, so that the folder's time stays as it was.
  { std::ofstream(ledger.folder().path(Ledger::file(20)), std::ios::app) << "more"; }
  auto again = Loader::open(options);
  ASSERT_TRUE(again.ok()) << again.error().message;
  for (int n = 0; n < 2; ++n) ASSERT_TRUE(again->next().ok());
  auto batch = again->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().code, Code::kDataChanged) << batch.error().message;
  EXPECT_NE(batch.error().message.find("s000020.bin"), std::string::npos);
}

TEST(LoaderFaultTest, AFileThatVanishedIsDataChanged) {
  const Ledger ledger(1000);
  LoaderOptions options = ledger.options();
  options.shuffle = false;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok());
  std::filesystem::remove(ledger.folder().path(Ledger::file(999)));  // far beyond what is read ahead
  Status last;
  while (last.ok()) {
    auto batch = loader->next();
    if (!batch.ok()) {
      last = batch.error();
    } else {
      ASSERT_TRUE(batch->has_value()) << "the epoch ended without the file";
    }
  }
  EXPECT_EQ(last.error().code, Code::kDataChanged) << last.error().message;
}

// Changes the k-th raw read result, once or for good.
class KthRead : public ReadFault {
 public:
  enum class Kind { kEio, kEioForGood, kShort, kEintr };
  KthRead(int k, Kind kind) : left_(k), kind_(kind) {}

  int apply(int result) override {
    const int left = left_.fetch_sub(1);
    if (left > 0 || (left < 0 && kind_ != Kind::kEioForGood)) return result;
    if (kind_ == Kind::kShort) return result > 1 ? result / 2 : result;
    return kind_ == Kind::kEintr ? -EINTR : -EIO;
  }

 private:
  std::atomic<int> left_;
  Kind kind_;
};

TEST(LoaderFaultTest, AFaultAtTheKthReadIsSurvivedOrNamed) {
  const Ledger ledger(60);
  const int step = std::getenv("FORELOAD_SOAK") != nullptr ? 1 : 10;
  const Seen expected = reference(60, ledger.options(), 1);
  for (const char* io : {"uring", "threads"}) {
    for (const auto kind : {KthRead::Kind::kEio, KthRead::Kind::kShort, KthRead::Kind::kEintr}) {
      for (int k = 0; k < 60; k += step) {
        KthRead fault(k, kind);
        LoaderOptions options = ledger.options();
        options.io = io;
        options.epochs = 1;
        auto loader = open_with_seams(options, {.read_fault = &fault});
        ASSERT_TRUE(loader.ok());
        Seen seen;
        ASSERT_TRUE(read_epoch(*loader, seen)) << io << ", k = " << k;
        EXPECT_EQ(seen, expected);
      }
    }
  }
}

TEST(LoaderFaultTest, StorageThatStaysBrokenIsATypedError) {
  const Ledger ledger(60);
  for (const char* io : {"uring", "threads"}) {
    KthRead fault(30, KthRead::Kind::kEioForGood);
    LoaderOptions options = ledger.options();
    options.io = io;
    options.on_error = OnError::kReplace;  // read errors are never replaced
    auto loader = open_with_seams(options, {.read_fault = &fault});
    ASSERT_TRUE(loader.ok());
    Status status;
    for (int n = 0; n < 8 && status.ok(); ++n) {
      auto batch = loader->next();
      if (!batch.ok()) status = batch.error();
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kIo) << status.error().message;
    EXPECT_NE(status.error().message.find("after 4 attempts"), std::string::npos) << status.error().message;
  }
}

// Each substitute is refused in its turn, without a read that would wake anybody.
TEST(LoaderFaultTest, ManyEmptySamplesInARowAreReplacedWithoutAWait) {
  constexpr std::uint64_t kSamples = 40;
  const Ledger ledger(kSamples);
  for (std::uint64_t id = 0; id < kSamples; ++id) {
    if (id != 17) ledger.folder().write(Ledger::file(id), "");
  }
  LoaderOptions options = ledger.options(4);
  options.on_error = OnError::kReplace;
  options.limits.replacements = 1'000'000;
  Loader loader = open(options);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (;;) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch.ok()) << batch.error().message;
      if (!*batch) break;
      for (const SampleId id : (*batch)->ids()) EXPECT_EQ(id, 17u);
    }
    ASSERT_TRUE(loader.seek_epoch(0).ok());  // all is cached now
  }
}

}  // namespace
}  // namespace foreload
