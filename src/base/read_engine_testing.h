// For tests of the read engines: files with known content, jobs that read them, and a loop that runs jobs.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/read_engine.h"
#include "base/test_folder.h"

namespace foreload {

inline std::string content_of(std::uint64_t seed, std::size_t size) {
  std::string content(size, '\0');
  for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(mix64(seed * 0x10001 + i / 8) >> i % 8 * 8);
  return content;
}

inline FileStamp stamp_of_path(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return {static_cast<Bytes>(status.st_size), status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

inline std::size_t open_descriptors() {
  const auto folder = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

// Parameter: the engine's kind, and whether it reads with O_DIRECT.
class ReadEngineTest : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  struct Target {
    std::string path{};
    std::string buffer{};
  };

  void SetUp() override {
    root_ = std::move(*open_directory(folder_.path()));
    if (!open({}).ok()) GTEST_SKIP() << "no io_uring here";
  }

  Result<std::unique_ptr<ReadEngine>> open(ReadEngineOptions options) {
    options.kind = std::get<0>(GetParam());
    options.direct = std::get<1>(GetParam());
    options.bounce_bytes = 100'000;
    return open_read_engine(options);
  }

  ReadJob job(Target& target, Bytes offset, std::size_t length) {
    target.buffer.assign(length, '?');
    ReadJob job;
    job.root = root_.get();
    job.path = target.path.c_str();
    job.offset = offset;
    job.into = std::as_writable_bytes(std::span(target.buffer));
    return job;
  }

  // All of an existing file, with the stamp that it has now.
  ReadJob whole(Target& target) {
    const FileStamp stamp = stamp_of_path(folder_.path(target.path));
    ReadJob all = job(target, 0, stamp.size);
    all.expect = stamp;
    return all;
  }

  ReadResult run_one(ReadEngine& engine, const ReadJob& job) {
    std::vector<ReadResult> results;
    engine.submit({&job, 1});
    const Time deadline = now() + std::chrono::seconds(30);
    while (results.empty() && now() < deadline) engine.wait(results, deadline);
    EXPECT_EQ(results.size(), 1u);
    return results.empty() ? ReadResult{} : results.front();
  }

  // Runs jobs[i] with tag i, as many at once as the engine takes. False: some did not finish.
  static bool run(ReadEngine& engine, std::vector<ReadJob> jobs, std::vector<ReadResult>& results) {
    const Time deadline = now() + std::chrono::seconds(60);
    std::size_t submitted = 0;
    while (results.size() < jobs.size() && now() < deadline) {
      const std::size_t room = engine.max_depth() - (submitted - results.size());
      const std::size_t count = std::min(room, jobs.size() - submitted);
      for (std::size_t i = submitted; i < submitted + count; ++i) jobs[i].tag = i;
      engine.submit(std::span(jobs).subspan(submitted, count));
      submitted += count;
      engine.wait(results, deadline);
    }
    return results.size() == jobs.size();
  }

  TestFolder folder_;
  Descriptor root_;
};

inline std::string engine_test_name(const testing::TestParamInfo<std::tuple<std::string, bool>>& info) {
  return std::get<0>(info.param) + (std::get<1>(info.param) ? "_direct" : "");
}

}  // namespace foreload
