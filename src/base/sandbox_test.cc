// What happens where system calls are forbidden, as in containers: tried in a child process under a seccomp filter.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "base/files.h"
#include "base/read_engine.h"
#include "base/test_folder.h"
#include "base/thread.h"
#include "base/write_file.h"

namespace foreload {
namespace {

constexpr int kNoFilter = 77;

bool forbid(int system_call, int error_number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(system_call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error_number)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// The exit code of `body` in a child where `system_call` fails with `error_number`.
int run_without(int system_call, int error_number, const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (!forbid(system_call, error_number)) _exit(kNoFilter);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool picks_threads() {
  const auto engine = open_read_engine({});
  return engine.ok() && std::strcmp((*engine)->name(), "threads") == 0;
}

TEST(SandboxTest, WithoutIoUringTheThreadsRead) {
  for (const int system_call : {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register}) {
    for (const int error_number : {EPERM, ENOSYS, ENOMEM}) {
      const int code = run_without(system_call, error_number, picks_threads);
      if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
      EXPECT_EQ(code, 0) << "system call " << system_call << " errno " << error_number;
    }
  }
}

TEST(SandboxTest, InsistingOnIoUringSaysWhyNot) {
  const int code = run_without(SYS_io_uring_setup, EPERM, [] {
    const auto engine = open_read_engine({.kind = "uring"});
    return !engine.ok() && engine.error().message.find("Operation not permitted") != std::string::npos &&
           engine.error().message.find("threads") != std::string::npos;
  });
  if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(code, 0);
}

TEST(SandboxTest, WithoutOpenat2FilesAreOpenedStepByStep) {
  const TestFolder folder;
  folder.write("a/file", "x");
  std::filesystem::create_symlink("/etc/passwd", folder.path("escapes"));
  for (const int error_number : {EPERM, ENOSYS}) {
    const int code = run_without(SYS_openat2, error_number, [&] {
      const auto root = open_directory(folder.path());
      return root.ok() && open_below(root->get(), "a/file").ok() && !open_below(root->get(), "escapes").ok();
    });
    if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
    EXPECT_EQ(code, 0) << error_number;
  }
}

TEST(SandboxTest, WithoutNamelessFilesANamedOneIsWrittenAndReplaces) {
  const TestFolder folder;
  const std::string path = folder.write("file", "old");
  const int code = run_without(SYS_linkat, EPERM, [&] {
    const std::string_view content = "new";
    return replace_file(path, std::as_bytes(std::span(content))).ok() && *read_whole_file(path, 100) == "new";
  });
  if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

// Both ways in which a C library starts threads.
bool forbid_threads() {
  return forbid(SYS_clone3, EAGAIN) && forbid(SYS_clone, EAGAIN);
}

TEST(SandboxTest, WithoutThreadsThePoolIsRefusedAndParallelForRunsAlone) {
  const int code = run_without(SYS_io_uring_setup, EPERM, [] {
    if (!forbid_threads()) return false;
    const auto engine = open_read_engine({});
    int runs = 0;
    parallel_for(4, 10, [&](std::uint64_t) { ++runs; });
    return !engine.ok() && engine.error().message.find("ulimit -u") != std::string::npos && runs == 10;
  });
  if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(code, 0);
}

TEST(SandboxTest, APoolThatCanNotGrowStillReadsEverything) {
  const TestFolder folder;
  folder.write("file", "content");
  const int code = run_without(SYS_io_uring_setup, EPERM, [&] {
    const auto root = open_directory(folder.path());
    const auto engine = open_read_engine({});
    if (!root.ok() || !engine.ok() || !forbid_threads()) return false;
    ReadJob job;
    job.root = root->get();
    job.path = "file";
    std::vector<ReadJob> jobs(50, job);
    (*engine)->submit(jobs);
    std::vector<ReadResult> results;
    while (results.size() < jobs.size()) (*engine)->wait(results, kNever);
    return results[0].outcome == ReadOutcome::kChanged;  // no stamp was given
  });
  if (code == kNoFilter) GTEST_SKIP() << "seccomp is not available";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace foreload
