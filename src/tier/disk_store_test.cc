#include "tier/disk_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 40;

Bytes length_of(SampleId id) {
  return 50 + id * 7;
}

std::vector<std::byte> content_of(SampleId id) {
  std::vector<std::byte> bytes(length_of(id));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(id * 31 + i * 7 + i / 64);
  return bytes;
}

Bytes total() {
  Bytes sum = 0;
  for (SampleId id = 0; id < kSamples; ++id) sum += length_of(id);
  return sum;
}

int soak(int full) {
  const char* const asked = std::getenv("FORELOAD_SOAK");
  return asked != nullptr && std::string_view(asked) == "1" ? full : full / 10;
}

class DiskStoreTest : public testing::Test {
 protected:
  DiskStoreOptions options() const {
    return {.folder = folder_.path("cache"),
            .samples = {.count = kSamples,
                        .fingerprint = 0xabc,
                        .length = length_of,
                        .stamp =
                            [](SampleId id) {
                              return FileStamp{length_of(id), 5};
                            }},
            .total_bytes = total()};
  }
  static std::unique_ptr<DiskStore> open(const DiskStoreOptions& options) {
    auto store = DiskStore::open(options);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return store.ok() ? std::move(*store) : nullptr;
  }
  std::unique_ptr<DiskStore> open() const { return open(options()); }
  void fill() const {
    const auto store = open();
    for (SampleId id = 0; id < kSamples; ++id) ASSERT_TRUE(*store->write(id, content_of(id)));
  }
  std::string file(const std::string& name) const {
    return folder_.path("cache/" + DiskFolder::name_for(0xabc) + "/" + name);
  }
  // Reads as the tiers do. What is served must be right.
  static bool serves(DiskStore& store, SampleId id) {
    const auto place = store.begin_read(id);
    if (!place) return false;
    std::vector<std::byte> bytes(length_of(id));
    if (!read_exactly(place->fd, place->offset, bytes)) {
      store.drop(id);
      return false;
    }
    if (!store.end_read(id, bytes)) return false;
    EXPECT_EQ(bytes, content_of(id)) << "sample " << id;
    return true;
  }
  static std::uint64_t served(DiskStore& store) {
    std::uint64_t count = 0;
    for (SampleId id = 0; id < kSamples; ++id) count += serves(store, id) ? 1 : 0;
    return count;
  }

  TestFolder folder_;
};

TEST_F(DiskStoreTest, WhatIsWrittenIsThereAfterOpeningAgain) {
  fill();
  const auto store = open();
  EXPECT_EQ(store->used_bytes(), total());
  EXPECT_EQ(served(*store), kSamples);
  EXPECT_EQ(store->damaged(), 0u);
}

TEST_F(DiskStoreTest, FilesChangedSinceAreNotServed) {
  fill();
  DiskStoreOptions touched = options();
  touched.samples.stamp = [](SampleId id) { return FileStamp{length_of(id), id == 7 ? 6 : 5}; };
  const auto store = open(touched);
  EXPECT_FALSE(store->has(7));
  EXPECT_EQ(served(*store), kSamples - 1);
  EXPECT_TRUE(*store->write(7, content_of(7))) << "its room is free again";
  EXPECT_EQ(store->outdated(), 1u);
  EXPECT_EQ(store->damaged(), 0u);
}

TEST_F(DiskStoreTest, ACopyOfTheDatasetReplacesTheFirstAndNothingCountsAsDamaged) {
  fill();
  DiskStoreOptions copy = options();
  copy.samples.stamp = [](SampleId id) { return FileStamp{length_of(id), 6}; };
  {
    const auto store = open(copy);
    EXPECT_EQ(store->outdated(), kSamples);
    EXPECT_EQ(store->used_bytes(), 0u);
    for (SampleId id = kSamples; id-- > kSamples / 2;) ASSERT_TRUE(*store->write(id, content_of(id)));
    EXPECT_EQ(store->damaged(), 0u);
  }
  // The first one again: its entries must not point at what the copy wrote.
  const auto store = open();
  EXPECT_EQ(store->outdated(), kSamples / 2);
  EXPECT_EQ(served(*store), 0u);
  EXPECT_EQ(store->damaged(), 0u);
}

TEST_F(DiskStoreTest, RanksOfOneFolderHaveCachesOfTheirOwn) {
  DiskStoreOptions second = options();
  second.rank = 1;
  const auto first = open();
  const auto other = open(second);
  EXPECT_EQ(other->path(), folder_.path("cache/" + DiskFolder::name_for(0xabc) + "-rank1"));
  ASSERT_TRUE(*first->write(3, content_of(3)));
  EXPECT_FALSE(other->has(3));
}

TEST_F(DiskStoreTest, ASecondOpenerIsToldWhyNot) {
  auto first = open();
  const auto second = DiskStore::open(options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kIo);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos) << second.error().message;
  first.reset();
  EXPECT_TRUE(DiskStore::open(options()).ok());
}

TEST_F(DiskStoreTest, FoldersThatAreNotOursAreNotTouched) {
  folder_.write("cache/" + DiskFolder::name_for(0xabc) + "/data", "precious");
  const auto refused = DiskStore::open(options());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kIo);
  std::string kept;
  std::ifstream(file("data")) >> kept;
  EXPECT_EQ(kept, "precious");
  EXPECT_FALSE(std::filesystem::exists(file("lock"))) << "and nothing is left in them";
}

TEST_F(DiskStoreTest, AFolderThatAKillLeftWithoutMarkerIsClaimed) {
  for (const bool with_lock : {false, true}) {
    std::filesystem::remove_all(folder_.path("cache"));
    std::filesystem::create_directories(folder_.path("cache/" + DiskFolder::name_for(0xabc)));
    if (with_lock) folder_.write("cache/" + DiskFolder::name_for(0xabc) + "/lock", "");
    EXPECT_TRUE(DiskStore::open(options()).ok()) << with_lock;
  }
}

TEST_F(DiskStoreTest, LinksAreNotFollowed) {
  const std::string victim = folder_.write("victim", "precious");
  (void)open();
  for (const char* name : {"data", "table"}) {
    std::filesystem::remove(file(name));
    std::filesystem::create_symlink(victim, file(name));
    EXPECT_FALSE(DiskStore::open(options()).ok()) << name;
    std::filesystem::remove(file(name));
    std::filesystem::create_hard_link(victim, file(name));
    EXPECT_FALSE(DiskStore::open(options()).ok()) << name;
    std::filesystem::remove(file(name));
  }
  EXPECT_EQ(std::filesystem::file_size(victim), 8u);
}

TEST_F(DiskStoreTest, ATableOfAnotherVersionIsLeftAlone) {
  fill();
  const std::uint32_t version = 2;
  std::fstream(file("table"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(8)
      .write(reinterpret_cast<const char*>(&version), sizeof version);
  const auto before = std::filesystem::file_size(file("data"));
  const auto refused = DiskStore::open(options());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("version"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(file("data")), before);
}

TEST_F(DiskStoreTest, ADamagedHeaderBeginsAnew) {
  fill();
  std::fstream(file("table"), std::ios::in | std::ios::out | std::ios::binary).seekp(17).write("x", 1);
  const auto store = open();
  EXPECT_EQ(served(*store), 0u);
  EXPECT_TRUE(*store->write(0, content_of(0)));
  EXPECT_TRUE(serves(*store, 0));
}

TEST_F(DiskStoreTest, CutFilesServeWhatIsLeft) {
  fill();
  std::filesystem::resize_file(file("data"), total() / 2);
  const std::uint64_t left = served(*open());
  EXPECT_GT(left, kSamples / 4);
  EXPECT_LT(left, kSamples);
  std::filesystem::resize_file(file("table"), kDiskHeaderBytes + 10 * sizeof(DiskEntry) + 5);
  EXPECT_EQ(served(*open()), 10u);
}

// R7: 10,000 flips in full length. Whatever is flipped, what is served is right (serves() judges), and nearly all of it
// is served.
TEST_F(DiskStoreTest, FlippedBitsAreNeverServed) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  fill();
  for (int turn = 0; turn < soak(10000) / 10; ++turn) {
    for (int flip = 0; flip < 10; ++flip) {
      const std::string path = file(random() % 2 == 0 ? "data" : "table");
      // The first 16 bytes of a table say whose it is: see ATableOfAnotherVersionIsLeftAlone.
      const Bytes at = 16 + random() % (std::filesystem::file_size(path) - 16);
      std::fstream open(path, std::ios::in | std::ios::out | std::ios::binary);
      open.seekg(static_cast<std::streamoff>(at));
      const int byte = open.get();
      open.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(byte ^ (1 << random() % 8)));
    }
    const auto store = open();
    ASSERT_NE(store, nullptr);
    (void)served(*store);
    for (SampleId id = 0; id < kSamples; ++id) {
      if (store->has(id)) continue;
      ASSERT_TRUE(store->write(id, content_of(id)).ok());
    }
    ASSERT_GE(served(*store), kSamples - 4) << "some holes may fit nobody";
  }
}

class FaultAt : public WriteFault {
 public:
  FaultAt(int k, int error_number) : k_(k), error_number_(error_number) {}
  int apply(int result) override { return ++writes_ == k_ ? -error_number_ : result; }
  int writes() const { return writes_; }

 private:
  int k_;
  int error_number_;
  int writes_ = 0;
};

TEST_F(DiskStoreTest, AFailingWriteAtEveryPlaceEndsWritingAndHarmsNothing) {
  for (const int error_number : {ENOSPC, EROFS, EIO}) {
    for (int k = 2;; ++k) {  // the first one is the header's
      for (const char* name : {"data", "table"}) std::filesystem::remove(file(name));
      FaultAt fault(k, error_number);
      DiskStoreOptions faulty = options();
      faulty.fault = &fault;
      const auto store = open(faulty);
      std::uint64_t written = 0;
      int errors = 0;
      for (SampleId id = 0; id < kSamples; ++id) {
        const auto done = store->write(id, content_of(id));
        errors += done.ok() ? 0 : 1;
        written += done.ok() && *done ? 1 : 0;
      }
      EXPECT_EQ(served(*store), written);
      if (fault.writes() < k) {
        EXPECT_EQ(written, kSamples);
        break;
      }
      EXPECT_EQ(errors, 1) << "write " << k;
      EXPECT_FALSE(store->writable());
      EXPECT_TRUE(store->failure());
    }
  }
}

TEST_F(DiskStoreTest, AShortWriteGoesOn) {
  class Half : public WriteFault {
   public:
    int apply(int result) override { return std::max(1, result / 2); }
  } half;
  DiskStoreOptions faulty = options();
  faulty.fault = &half;
  const auto store = open(faulty);
  for (SampleId id = 0; id < kSamples; ++id) ASSERT_TRUE(*store->write(id, content_of(id)));
  EXPECT_EQ(served(*store), kSamples);
}

TEST_F(DiskStoreTest, RoomIsMadeByWhatThePlanDoesNotWant) {
  DiskStoreOptions small = options();
  const Bytes table = kDiskHeaderBytes + kSamples * sizeof(DiskEntry);
  small.limit = table + 1000;
  const auto plan = [](SampleId first) {
    return Placement::plan(kSamples, 1 << 20, 1, [=](SampleId id) { return id < first ? 0 : length_of(id); });
  };
  {
    const auto store = open(small);
    EXPECT_EQ(store->capacity(), 1000u);
    store->keep(plan(0));
    SampleId id = 0;
    while (*store->write(id, content_of(id))) ++id;
    EXPECT_GT(id, 5u);
    EXPECT_FALSE(*store->write(39, content_of(39))) << "everything that is there is wanted";
  }
  const auto store = open(small);
  store->keep(plan(37));
  for (SampleId id = 37; id < kSamples; ++id) EXPECT_TRUE(*store->write(id, content_of(id)));
  for (SampleId id = 37; id < kSamples; ++id) EXPECT_TRUE(serves(*store, id));
  (void)served(*store);
  EXPECT_LE(std::filesystem::file_size(file("data")), 1000u);
}

TEST_F(DiskStoreTest, WhatIsBeingReadKeepsItsRoom) {
  DiskStoreOptions small = options();
  small.limit = kDiskHeaderBytes + kSamples * sizeof(DiskEntry) + length_of(0) + length_of(1);
  const auto store = open(small);
  store->keep(Placement::plan(kSamples, 1 << 20, 1, [](SampleId id) { return id < 2 ? 0 : length_of(id); }));
  ASSERT_TRUE(*store->write(0, content_of(0)));
  ASSERT_TRUE(*store->write(1, content_of(1)));
  const auto place = store->begin_read(0);
  ASSERT_TRUE(place);
  EXPECT_FALSE(*store->write(3, content_of(3)));
  std::vector<std::byte> bytes(length_of(0));
  ASSERT_TRUE(read_exactly(place->fd, place->offset, bytes));
  EXPECT_TRUE(store->wait_for_room(Time{0})) << "it is being read";
  EXPECT_TRUE(store->end_read(0, bytes));
  EXPECT_TRUE(store->wait_for_room(kNever));
  EXPECT_TRUE(*store->write(3, content_of(3))) << "it was read";
  EXPECT_FALSE(*store->write(4, content_of(4)));
  EXPECT_FALSE(store->wait_for_room(kNever)) << "nothing that is there may go";
}

TEST_F(DiskStoreTest, ASmallerLimitDropsWhatLiesBeyondIt) {
  fill();
  DiskStoreOptions small = options();
  small.limit = kDiskHeaderBytes + kSamples * sizeof(DiskEntry) + 500;
  const auto store = open(small);
  EXPECT_GT(served(*store), 0u);
  EXPECT_LE(store->used_bytes(), 500u);
  EXPECT_LE(std::filesystem::file_size(file("data")), 500u);
}

TEST_F(DiskStoreTest, AFolderThatCanNotBeMeantIsAnError) {
  DiskStoreOptions wrong = options();
  wrong.folder = folder_.path("missing/cache");
  EXPECT_EQ(DiskStore::open(wrong).error().code, Code::kNotFound);
  wrong.folder = folder_.write("file", "x");
  EXPECT_EQ(DiskStore::open(wrong).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace foreload
