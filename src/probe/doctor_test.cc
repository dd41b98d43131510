// Made-up machines and datasets: what is judged, and how badly. Real limits are in tests/doctor_test.py.
#include "probe/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>

#include "base/test_folder.h"
#include "prep/jpeg_encode.h"
#include "probe/doctor_dataset.h"
#include "probe/doctor_machine.h"
#include "probe/doctor_place.h"
#include "probe/doctor_python.h"

namespace foreload {
namespace {

MachineView good_machine() {
  MachineView view;
  view.memlock = 8_MiB;
  view.open_files = 1024;
  view.open_files_hard = 4096;
  view.shm = 8_GiB;
  view.online_cores = view.affine_cores = 16;
  view.quota_cores = std::numeric_limits<double>::infinity();
  view.memory = 64_GiB;
  view.available = 60_GiB;
  view.clock_read = std::chrono::nanoseconds(30);
  view.wall_clock = 1'800'000'000;
  return view;
}

bool says(const Finding& finding, const std::string& text) {
  return (finding.found + "\n" + finding.cost + "\n" + finding.mend).find(text) != std::string::npos;
}

const Finding* named(const Findings& findings, const std::string& what) {
  const auto found = std::ranges::find(findings, what, &Finding::what);
  return found != findings.end() ? &*found : nullptr;
}

TEST(DoctorTest, AGoodMachineIsInOrder) {
  for (const Finding& finding : judge_machine(good_machine(), {.bytes = 1_GiB, .largest = 1_MiB})) {
    EXPECT_EQ(finding.severity, Severity::kOk) << finding.what << ": " << finding.found;
  }
}

TEST(DoctorTest, IoUringSaysWhoForbidsIt) {
  MachineView view = good_machine();
  view.uring_error = EPERM;
  EXPECT_EQ(judge_io_uring(view).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_io_uring(view), "seccomp"));
  view.uring_disabled = 2;
  EXPECT_TRUE(says(judge_io_uring(view), "sysctl kernel.io_uring_disabled=0"));
  view.uring_error = ENOMEM;
  EXPECT_TRUE(says(judge_io_uring(view), "ulimit -l"));
  EXPECT_EQ(judge_memlock(view).severity, Severity::kCosts);
  view.uring_error = ENOSYS;
  EXPECT_TRUE(says(judge_io_uring(view), "5.11"));
}

TEST(DoctorTest, OpenFilesCountTheShardsThatAreKeptOpen) {
  MachineView view = good_machine();
  view.open_files = 30;
  EXPECT_EQ(judge_open_files(view, {}).severity, Severity::kCosts);
  EXPECT_FALSE(says(judge_open_files(view, {}), "a run ends"));
  EXPECT_EQ(judge_open_files(view, {.kept_open = 39}).severity, Severity::kBreaks);
  EXPECT_EQ(judge_open_files(view, {.kept_open = 20}).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_open_files(view, {.kept_open = 20}), "a run ends"));
  EXPECT_TRUE(says(judge_open_files(view, {}), "ulimit -n 4096"));
  view.open_files = 16;
  EXPECT_EQ(judge_open_files(view, {}).severity, Severity::kCosts);
  view.open_files = 7;
  view.open_files_hard = 7;
  EXPECT_EQ(judge_open_files(view, {}).severity, Severity::kBreaks);
  EXPECT_TRUE(says(judge_open_files(view, {}), "hard limit of 7"));
  view.open_files = 1024;
  EXPECT_EQ(judge_open_files(view, {.kept_open = 1'000'000}).severity, Severity::kOk);  // no more than 256 are
  view.open_files = kNoLimit;
  EXPECT_EQ(judge_open_files(view, {}).severity, Severity::kOk);
}

TEST(DoctorTest, CoresAreLimitedByAffinityOrByAQuota) {
  MachineView view = good_machine();
  view.affine_cores = 2;
  EXPECT_EQ(judge_cores(view).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_cores(view), "2 of 16 cores"));
  EXPECT_TRUE(says(judge_cores(view), "affinity"));
  view.affine_cores = 12;
  EXPECT_EQ(judge_cores(view).severity, Severity::kNote);
  view.quota_cores = 1.5;
  EXPECT_TRUE(says(judge_cores(view), "1.5 of 16 cores"));
  EXPECT_TRUE(says(judge_cores(view), "control group"));
  EXPECT_TRUE(says(judge_cores(view), "--cpus"));
}

TEST(DoctorTest, MemoryIsHeldAgainstTheDataset) {
  MachineView view = good_machine();
  view.available = view.group_headroom = 4_GiB;
  EXPECT_EQ(judge_memory(view, {}).severity, Severity::kOk);
  EXPECT_EQ(judge_memory(view, {.bytes = 8_GiB, .largest = 1_MiB}).severity, Severity::kNote);
  EXPECT_TRUE(says(judge_memory(view, {.bytes = 8_GiB, .largest = 1_MiB}), "25 %"));
  EXPECT_TRUE(says(judge_memory(view, {.bytes = 8_GiB, .largest = 1_MiB}), "control group"));
  EXPECT_EQ(judge_memory(view, {.bytes = 8_GiB, .largest = 3_GiB}).severity, Severity::kBreaks);
  view.available = 100_MiB;
  EXPECT_EQ(judge_memory(view, {}).severity, Severity::kCosts);
}

TEST(DoctorTest, OtherLimitsAreNamedWithTheirNumber) {
  MachineView view = good_machine();
  view.file_size = 10_MiB;
  EXPECT_EQ(judge_file_size(view).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_file_size(view), "10.0 MiB") || says(judge_file_size(view), "10 MiB"));
  view.shm = 64_MiB;
  EXPECT_EQ(judge_shared_memory(view).severity, Severity::kNote);
  view.in_container = true;
  EXPECT_TRUE(says(judge_shared_memory(view), "--shm-size"));
  view.shm.reset();
  EXPECT_TRUE(says(judge_shared_memory(view), "there is none"));
  view.memlock = 0;
  EXPECT_EQ(judge_memlock(view).severity, Severity::kNote);
  view.clock_read = std::chrono::microseconds(2);
  view.clock_source = "hpet";
  EXPECT_EQ(judge_clock(view, {}).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_clock(view, {}), "hpet"));
  view.wall_clock = 100;
  EXPECT_EQ(judge_clock(view, {}).severity, Severity::kNote);
  EXPECT_EQ(judge_clock(view, {.is_remote = true}).severity, Severity::kBreaks);
}

TEST(DoctorTest, PlacesAreJudgedByTheirFileSystem) {
  const PlaceView local{
      .path = "/d", .file_system = "ext4", .kind = PlaceKind::kLocal, .free = 1_GiB, .may_write = true};
  PlaceView network = local;
  network.file_system = file_system_of(0x6969).name;
  network.kind = file_system_of(0x6969).kind;
  const DatasetShape files{.samples = 1000, .bytes = 4_GiB};
  DatasetShape shards = files;
  shards.in_shards = true;
  EXPECT_EQ(judge_dataset_place(local, files).severity, Severity::kOk);
  EXPECT_EQ(judge_dataset_place(network, files).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_dataset_place(network, files), "nfs"));
  EXPECT_TRUE(says(judge_dataset_place(network, files), "foreload convert"));
  EXPECT_EQ(judge_dataset_place(network, shards).severity, Severity::kNote);
  EXPECT_EQ(judge_disk_cache(network, files).severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_disk_cache(local, files), "22 %"));  // nine tenths of what is free
  PlaceView closed = local;
  closed.may_write = false;
  EXPECT_EQ(judge_disk_cache(closed, files).severity, Severity::kCosts);
  closed.is_folder = false;
  EXPECT_EQ(judge_disk_cache(closed, files).severity, Severity::kBreaks);
  EXPECT_EQ(file_system_of(12345).kind, PlaceKind::kUnknown);
}

TEST(DoctorTest, AnIndexThatCanNotBeKeptCosts) {
  EXPECT_EQ(judge_index_place(true, false, "/home/a").severity, Severity::kOk);
  EXPECT_EQ(judge_index_place(false, true, "/home/a").severity, Severity::kOk);
  EXPECT_EQ(judge_index_place(false, false, "/home/a").severity, Severity::kCosts);
  EXPECT_TRUE(says(judge_index_place(false, false, ""), "HOME"));
}

TEST(DoctorTest, RealPlacesAreLookedAtWithoutTouchingThem) {
  const TestFolder folder;
  const auto place = look_at_place(folder.path());
  ASSERT_TRUE(place.ok());
  EXPECT_TRUE(place->may_write);
  EXPECT_GT(place->size, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(look_at_place(folder.path("missing")).error().code, Code::kNotFound);
  EXPECT_FALSE(look_at_place(folder.write("file", "x"))->is_folder);
}

std::string picture(unsigned width, unsigned shade) {
  const std::vector<std::uint8_t> line(width, static_cast<std::uint8_t>(shade));
  const std::vector<const std::uint8_t*> rows(width, line.data());
  JpegStyle style;
  style.colour = JpegColour::kGray;
  const std::vector<std::byte> bytes = encode_jpeg(rows, width, style);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::unique_ptr<Source> open(const TestFolder& folder) {
  SourceOptions options{.datasets = {folder.path()}};
  options.keep_index = false;
  auto source = open_source(options);
  EXPECT_TRUE(source.ok());
  return std::move(*source);
}

TEST(DoctorTest, OdditiesOfADatasetAreNamed) {
  const TestFolder folder;
  for (unsigned i = 0; i < 20; ++i) folder.write("a/" + std::to_string(i) + ".jpg", picture(40 + i, i));
  folder.write("b/lonely.jpg", picture(33, 200));
  folder.write("a/copy.jpg", picture(45, 5));
  folder.write("a/empty.jpg", "");
  folder.write("a/cut.jpg", picture(100, 77).substr(0, 200));
  folder.write("a/huge.jpg", picture(50, 9) + std::string(9 << 20, 'x'));
  const auto source = open(folder);
  const DatasetView view = look_at_index(*source);
  const Findings index = judge_index(view);
  EXPECT_EQ(named(index, "empty")->severity, Severity::kBreaks);
  EXPECT_TRUE(says(*named(index, "empty"), "empty.jpg"));
  EXPECT_TRUE(says(*named(index, "huge"), "huge.jpg"));
  EXPECT_TRUE(says(*named(index, "classes"), "1 (b) to 24 samples (a)"));
  const auto checks = check_samples(*source, {});
  ASSERT_TRUE(checks.ok());
  const Findings samples = judge_samples(*checks, source->size());
  EXPECT_EQ(checks->broken.count + checks->damaged.count, 1u);
  EXPECT_TRUE(says(*named(samples, checks->broken.count > 0 ? "broken" : "damaged"), "cut.jpg"));
  EXPECT_EQ(checks->copies.count, 1u);
  EXPECT_TRUE(says(*named(samples, "copies"), "copy.jpg"));
  EXPECT_EQ(checks->contradictions, 0u);
}

TEST(DoctorTest, ACleanDatasetIsInOrder) {
  const TestFolder folder;
  for (unsigned i = 0; i < 20; ++i)
    folder.write(std::to_string(i % 2) + "/" + std::to_string(i) + ".jpg", picture(40 + i, i));
  const auto source = open(folder);
  for (const Finding& finding : judge_index(look_at_index(*source))) EXPECT_EQ(finding.severity, Severity::kOk);
  const auto checks = check_samples(*source, {});
  for (const Finding& finding : judge_samples(*checks, 20)) EXPECT_EQ(finding.severity, Severity::kOk) << finding.found;
  EXPECT_EQ(checks->looked, 20u);
}

TEST(DoctorTest, FewSamplesOfManyAreLookedAtAndTheExtremesAlways) {
  const TestFolder folder;
  for (unsigned i = 0; i < 300; ++i) folder.write("a/" + std::to_string(i) + ".jpg", picture(40, i));
  folder.write("a/cut.jpg", picture(40, 1).substr(0, 100));  // the smallest
  const auto source = open(folder);
  const auto checks = check_samples(*source, {.most = 40});
  ASSERT_TRUE(checks.ok());
  EXPECT_EQ(checks->looked, 40u);
  EXPECT_EQ(checks->broken.count, 1u);
  EXPECT_TRUE(says(judge_samples(*checks, source->size())[0], "1 of 40 samples looked at"));
  EXPECT_EQ(check_samples(*source, {.stop = [] { return true; }}).error().code, Code::kCancelled);
}

TEST(DoctorTest, PythonIsJudgedByWhichOneStandsFirst) {
  const PythonView with{.path = "/usr/bin/python3",
                        .executable = "/usr/bin/python3",
                        .version = "3.11.2",
                        .torch = "1.13.1",
                        .foreload = "0.1.0"};
  const PythonView without{.path = "/opt/python3",
                           .executable = "/opt/python3.12",
                           .version = "3.12.1",
                           .foreload_problem = "ModuleNotFoundError: No module named 'foreload'"};
  EXPECT_EQ(judge_python({with, without}, "0.1.0")[0].severity, Severity::kOk);
  const Findings second = judge_python({without, with}, "0.1.0");
  EXPECT_EQ(second[0].severity, Severity::kCosts);
  EXPECT_TRUE(says(second[0], "run /usr/bin/python3"));
  EXPECT_EQ(judge_python({without}, "0.1.0")[0].severity, Severity::kNote);
  EXPECT_EQ(judge_python({}, "0.1.0")[0].severity, Severity::kNote);
  EXPECT_NE(named(judge_python({with}, "0.2.0"), "versions"), nullptr);
  EXPECT_NE(named(judge_python({without}, "0.1.0"), "torch"), nullptr);
}

TEST(DoctorTest, InterpretersAreFoundAsAShellWould) {
  const TestFolder folder;
  const std::string fake = folder.write("python3", "#!/bin/sh\nexit 3\n");
  EXPECT_NE(find_interpreters(folder.path() + ":/usr/bin")[0], fake);  // it can not be started yet
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  EXPECT_EQ(find_interpreters("/nowhere::" + folder.path())[0], fake);
  const PythonView view = look_at_python(fake, std::chrono::seconds(10));
  EXPECT_TRUE(view.executable.empty());
  EXPECT_EQ(judge_python({view}, "0.1.0")[0].severity, Severity::kCosts);
}

TEST(DoctorTest, AnInterpreterThatHangsIsEnded) {
  const TestFolder folder;
  const std::string fake = folder.write("python3", "#!/bin/sh\nexec sleep 1000\n");
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  EXPECT_TRUE(look_at_python(fake, std::chrono::milliseconds(200)).executable.empty());
}

TEST(DoctorTest, TheWorstComesFirst) {
  Findings findings{
      {Severity::kOk, "a", ""}, {Severity::kBreaks, "b", ""}, {Severity::kNote, "c", ""}, {Severity::kBreaks, "d", ""}};
  EXPECT_TRUE(breaks(findings));
  sort_by_severity(findings);
  EXPECT_EQ(findings[0].what + findings[1].what + findings[2].what + findings[3].what, "bdca");
}

}  // namespace
}  // namespace foreload
