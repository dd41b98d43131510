// What analyze measures with: that it measures what it says, keeps to its bounds and leaves nothing behind. Speeds are
// only compared with limits that are built in.
#include "probe/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/test_folder.h"
#include "probe/generated_dataset.h"
#include "probe/measure_prep.h"
#include "probe/measure_sizes.h"
#include "probe/measure_storage.h"
#include "probe/planned_job.h"
#include "probe/prep_stages.h"
#include "probe/specimen.h"
#include "probe/storage_set.h"
#include "record/convert.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr double kLimit = 4e6;  // bytes per second, of emulated storage
constexpr double kAbove = 1.1;  // of a limit: what the clock's resolution may add

bool lacks(const std::vector<Measured::Missing>& missing, const std::string& what) {
  return std::any_of(missing.begin(), missing.end(),
                     [&](const auto& each) { return each.what == what && !each.why.empty(); });
}

std::vector<std::string> stage_names(const Measured& measured) {
  std::vector<std::string> names;
  for (const PrepStage& stage : measured.stages) names.push_back(stage.name);
  return names;
}

// 24 small photographs, made once.
class PhotosTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TestFolder>();
    const auto made = generate_dataset({.folder = folder_->path("photos"), .images = 24, .seed = 5, .classes = 2});
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static LoaderOptions options() {
    LoaderOptions options;
    options.dataset = {folder_->path("photos")};
    options.batch = 8;
    options.seed = 1;
    return options;
  }
  MeasureOptions how() const {
    MeasureOptions how;
    how.time = 5s;
    how.scratch = scratch_.path();
    return how;
  }
  bool is_clean() const { return std::filesystem::is_empty(scratch_.path()); }

  static std::unique_ptr<TestFolder> folder_;
  TestFolder scratch_;
};
std::unique_ptr<TestFolder> PhotosTest::folder_;

TEST_F(PhotosTest, EverythingIsMeasuredAndNothingIsLeftBehind) {
  const TestFolder disk;
  LoaderOptions asked = options();
  asked.disk = disk.path();
  MeasureOptions how = this->how();
  how.time = 20s;
  how.accelerator = 123;
  bool was_open = false;
  double last = 0;
  how.opened = [&] { was_open = true; };
  how.progress = [&](const std::string& stage, double share) {
    EXPECT_FALSE(stage.empty());
    EXPECT_GE(share, last);
    last = share;
  };
  const auto measured = measure(asked, how);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  EXPECT_TRUE(was_open);
  EXPECT_EQ(last, 1);
  EXPECT_EQ(measured->samples, 24u);
  EXPECT_EQ(stage_names(*measured),
            (std::vector<std::string>{"read", "decode", "crop+resize", "normalise", "collate"}));
  EXPECT_TRUE(measured->memory.known());
  EXPECT_TRUE(measured->disk.known());
  ASSERT_FALSE(measured->prep.empty());
  EXPECT_EQ(measured->prep.front().threads, 1u);
  EXPECT_EQ(measured->accelerator.value, 123);
  ASSERT_FALSE(measured->read_share.empty());
  for (const ReadAt& at : measured->read_share) EXPECT_EQ(at.share.value, 1);
  EXPECT_FALSE(measured->network.known());
  EXPECT_TRUE(lacks(measured->missing, "network"));
  EXPECT_TRUE(is_clean());
  EXPECT_TRUE(std::filesystem::is_empty(disk.path()));
}

TEST_F(PhotosTest, AStopEndsItAnywhereAndNothingIsLeftBehind) {
  for (const unsigned after : {0u, 40u, 400u}) {
    unsigned asked = 0;
    MeasureOptions how = this->how();
    how.stop = [&] { return ++asked > after; };
    const auto measured = measure(options(), how);
    if (measured.ok()) continue;  // it was done before
    EXPECT_EQ(measured.error().code, Code::kCancelled);
    EXPECT_TRUE(is_clean());
  }
  MeasureOptions how = this->how();
  how.stop = [] { return true; };
  EXPECT_EQ(measure(options(), how).error().code, Code::kCancelled);
  EXPECT_EQ(compare_forms(options(), how).error().code, Code::kCancelled);
  EXPECT_EQ(measured_rate(options(), {.stop = [] { return true; }}).error().code, Code::kCancelled);
  EXPECT_TRUE(is_clean());
}

TEST_F(PhotosTest, RecordsAreAskedForLessOftenThanFiles) {
  MeasureOptions how = this->how();
  how.time = 60s;  // it ends before, on most machines
  const auto forms = compare_forms(options(), how);
  ASSERT_TRUE(forms.ok()) << forms.error().message;
  EXPECT_EQ(forms->samples, 24u);
  EXPECT_EQ(forms->raw.requests, 48u);
  EXPECT_EQ(forms->record.requests, 24u);
  EXPECT_EQ(forms->raw.stored, forms->bytes);
  EXPECT_EQ(forms->record.stored, forms->bytes);
  ASSERT_TRUE(forms->crop_addressable.known());
  for (const FormRun* run : {&forms->raw, &forms->record, &forms->crop_addressable}) {
    EXPECT_GT(run->cpu_seconds, 0);
    EXPECT_GT(run->bytes, 0u);
    EXPECT_LE(run->bytes, 2 * run->stored);
  }
  EXPECT_TRUE(is_clean());
}

TEST_F(PhotosTest, TheSeedChoosesTheSpecimen) {
  const auto source = open_dataset(options());
  ASSERT_TRUE(source.ok()) << source.error().message;
  Allowance allowance(how());
  const auto first = Specimen::take(**source, options(), allowance);
  const auto again = Specimen::take(**source, options(), allowance);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->size(), 24u);
  const auto one = open_source({.datasets = {first->raw()}});
  const auto two = open_source({.datasets = {again->raw()}});
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ((*one)->fingerprint(), (*two)->fingerprint());
}

TEST_F(PhotosTest, OnSlowStorageOnlyTheCropOfARecordIsRead) {
  const TestFolder records;
  const auto converted = convert_dataset({.source = {.datasets = options().dataset}, .destination = records.path("r")});
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  LoaderOptions of_records = options();
  of_records.dataset = {records.path("r")};
  const auto raw = open_dataset(options());
  const auto rows = open_dataset(of_records);
  ASSERT_TRUE(raw.ok() && rows.ok());
  EXPECT_EQ(measure_read_share(**raw, options(), 1e6)->value, 1);
  EXPECT_LT(measure_read_share(**rows, of_records, 1e6)->value, 0.95);
  EXPECT_EQ(measure_read_share(**rows, of_records, 1e12)->value, 1);  // a second read would cost more
  of_records.on_error = OnError::kReplace;
  EXPECT_EQ(measure_read_share(**rows, of_records, 1e6)->value, 1);
}

// Of those that are not kept, only parts are read: that does not make the others more.
TEST_F(PhotosTest, WhatComesFromMemoryIsAShareOfWholeSamples) {
  const TestFolder records;
  const auto converted = convert_dataset({.source = {.datasets = options().dataset}, .destination = records.path("r")});
  ASSERT_TRUE(converted.ok()) << converted.error().message;
  LoaderOptions slow = options();
  slow.dataset.assign(16, records.path("r"));
  slow.storage = "10MB/s";
  slow.chain = {random_resized_crop(64, {0.05, 0.1})};  // a third of the rows
  slow.rewrite = Rewrite::kOff;
  const auto rate = measured_rate(slow, {.cached = 0.5, .most_epochs = 3, .time = 1s});
  ASSERT_TRUE(rate.ok()) << rate.error().message;
  EXPECT_NEAR(rate->cached, 0.5, 0.1);
}

TEST(AnalysisTest, EmulatedStorageComesOutAsItsRate) {
  const TestFolder top;
  const auto set = StorageSet::make(top.path(), 300, 20'000);
  ASSERT_TRUE(set.ok()) << set.error().message;
  LoaderOptions options = set->options();
  options.storage = "4MB/s,4ms";
  const auto source = open_dataset(options);
  ASSERT_TRUE(source.ok()) << source.error().message;
  MeasureOptions how;
  how.time = 20s;
  Allowance allowance(how);
  Measured measured;
  const Status done = measure_storage(**source, options, allowance, measured);
  ASSERT_TRUE(done.ok()) << done.error().message;
  ASSERT_GE(measured.storage.size(), 4u);
  EXPECT_EQ(measured.storage.front().depth, 1u);
  // One at a time: 5 ms for its bytes, and 4 ms until they come.
  EXPECT_LE(measured.storage.front().bytes_per_s.value, kAbove * 20'000 / 9e-3);
  double best = 0;
  for (const StorageAt& at : measured.storage) {
    EXPECT_LE(at.bytes_per_s.value, kAbove * kLimit) << at.depth;
    best = std::max(best, at.bytes_per_s.value);
  }
  EXPECT_GE(best, kLimit / 10);
  EXPECT_LE(measured.sequential.value, kAbove * kLimit);
  EXPECT_TRUE(lacks(measured.missing, "page cache"));
}

TEST(AnalysisTest, ATinyDatasetGivesReasonsInsteadOfNumbers) {
  const TestFolder top;
  const TestFolder scratch;
  const auto set = StorageSet::make(top.path(), 5, 1000);
  ASSERT_TRUE(set.ok()) << set.error().message;
  MeasureOptions how;
  how.scratch = scratch.path();
  LoaderOptions options = set->options();
  options.disk = scratch.path();
  const auto measured = measure(options, how);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  EXPECT_EQ(measured->samples, 5u);
  EXPECT_EQ(measured->sizes.median, 1000u);
  EXPECT_TRUE(measured->storage.empty());
  EXPECT_TRUE(measured->prep.empty());
  EXPECT_FALSE(measured->memory.known() || measured->disk.known() || measured->page_cache.known());
  for (const char* what : {"storage", "storage, sequential", "page cache", "prep", "memory tier", "disk tier"}) {
    EXPECT_TRUE(lacks(measured->missing, what)) << what;
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(AnalysisTest, NoMoreIsReadThanAllowed) {
  const TestFolder top;
  const TestFolder scratch;
  const auto set = StorageSet::make(top.path(), 400, 20'000);
  ASSERT_TRUE(set.ok()) << set.error().message;
  const auto source = open_dataset(set->options());
  ASSERT_TRUE(source.ok()) << source.error().message;
  MeasureOptions how;
  how.most_bytes = 40'000'000;
  how.scratch = scratch.path();
  Allowance allowance(how);
  Measured measured;
  ASSERT_TRUE(measure_storage(**source, set->options(), allowance, measured).ok());
  const auto specimen = Specimen::take(**source, set->options(), allowance);
  ASSERT_TRUE(specimen.ok()) << specimen.error().message;
  EXPECT_LE(allowance.spent(), how.most_bytes);
  EXPECT_GT(allowance.spent(), 0u);
}

TEST(AnalysisTest, TheRealLoadersRateStaysBelowWhatStorageAllows) {
  const TestFolder top;
  const auto set = StorageSet::make(top.path(), 1500, 4000);
  ASSERT_TRUE(set.ok()) << set.error().message;
  LoaderOptions options = set->options();
  options.storage = "4MB/s";
  const auto half = measured_rate(options, {.cached = 0.5, .time = 1s});
  ASSERT_TRUE(half.ok()) << half.error().message;
  EXPECT_EQ(half->samples, 1500u);
  EXPECT_NEAR(half->cached, 0.5, 0.1);  // what is still on its way when the next epoch needs it counts as well
  EXPECT_LE(half->samples_per_s.value, kAbove * kLimit / 4000 / (1 - half->cached));
  const auto some = measured_rate(options, {.accelerator = 500, .most_samples = 100, .cached = 1, .time = 1s});
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(some->samples, 100u);
  EXPECT_EQ(some->cached, 1);
  EXPECT_LE(some->samples_per_s.value, kAbove * 500);
}

TEST(AnalysisTest, TheMemoryOfAMachineIsThatOfAllItsLearners) {
  const TestFolder top;
  const auto set = StorageSet::make(top.path(), 300, 20'000);
  ASSERT_TRUE(set.ok()) << set.error().message;
  LoaderOptions options = set->options();
  options.world = options.local_world = 2;
  options.memory = 64_MiB;
  const auto apart = PlannedJob::open(options);
  ASSERT_TRUE(apart.ok()) << apart.error().message;
  EXPECT_EQ(apart->setup(1_GiB).caches, 2u);
  // What is available, between which it is searched for, is another figure each time.
  const auto near = [](Bytes budget, Bytes expected) {
    EXPECT_NEAR(static_cast<double>(budget), static_cast<double>(expected), 3e6);
  };
  near(apart->machine_budget_for(1_MiB), 2 * apart->budget_for(1_MiB));
  options.host = "job";
  const auto together = PlannedJob::open(options);
  ASSERT_TRUE(together.ok()) << together.error().message;
  EXPECT_EQ(together->setup(1_GiB).caches, 1u);
  near(together->machine_budget_for(1_MiB), together->budget_for(1_MiB));
}

// Old enough, marked, and nobody holds it: only then it goes.
TEST(AnalysisTest, WhatAKilledAnalysisLeftIsRemovedByTheNextOne) {
  const TestFolder top;
  const std::string mark = std::string("/") + TemporaryFolder::kMark;
  const auto age = [&](const std::string& name) {
    std::filesystem::last_write_time(top.path(name), std::filesystem::file_time_type::clock::now() - 1h);
  };
  top.write("foreload-analyze-killed" + mark, "");
  top.write("foreload-analyze-killed/raw/000000.jpg", "x");
  top.write("foreload-analyze-young" + mark, "");
  top.write("foreload-analyze-other/file", "");
  top.write("foreload-analyze-theirs" + mark, "not ours");
  top.write("mine" + mark, "");
  for (const char* name : {"foreload-analyze-killed", "foreload-analyze-theirs", "mine"}) age(name + mark);
  const auto first = TemporaryFolder::make(top.path());
  ASSERT_TRUE(first.ok()) << first.error().message;
  std::filesystem::last_write_time(first->path() + mark, std::filesystem::file_time_type::clock::now() - 1h);
  const auto second = TemporaryFolder::make(top.path());
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_FALSE(std::filesystem::exists(top.path("foreload-analyze-killed")));
  for (const char* kept : {"foreload-analyze-young", "foreload-analyze-other", "foreload-analyze-theirs", "mine"})
    EXPECT_TRUE(std::filesystem::exists(top.path(kept))) << kept;
  EXPECT_TRUE(std::filesystem::exists(first->path())) << "it is in use";
}

TEST(AnalysisTest, SizesAreThoseOfTheIndex) {
  const TestFolder top;
  for (int i = 0; i < 101; ++i) top.write("set/" + std::to_string(100 + i) + ".bin", std::string(i * 10, 'a'));
  const auto source = open_source({.datasets = {top.path("set")}});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const SizeShape sizes = measure_sizes(**source, 1);
  EXPECT_EQ(sizes.smallest, 0u);
  EXPECT_EQ(sizes.p10, 100u);
  EXPECT_EQ(sizes.median, 500u);
  EXPECT_EQ(sizes.p90, 900u);
  EXPECT_EQ(sizes.p99, 990u);
  EXPECT_EQ(sizes.largest, 1000u);
}

TEST(AnalysisTest, AFewSamplesAreAsLongAsAllOnAverage) {
  const TestFolder top;
  for (int i = 0; i < 400; ++i) {
    const int length = i % 40 == 0 ? 8000 : 100 + i;  // a long tail
    top.write("set/" + std::to_string(1000 + i) + ".bin", std::string(length, 'a'));
  }
  top.write("set/999.bin", "");
  const auto source = open_source({.datasets = {top.path("set")}});
  ASSERT_TRUE(source.ok()) << source.error().message;
  const auto mean = static_cast<double>((*source)->total_bytes()) / 400;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const std::vector<SampleId> ids = representative_samples(**source, seed, 40);
    ASSERT_EQ(ids.size(), 40u);
    double sum = 0;
    for (const SampleId id : ids) sum += static_cast<double>((*source)->length(id));
    EXPECT_NEAR(sum / 40, mean, 0.02 * mean);
  }
  EXPECT_EQ(representative_samples(**source, 1, 1000).size(), 400u);
}

TEST(AnalysisTest, ThreadsAreDoubledUpToTheCores) {
  EXPECT_EQ(thread_counts(1, {}), (std::vector<unsigned>{1}));
  EXPECT_EQ(thread_counts(12, {}), (std::vector<unsigned>{1, 2, 4, 8, 12}));
  EXPECT_EQ(thread_counts(4, 3), (std::vector<unsigned>{1, 2, 3, 4}));
  EXPECT_EQ(thread_counts(2, 0), (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(thread_counts(2, 8), (std::vector<unsigned>{1, 2})) << "eight threads are not eight cores";
}

TEST(PrepStagesTest, OnlyImagesAreDecodedAndNotEveryChainDoesWithoutNormalising) {
  const auto image = PrepStages::make({.transforms = {random_resized_crop(224), normalize(kImageNet)}});
  ASSERT_TRUE(image.ok());
  EXPECT_TRUE(image->is_image() && image->separates_pixels());
  const auto array = PrepStages::make({.transforms = {foreload::array(DType::kU8, {10}, true)}});
  ASSERT_TRUE(array.ok());
  EXPECT_FALSE(array->is_image() || array->separates_pixels());
  const auto fractions = PrepStages::make(
      {.transforms = {random_resized_crop(224), normalize(kImageNet), random_erasing(1, {0.1, 0.2}, {1, 1}, 0.5)}});
  ASSERT_TRUE(fractions.ok());
  EXPECT_TRUE(fractions->is_image());
  EXPECT_FALSE(fractions->separates_pixels());
}

}  // namespace
}  // namespace foreload
