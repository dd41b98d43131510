// Every engine, with one fault at the k-th read, for every k until the whole run passes without meeting it.
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "base/read_engine_testing.h"

namespace foreload {
namespace {

constexpr std::size_t kFileSize = 60'000;

// One read per file, and a fault at each of them. FORELOAD_SOAK=1: the full amount.
int files_to_read() {
  const char* const soak = std::getenv("FORELOAD_SOAK");
  return soak != nullptr && std::string_view(soak) == "1" ? 500 : 48;
}

// Lets `change` decide about the k-th read (from 1).
class FaultAt : public ReadFault {
 public:
  FaultAt(int k, std::function<int(int)> change) : k_(k), change_(std::move(change)) {}
  int apply(int result) override { return ++reads_ == k_ ? change_(result) : result; }
  int reads() const { return reads_; }

 private:
  const int k_;
  const std::function<int(int)> change_;
  std::atomic<int> reads_{0};
};

class ReadFaultTest : public ReadEngineTest {
 protected:
  void SetUp() override {
    ReadEngineTest::SetUp();
    for (int i = 0; i < files_to_read(); ++i) {
      targets_.push_back({.path = std::to_string(i)});
      contents_.push_back(content_of(static_cast<std::uint64_t>(i), kFileSize));
      folder_.write(targets_.back().path, contents_.back());
    }
  }

  // Reads all files; returns the results that are not kDone.
  std::vector<ReadResult> not_done(ReadFault& fault) {
    std::vector<ReadJob> jobs;
    for (Target& target : targets_) jobs.push_back(whole(target));
    auto engine = open({.depth = 7, .fault = &fault});
    std::vector<ReadResult> results;
    EXPECT_TRUE(run(**engine, jobs, results)) << "some jobs never finished";
    std::vector<ReadResult> others;
    for (const ReadResult& result : results) {
      const bool right = targets_[result.tag].buffer == contents_[result.tag];
      if (result.outcome != ReadOutcome::kDone) others.push_back(result);
      EXPECT_TRUE(right || result.outcome != ReadOutcome::kDone) << "wrong bytes were called done";
    }
    return others;
  }

  // Calls `judge` with what did not finish well, for a fault at every k.
  void at_every_read(const std::function<int(int)>& change,
                     const std::function<void(const std::vector<ReadResult>&)>& judge) {
    const std::size_t descriptors = open_descriptors();
    for (int k = 1;; ++k) {
      SCOPED_TRACE("fault at read " + std::to_string(k));
      FaultAt fault(k, change);
      const std::vector<ReadResult> others = not_done(fault);
      ASSERT_EQ(open_descriptors(), descriptors);
      if (fault.reads() < k) {
        EXPECT_TRUE(others.empty());
        EXPECT_GT(k, files_to_read());
        return;
      }
      judge(others);
      if (HasFailure()) return;
    }
  }

  std::vector<Target> targets_;
  std::vector<std::string> contents_;
};

TEST_P(ReadFaultTest, AnIoErrorIsReportedOnceWithItsErrno) {
  at_every_read([](int) { return -EIO; },
                [](const std::vector<ReadResult>& others) {
                  ASSERT_EQ(others.size(), 1u);
                  EXPECT_EQ(others[0].outcome, ReadOutcome::kFailed);
                  EXPECT_EQ(others[0].error_number, EIO);
                });
}

TEST_P(ReadFaultTest, AnInterruptedReadGoesOn) {
  for (const int error_number : {EINTR, EAGAIN}) {
    at_every_read([error_number](int) { return -error_number; },
                  [](const std::vector<ReadResult>& others) { EXPECT_TRUE(others.empty()); });
  }
}

TEST_P(ReadFaultTest, AShortReadGoesOn) {
  at_every_read([](int result) { return result / 2; },
                [](const std::vector<ReadResult>& others) { EXPECT_TRUE(others.empty()); });
}

TEST_P(ReadFaultTest, AnEarlyEndIsAChange) {
  at_every_read([](int) { return 0; },
                [](const std::vector<ReadResult>& others) {
                  ASSERT_EQ(others.size(), 1u);
                  EXPECT_EQ(others[0].outcome, ReadOutcome::kChanged);
                });
}

TEST_P(ReadFaultTest, AFileTruncatedWhileItIsReadIsAChange) {
  const std::string path = folder_.path("0");
  Target target{.path = "0"};
  const ReadJob all = whole(target);
  FaultAt fault(1, [&](int) {
    EXPECT_EQ(truncate(path.c_str(), 30'000), 0);
    return 40'960;
  });
  auto engine = open({.depth = 1, .fault = &fault});
  const ReadResult result = run_one(**engine, all);
  EXPECT_EQ(result.outcome, ReadOutcome::kChanged);
  EXPECT_EQ(result.found, stamp_of_path(path));
  EXPECT_EQ(result.found.size, 30'000u);
}

// Interrupted for ever: the job gives up instead of hanging.
TEST_P(ReadFaultTest, EndlessInterruptionEnds) {
  class Always : public ReadFault {
   public:
    int apply(int) override { return -EINTR; }
  } fault;
  Target target{.path = "0"};
  auto engine = open({.depth = 1, .fault = &fault});
  const ReadResult result = run_one(**engine, whole(target));
  EXPECT_EQ(result.outcome, ReadOutcome::kFailed);
  EXPECT_EQ(result.error_number, EINTR);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadFaultTest, testing::Combine(testing::Values("uring", "threads"), testing::Bool()),
                         engine_test_name);

}  // namespace
}  // namespace foreload
