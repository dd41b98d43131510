#include "base/read_engine.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/read_engine_testing.h"
#include "base/thread.h"

namespace foreload {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_P(ReadEngineTest, ManyFilesArriveWhole) {
  KeyedRandom random(1, 0, 0, 0);
  std::vector<Target> targets(200);
  std::vector<ReadJob> jobs;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i].path = "class_" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg";
    folder_.write(targets[i].path, content_of(i, i % 20 == 0 ? i * 4096 : random.below(150'000)));
    jobs.push_back(whole(targets[i]));
  }
  for (const unsigned depth : {1u, 5u, 64u}) {
    auto engine = open({.depth = depth});
    std::vector<ReadResult> results;
    ASSERT_TRUE(run(**engine, jobs, results));
    for (const ReadResult& result : results) {
      const Target& target = targets[result.tag];
      ASSERT_EQ(result.outcome, ReadOutcome::kDone) << target.path << " errno " << result.error_number;
      ASSERT_TRUE(target.buffer == content_of(result.tag, target.buffer.size())) << target.path;
    }
    for (Target& target : targets) target.buffer.assign(target.buffer.size(), '?');
  }
}

TEST_P(ReadEngineTest, RangesOfOneOpenFileArrive) {
  const std::string content = content_of(5, 700'001);
  folder_.write("shard.tar", content);
  const FileStamp stamp = stamp_of_path(folder_.path("shard.tar"));
  const Descriptor file = std::move(*open_below(root_.get(), "shard.tar", std::get<1>(GetParam()) ? O_DIRECT : 0));
  KeyedRandom random(2, 0, 0, 0);
  std::vector<Target> targets(150);
  std::vector<ReadJob> jobs;
  for (Target& target : targets) {
    const Bytes offset = random.below(content.size());
    target.path = "shard.tar";
    jobs.push_back(job(target, offset, 1 + random.below(content.size() - offset)));
    jobs.back().expect = stamp;
    if (jobs.size() % 2 == 0) jobs.back().fd = file.get();
  }
  auto engine = open({.depth = 20});
  std::vector<ReadResult> results;
  ASSERT_TRUE(run(**engine, jobs, results));
  for (const ReadResult& result : results) {
    const ReadJob& done = jobs[result.tag];
    ASSERT_EQ(result.outcome, ReadOutcome::kDone) << result.error_number;
    ASSERT_TRUE(targets[result.tag].buffer == content.substr(done.offset, done.into.size())) << done.offset;
  }
  EXPECT_GE(fcntl(file.get(), F_GETFD), 0) << "a given descriptor stays open";
}

TEST_P(ReadEngineTest, WhatArrivedTogetherIsHandedOverInPortions) {
  if (std::get<0>(GetParam()) != "uring") GTEST_SKIP() << "the pool's threads do not wait for the caller";
  constexpr std::size_t kLength = 100'000;
  folder_.write("shard.tar", content_of(5, kLength));
  const FileStamp stamp = stamp_of_path(folder_.path("shard.tar"));
  const Descriptor file = std::move(*open_below(root_.get(), "shard.tar", std::get<1>(GetParam()) ? O_DIRECT : 0));
  std::vector<Target> targets(16);
  std::vector<ReadJob> jobs;
  for (Target& target : targets) {
    jobs.push_back(job(target, 0, kLength));
    jobs.back().tag = jobs.size() - 1;
    jobs.back().expect = stamp;
    jobs.back().fd = file.get();
  }
  auto engine = open({.depth = 16});
  (*engine)->submit(jobs);
  std::vector<ReadResult> results;
  const Time deadline = now() + seconds(30);
  while (results.size() < jobs.size() && now() < deadline) {
    const std::size_t before = results.size();
    (*engine)->wait(results, deadline);
    EXPECT_LE(results.size() - before, 1u) << "the caller can start a read before the next 100,000 bytes are copied";
  }
  EXPECT_EQ(results.size(), jobs.size());
}

TEST_P(ReadEngineTest, AMissingFileFailsWithItsErrno) {
  auto engine = open({});
  Target target{.path = "nowhere/file.jpg"};
  const ReadResult result = run_one(**engine, job(target, 0, 10));
  EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
  EXPECT_EQ(result.error_number, ENOENT);
}

TEST_P(ReadEngineTest, WhatIsNoRegularFileBelowTheRootIsRefused) {
  folder_.write("folder/file", "x");
  ASSERT_EQ(mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("../../etc/passwd", folder_.path("escapes"));
  std::filesystem::create_symlink("/etc/passwd", folder_.path("absolute"));
  std::filesystem::create_symlink("loop", folder_.path("loop"));
  const Descriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder_.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  auto engine = open({});
  for (const char* path : {"folder", "pipe", "escapes", "absolute", "loop", "socket", "/etc/passwd", "../x", "."}) {
    Target target{.path = path};
    EXPECT_EQ(run_one(**engine, job(target, 0, 10)).outcome, ReadOutcome::kRefused) << path;
  }
}

TEST_P(ReadEngineTest, LinksThatStayInsideAreFollowed) {
  folder_.write("folder/file", "content");
  std::filesystem::create_symlink("folder/../folder", folder_.path("link"));
  auto engine = open({});
  Target target{.path = "link/file"};
  EXPECT_EQ(run_one(**engine, whole(target)).outcome, ReadOutcome::kDone);
  EXPECT_EQ(target.buffer, "content");
}

TEST_P(ReadEngineTest, AFileOfAnotherSizeOrTimeIsChanged) {
  auto engine = open({});
  Target target{.path = "file"};
  folder_.write("file", content_of(1, 5000));
  const ReadJob good = whole(target);
  for (const FileStamp wrong : {FileStamp{5001, good.expect.mtime_ns}, FileStamp{5000, good.expect.mtime_ns + 1}}) {
    ReadJob stale = good;
    stale.expect = wrong;
    const ReadResult result = run_one(**engine, stale);
    EXPECT_EQ(result.outcome, ReadOutcome::kChanged);
    EXPECT_EQ(result.found, good.expect);
  }
  EXPECT_EQ(target.buffer, std::string(5000, '?'));
}

TEST_P(ReadEngineTest, ARangeBeyondTheEndIsChanged) {
  folder_.write("file", content_of(1, 5000));
  auto engine = open({});
  Target target{.path = "file"};
  for (const auto& [offset, length] : {std::pair(4999ull, 2), std::pair(5001ull, 0), std::pair(~0ull - 1, 10)}) {
    ReadJob beyond = job(target, offset, static_cast<std::size_t>(length));
    beyond.expect = stamp_of_path(folder_.path("file"));
    EXPECT_EQ(run_one(**engine, beyond).outcome, ReadOutcome::kChanged) << offset;
  }
}

TEST_P(ReadEngineTest, ALengthOfZeroStillChecksTheFile) {
  folder_.write("file", "12345");
  auto engine = open({});
  Target target{.path = "file"};
  ReadJob nothing = job(target, 5, 0);
  EXPECT_EQ(run_one(**engine, nothing).outcome, ReadOutcome::kChanged);
  nothing.expect = stamp_of_path(folder_.path("file"));
  EXPECT_EQ(run_one(**engine, nothing).outcome, ReadOutcome::kDone);
  Target missing{.path = "missing"};
  EXPECT_EQ(run_one(**engine, job(missing, 0, 0)).outcome, ReadOutcome::kFailed);
}

TEST_P(ReadEngineTest, ABadDescriptorFails) {
  auto engine = open({});
  Target target;
  ReadJob bad = job(target, 0, 10);
  bad.fd = 1'000'000;
  const ReadResult result = run_one(**engine, bad);
  EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
  EXPECT_EQ(result.error_number, EBADF);
}

TEST_P(ReadEngineTest, WaitEndsAtItsDeadline) {
  auto engine = open({});
  std::vector<ReadResult> results;
  const Time start = now();
  (*engine)->wait(results, start + milliseconds(30));
  EXPECT_GE(now(), start + milliseconds(30));
  EXPECT_LT(now(), start + seconds(10));
  (*engine)->wait(results, start);
  EXPECT_TRUE(results.empty());
}

TEST_P(ReadEngineTest, PollingWithAPassedDeadlineSeesResults) {
  folder_.write("file", content_of(1, 50'000));
  auto engine = open({});
  Target target{.path = "file"};
  const ReadJob all = whole(target);
  (*engine)->submit({&all, 1});
  std::vector<ReadResult> results;
  const Time give_up = now() + seconds(30);
  while (results.empty() && now() < give_up) (*engine)->wait(results, Time(0));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, ReadOutcome::kDone);
}

TEST_P(ReadEngineTest, AWakeBeforeTheWaitIsNotLostAndCountsOnce) {
  auto engine = open({});
  std::vector<ReadResult> results;
  (*engine)->wake();
  (*engine)->wake();
  (*engine)->wait(results, kNever);
  const Time start = now();
  (*engine)->wait(results, start + milliseconds(20));
  EXPECT_GE(now(), start + milliseconds(20));
}

TEST_P(ReadEngineTest, WakesFromAnotherThreadAlwaysArrive) {
  auto engine = open({});
  std::atomic<int> sent{0};
  const auto waker = Thread::start("waker", [&] {
    for (int i = 0; i < 500; ++i) {
      ++sent;
      (*engine)->wake();
    }
  });
  std::vector<ReadResult> results;
  while (sent.load() < 500) (*engine)->wait(results, kNever);
}

TEST_P(ReadEngineTest, AWakeDoesNotDisturbJobs) {
  folder_.write("file", content_of(1, 50'000));
  auto engine = open({.depth = 4});
  std::atomic<bool> stop{false};
  const auto waker = Thread::start("waker", [&] {
    while (!stop.load()) (*engine)->wake();
  });
  std::vector<Target> targets(300, Target{.path = "file"});
  std::vector<ReadJob> jobs;
  for (Target& target : targets) jobs.push_back(whole(target));
  std::vector<ReadResult> results;
  EXPECT_TRUE(run(**engine, jobs, results));
  stop = true;
  for (const Target& target : targets) EXPECT_TRUE(target.buffer == content_of(1, 50'000));
}

TEST_P(ReadEngineTest, DestructionWaitsForJobsInFlightAndLeaksNothing) {
  std::vector<Target> targets(32);
  std::vector<ReadJob> jobs;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i].path = std::to_string(i);
    folder_.write(targets[i].path, content_of(i, 300'000));
    jobs.push_back(whole(targets[i]));
  }
  const std::size_t descriptors = open_descriptors();
  for (int round = 0; round < 20; ++round) {
    std::vector<ReadResult> results;
    auto engine = open({.depth = 32});
    (*engine)->submit(jobs);
    if (round % 2 == 0) (*engine)->wait(results, kNever);
    engine->reset();
    for (Target& target : targets) target.buffer.assign(target.buffer.size(), '!');
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  for (const Target& target : targets) EXPECT_EQ(target.buffer, std::string(300'000, '!')) << "written after the end";
}

TEST_P(ReadEngineTest, AForkedChildLetsGoWithoutHangingOrDisturbingTheParent) {
  folder_.write("file", content_of(1, 50'000));
  auto engine = open({});
  Target target{.path = "file"};
  const ReadJob all = whole(target);
  EXPECT_EQ(run_one(**engine, all).outcome, ReadOutcome::kDone);
  (*engine)->submit({&all, 1});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    engine->reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::vector<ReadResult> results;
  while (results.empty()) (*engine)->wait(results, kNever);
  EXPECT_EQ(results[0].outcome, ReadOutcome::kDone);
  EXPECT_EQ(run_one(**engine, all).outcome, ReadOutcome::kDone);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadEngineTest,
                         testing::Combine(testing::Values("uring", "threads"), testing::Bool()), engine_test_name);

// Without files: the child that dies would leave them behind.
TEST(ReadEngineDeathTest, TheDepthIsALimit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ReadJob job;
  job.path = "file";
  const std::vector<ReadJob> jobs(5, job);
  for (const char* kind : {"uring", "threads"}) {
    const auto engine = open_read_engine({.kind = kind, .depth = 4});
    if (!engine.ok()) continue;
    EXPECT_EQ((*engine)->max_depth(), 4u);
    EXPECT_DEATH((*engine)->submit(jobs), "no more jobs than the depth");
  }
}

TEST(OpenReadEngineTest, TheKindIsObeyedOrRefused) {
  EXPECT_STREQ((*open_read_engine({.kind = "threads"}))->name(), "threads");
  EXPECT_TRUE(open_read_engine({}).ok());
  const auto unknown = open_read_engine({.kind = "carrier pigeon"});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_NE(unknown.error().message.find("uring or threads"), std::string::npos);
}

}  // namespace
}  // namespace foreload
