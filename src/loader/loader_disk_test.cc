// The disk tier below a loader: what is read from where, and what happens when the disk misbehaves.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <thread>

#include "base/event_record.h"
#include "base/text.h"
#include "loader/ledger.h"
#include "loader/seams.h"
#include "policy/replay.h"
#include "tier/disk_folder.h"

namespace foreload {
namespace {

constexpr std::uint64_t kSamples = 300;
constexpr Bytes kAll = kSamples * Ledger::kLength;

class LoaderDiskTest : public testing::Test {
 protected:
  LoaderOptions options() {
    LoaderOptions options = ledger_.options();
    options.cache = false;  // everything that is not read from the disk is read from the source
    options.disk = disk_.path();
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    return options;
  }

  // Reads so many epochs, checks every sample, and returns what they cost.
  std::vector<EpochStats> read(const LoaderOptions& options, Epoch epochs, const Seams& seams = {}) {
    auto loader = open_with_seams(options, seams);
    EXPECT_TRUE(loader.ok()) << loader.error().message;
    if (!loader.ok()) return {};
    Seen seen;
    for (Epoch e = 0; e < epochs; ++e) EXPECT_TRUE(read_epoch(*loader, seen));
    EXPECT_EQ(seen, reference(kSamples, options, epochs));
    stats_ = loader->stats();
    for (const EpochStats& epoch : stats_.epochs) {
      EXPECT_EQ(epoch.memory_bytes + epoch.disk_bytes + epoch.source_bytes - epoch.filled_bytes, kAll);
      EXPECT_LE(epoch.source_bytes, kAll + lost_);
    }
    return stats_.epochs;
  }

  std::string file(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator(disk_.path())) return entry.path() / name;
    return "";
  }

  Ledger ledger_{kSamples};
  TestFolder disk_;
  std::vector<std::string> warnings_;
  Bytes lost_ = 0;  // may be read ahead for a disk that fails meanwhile, and so again when it is needed
  LoaderStats stats_;
};

int soak(int full) {
  const char* const asked = std::getenv("FORELOAD_SOAK");
  return asked != nullptr && std::string_view(asked) == "1" ? full : full / 10;
}

TEST_F(LoaderDiskTest, LaterEpochsAndLaterRunsReadNothingFromTheSource) {
  for (const char* io : {"", "threads"}) {
    for (const bool direct : {false, true}) {
      std::filesystem::remove_all(disk_.path());
      LoaderOptions here = options();
      here.io = io;
      here.direct_io = direct;
      const auto first = read(here, 2);
      EXPECT_EQ(first[0].source_bytes, kAll);
      EXPECT_LT(first[1].source_bytes, kAll / 2) << "the last samples may still wait to be written";
      const auto again = read(here, 2);
      EXPECT_EQ(again[0].disk_bytes, kAll);
      EXPECT_EQ(again[1].source_bytes, 0u);
      EXPECT_GT(again[1].disk_bytes, 0u) << "the rest was still in transit from the epoch before";
    }
  }
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(LoaderDiskTest, WhatMemoryKeepsIsOnDiskToo) {
  LoaderOptions cached = options();
  cached.cache = true;
  EXPECT_EQ(read(cached, 2)[1].memory_bytes, kAll);
  EXPECT_GE(stats_.disk_capacity, kAll);
  const auto again = read(cached, 2);
  EXPECT_EQ(again[0].disk_bytes, kAll);
  EXPECT_EQ(again[0].source_bytes, 0u);
  EXPECT_EQ(again[1].memory_bytes, kAll);
}

TEST_F(LoaderDiskTest, ASmallDiskHoldsItsPart) {
  LoaderOptions small = options();
  small.disk_bytes = 4096 + kSamples * 32 + kAll / 2;
  (void)read(small, 1);
  const auto again = read(small, 2);
  EXPECT_EQ(again[0].disk_bytes, kAll / 2);
  EXPECT_EQ(again[0].source_bytes, kAll / 2);
  EXPECT_LE(again[1].source_bytes, kAll / 2);
  // Other samples are wanted now.
  small.seed = 8;
  (void)read(small, 1);
  EXPECT_EQ(read(small, 1)[0].disk_bytes, kAll / 2);
  EXPECT_LE(std::filesystem::file_size(file("data")), kAll / 2);
}

TEST_F(LoaderDiskTest, AFileThatWasChangedIsReadAnew) {
  (void)read(options(), 1);
  const std::string path = ledger_.folder().path(Ledger::file(17));
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) - std::chrono::hours(1));
  LoaderOptions rebuilt = options();
  rebuilt.source.rebuild_index = true;
  EXPECT_EQ(read(rebuilt, 1)[0].source_bytes, Ledger::kLength);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("1 sample is replaced"), std::string::npos) << warnings_[0];
  EXPECT_EQ(read(options(), 1)[0].source_bytes, 0u);
}

TEST_F(LoaderDiskTest, RanksWithTheSameFolderDoNotExcludeEachOther) {
  LoaderOptions first = options();
  first.world = 2;
  LoaderOptions second = first;
  second.rank = 1;
  const Loader one = open(first);
  const Loader other = open(second);
  EXPECT_GT(one.stats().disk_capacity, 0u);
  EXPECT_GT(other.stats().disk_capacity, 0u);
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

TEST_F(LoaderDiskTest, ASecondLoaderRunsWithoutTheDisk) {
  (void)read(options(), 1);
  const Loader holder = open(options());
  EXPECT_EQ(read(options(), 1)[0].source_bytes, kAll);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("in use"), std::string::npos) << warnings_[0];
}

TEST_F(LoaderDiskTest, DamageBetweenRunsIsReadFromTheSource) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  (void)read(options(), 1);
  for (int turn = 0; turn < soak(100); ++turn) {
    warnings_.clear();
    for (int flip = 0; flip < 20; ++flip) {
      const std::string path = file(random() % 3 == 0 ? "table" : "data");
      const auto at = static_cast<std::streamoff>(16 + random() % (std::filesystem::file_size(path) - 16));
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at).put(static_cast<char>(random()));
    }
    LoaderOptions recorded = options();
    recorded.record = disk_.path() + ".record";
    const auto epochs = read(recorded, 2);
    EXPECT_LE(warnings_.size(), 1u);
    const auto events = read_event_record(recorded.record);
    ASSERT_TRUE(events.ok());
    std::uint64_t from_source = 0;
    for (const Event& event : *events) {
      const bool started = event.kind == EventKind::kReadStarted;
      if (started && ReadFields::unpack(event.c).origin == Origin::kSource) ++from_source;
      if (event.kind == EventKind::kDiskDropped) ++from_source;
    }
    EXPECT_EQ((epochs[0].source_bytes + epochs[1].source_bytes) / Ledger::kLength, from_source);
    std::filesystem::remove(recorded.record);
  }
}

class FaultFrom : public WriteFault {
 public:
  FaultFrom(int k, int error_number) : k_(k), error_number_(error_number) {}
  int apply(int result) override { return ++writes_ >= k_ ? -error_number_ : result; }
  int writes() const { return writes_; }

 private:
  const int k_;
  const int error_number_;
  std::atomic<int> writes_{0};
};

TEST_F(LoaderDiskTest, AFullOrFailingDiskEndsFillingAndNothingElse) {
  (void)read(options(), 1);  // makes the folder
  lost_ = 32 * Ledger::kLength;
  for (int k = 2; k <= soak(200); ++k) {
    SCOPED_TRACE(k);
    warnings_.clear();
    for (const char* name : {"data", "table"}) std::filesystem::remove(file(name));
    FaultFrom fault(k, k % 3 == 0 ? EROFS : k % 3 == 1 ? ENOSPC : EIO);
    (void)read(options(), 2, {.write_fault = &fault});
    ASSERT_GE(fault.writes(), k);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("takes no more"), std::string::npos) << warnings_[0];
    EXPECT_GE(read(options(), 1)[0].disk_bytes, static_cast<Bytes>(k - 2) / 2 * Ledger::kLength);
  }
}

TEST_F(LoaderDiskTest, AFailingReadOfTheDiskIsReadFromTheSource) {
  class SometimesEio : public ReadFault {
   public:
    int apply(int result) override { return ++reads_ % 7 == 0 ? -EIO : result; }

   private:
    std::atomic<int> reads_{0};
  } fault;
  (void)read(options(), 1);
  EXPECT_GT(read(options(), 1, {.read_fault = &fault})[0].source_bytes, 0u);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(LoaderDiskTest, LittleTransitAndASlowWriterDoNotHang) {
  class Slow : public WriteFault {
   public:
    int apply(int result) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return result;
    }
  } slow;
  LoaderOptions little = options();
  little.memory = 5_MiB;
  (void)read(little, 2, {.write_fault = &slow});
  auto loader = open_with_seams(options(), {.write_fault = &slow});
  ASSERT_TRUE(loader.ok());
  Seen seen;
  for (int i = 0; i < 5; ++i) {
    seen.clear();
    ASSERT_TRUE(read_epoch(*loader, seen, 3));
    ASSERT_TRUE(loader->seek_epoch(static_cast<Epoch>(i)).ok());
  }
}

TEST_F(LoaderDiskTest, OptionsThatCanNotWorkAreRefused) {
  LoaderOptions wrong = options();
  wrong.disk = "";
  wrong.disk_bytes = 1_GiB;
  EXPECT_EQ(Loader::open(wrong).error().code, Code::kInvalid);
  wrong.disk = ledger_.folder().path("class000");
  EXPECT_EQ(Loader::open(wrong).error().code, Code::kInvalid);
  wrong.disk = disk_.path() + "/missing/cache";
  EXPECT_EQ(Loader::open(wrong).error().code, Code::kInvalid) << "the dataset is there: an option is wrong";
}

}  // namespace
}  // namespace foreload
