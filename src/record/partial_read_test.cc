// A converted dataset on slow storage: of samples that are not kept, only the header and the rows of the crop are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "base/event_record.h"
#include "base/hash.h"
#include "base/sanitizer.h"
#include "base/test_folder.h"
#include "foreload/loader.h"
#include "policy/replay.h"
#include "prep/jpeg_samples.h"
#include "record/convert.h"
#include "source/source_testing.h"

namespace foreload {
namespace {

constexpr unsigned kPictures = 400;  // more than are read ahead
constexpr Epoch kEpochs = 3;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a run delivered, by (epoch, position), and what it read.
struct Outcome {
  std::map<std::pair<Epoch, Position>, std::uint64_t> tensors;
  std::vector<EpochStats> epochs;
  std::string error;
};

class PartialReadTest : public testing::Test {
 protected:
  PartialReadTest() {
    for (unsigned i = 0; i < kPictures; ++i) {
      JpegSpec spec{.width = 200 + i % 50, .height = 320 - i % 70, .quality = 80, .seed = i};
      if (i % 3 != 0) spec.sampling = {2, i % 3, 1, 1, 1, 1};
      folder_.write("src/c" + std::to_string(i % 2) + "/" + std::to_string(1000 + i) + ".jpg",
                    text_of(make_jpeg(spec)));
    }
    ConvertOptions convert;
    convert.source.datasets = {folder_.path("src")};
    convert.destination = folder_.path("out");
    convert.threads = 2;
    const auto report = convert_dataset(convert);
    EXPECT_TRUE(report.ok()) << report.error().message;
  }

  LoaderOptions options() const {
    LoaderOptions options;
    options.dataset = {folder_.path("out")};
    options.batch = 2;
    options.seed = 5;
    options.chain = {random_resized_crop(64), random_flip()};
    options.dtype = DType::kU8;
    options.memory = 64_MiB;
    options.workers = 2;
    options.cache = false;
    options.epochs = kEpochs;
    return options;
  }
  // So slow that every kilobyte counts.
  LoaderOptions slow() const {
    LoaderOptions options = this->options();
    options.storage = "10MB/s";
    return options;
  }

  static Outcome run(const LoaderOptions& options) {
    Outcome result;
    auto loader = Loader::open(options);
    EXPECT_TRUE(loader.ok()) << loader.error().message;
    for (Epoch epoch = 0; epoch < options.epochs;) {
      auto batch = loader->next();
      if (!batch.ok()) {
        result.error = batch.error().message;
        break;
      }
      if (!*batch) {
        ++epoch;
        continue;
      }
      const Bytes each = (*batch)->data().size() / (*batch)->size();
      for (std::size_t i = 0; i < (*batch)->size(); ++i) {
        result.tensors[{(*batch)->epoch(), (*batch)->positions()[i]}] =
            hash_bytes((*batch)->data().subspan(i * each, each));
      }
    }
    result.epochs = loader->stats().epochs;
    return result;
  }

  TestFolder folder_;
};

TEST_F(PartialReadTest, TheSameTensorsFromFewerBytes) {
  const Outcome whole = run(options());
  ASSERT_EQ(whole.tensors.size(), kPictures * kEpochs);
  LoaderOptions recorded = slow();
  recorded.record = folder_.path("record");
  const Outcome part = run(recorded);
  EXPECT_EQ(part.error, "");
  EXPECT_EQ(part.tensors, whole.tensors);
  const Bytes all = whole.epochs[0].source_bytes;
  const Bytes last = part.epochs.at(kEpochs - 1).source_bytes;
  EXPECT_LT(last, kHasSanitizer ? all : all * 8 / 10) << "instrumented requests cost so much that fewer parts pay";
  const auto events = read_event_record(recorded.record);
  ASSERT_TRUE(events.ok());
  const ReplayResult again = replay_pacing(*events);
  EXPECT_EQ(again.different, 0u) << again.first_difference;
}

// That quick storage is read whole is the pacer's decision, and tested there: a machine that is busy is not quick.
TEST_F(PartialReadTest, WhatIsKeptIsReadWhole) {
  const Outcome quick = run(options());
  LoaderOptions kept = slow();
  kept.cache = true;
  const Outcome cached = run(kept);
  EXPECT_EQ(cached.tensors, quick.tensors);
  EXPECT_EQ(cached.epochs.at(kEpochs - 1).source_bytes, 0u);
  TestFolder disk;
  LoaderOptions below = slow();
  below.disk = disk.path();
  const Outcome on_disk = run(below);
  EXPECT_EQ(on_disk.tensors, quick.tensors);
  EXPECT_EQ(on_disk.epochs.at(kEpochs - 1).source_bytes, 0u);
}

// Damage that the index does not know of: found in a part, judged by the whole sample.
TEST_F(PartialReadTest, DamagedSamplesAreJudgedAsAWhole) {
  const std::string shard = folder_.path("out/shard-000000.tar");
  const auto stamp = std::filesystem::last_write_time(shard);
  (void)run(options());  // the index is there
  const auto source = open_at(folder_.path("out"));
  ASSERT_TRUE(source.result.ok());
  unsigned damaged = 0;
  for (SampleId id = 0; id < kPictures; id += 4) {
    const auto rows = source.source().rows(id);
    ASSERT_GT(rows.size(), 8u);
    // A restart marker becomes data.
    const Bytes at = source.source().locate(id).offset + rows[rows.size() / 2] - 1;
    std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(at))
        .put('\0');
    ++damaged;
  }
  std::filesystem::last_write_time(shard, stamp);
  const Outcome whole = run(options());
  LoaderOptions recorded = slow();
  recorded.record = folder_.path("record");
  const Outcome part = run(recorded);
  EXPECT_EQ(part.error, whole.error);
  EXPECT_EQ(part.tensors, whole.tensors);
  EXPECT_EQ(whole.tensors.size(), kPictures * kEpochs) << "libjpeg goes on behind " << damaged << " wrong markers";
  const auto events = read_event_record(recorded.record);
  ASSERT_TRUE(events.ok());
  EXPECT_GT(std::count_if(events->begin(), events->end(),
                          [](const Event& event) { return event.kind == EventKind::kPart && event.c == 1; }),
            kPictures / 4);
}

// Bounce buffers for one long sample leave a depth of one read, and a part is two.
TEST_F(PartialReadTest, ADepthOfOneReadsWholeSamples) {
  folder_.write("src/c0/long.jpg", text_of(make_jpeg({.width = 2000, .height = 2000, .quality = 100, .seed = 1})));
  ConvertOptions convert;
  convert.source.datasets = {folder_.path("src")};
  convert.destination = folder_.path("other");
  ASSERT_TRUE(convert_dataset(convert).ok());
  LoaderOptions plain = options();
  plain.dataset = {folder_.path("other")};
  plain.epochs = 1;
  plain.memory = 256_MiB;
  LoaderOptions tight = plain;
  tight.storage = "100MB/s";
  tight.direct_io = true;
  tight.memory = 64_MiB;
  tight.workers = 1;
  const Outcome outcome = run(tight);
  EXPECT_EQ(outcome.error, "");
  const Outcome expected = run(plain);
  EXPECT_EQ(expected.error, "");
  EXPECT_EQ(outcome.tensors, expected.tensors);
}

}  // namespace
}  // namespace foreload
