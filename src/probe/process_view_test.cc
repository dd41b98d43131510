#include "probe/process_view.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/futex.h"
#include "base/shared_memory.h"
#include "base/test_folder.h"
#include "base/thread.h"

namespace foreload {
namespace {

TEST(ProcessViewTest, SharesOfMemoryAreReadByName) {
  const auto share = parse_memory_share(
      "55f0-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:  400 kB\nPss_Dirty: 7 kB\nPss_Anon:  100 kB\n"
      "Pss_File: 50 kB\nPss_Shmem:   250 kB\n");
  ASSERT_TRUE(share.ok()) << share.error().message;
  EXPECT_EQ(share->all, 400u * 1024);
  EXPECT_EQ(share->anonymous, 100u * 1024);
  EXPECT_EQ(share->files, 50u * 1024);
  EXPECT_EQ(share->shared, 250u * 1024);
  EXPECT_FALSE(parse_memory_share("Rss: 900 kB\nPss: 400 kB\n").ok());
  EXPECT_FALSE(parse_memory_share("Pss:\nPss_Anon:\nPss_File:\nPss_Shmem: 1 kB").ok());
}

TEST(ProcessViewTest, MemoryFilesCountWhenTheyAreTouched) {
  const auto before = memory_share(::getpid());
  ASSERT_TRUE(before.ok()) << before.error().message;
  auto memory = SharedMemory::create(8_MiB, "a test");
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  std::memset(memory->bytes().data(), 1, memory->bytes().size());
  EXPECT_GE(memory_share(::getpid())->shared, before->shared + 8_MiB);
}

TEST(ProcessViewTest, WhatIsReservedInMemoryFilesCountsUntouched) {
  const auto memory = SharedMemory::create(8_MiB, "a test");
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  ASSERT_TRUE(memory->reserve(0, 6_MiB).ok());
  struct stat found {};
  ASSERT_EQ(::fstat(memory->file(), &found), 0);
  EXPECT_EQ(memory_files(::getpid())[found.st_ino], 6_MiB);
}

TEST(ProcessViewTest, WhatIsReadIsCounted) {
  const TestFolder folder;
  const std::string file = folder.write("some", std::string(300'000, 'x'));
  const auto before = bytes_read(::getpid());
  ASSERT_TRUE(before.ok()) << before.error().message;
  ASSERT_TRUE(read_whole_file(file, 1_MiB).ok());
  EXPECT_GE(*bytes_read(::getpid()), *before + 300'000);
}

TEST(ProcessViewTest, ThreadsAreFoundByNameAndTheirStateIsTold) {
  std::atomic<std::uint32_t> go{0};
  const Time until = now() + std::chrono::seconds(20);
  auto thread = Thread::start("fl-some-1", [&] {
    while (go == 0 && now() < until) futex_wait(go, 0, until);
  });
  ASSERT_TRUE(thread.ok()) << thread.error().message;
  std::vector<pid_t> found;
  for (int look = 0; look < 2000 && found.empty(); ++look) {  // it is given its name a moment later
    found = threads_named(::getpid(), "fl-some");
    ::usleep(1000);
  }
  ASSERT_EQ(found.size(), 1u);
  for (int look = 0; look < 2000 && thread_state(::getpid(), found[0]) != 'S'; ++look) ::usleep(1000);
  EXPECT_EQ(thread_state(::getpid(), found[0]), 'S');
  EXPECT_EQ(thread_state(::getpid(), ::getpid()), 'R');
  go = 1;
  futex_wake_all(go);
}

TEST(ProcessViewTest, StatesStandBehindTheNameWhateverThatIs) {
  EXPECT_EQ(parse_thread_state("12 (fl-prep-0) R 1 2"), 'R');
  EXPECT_EQ(parse_thread_state("12 (odd) R name) S 1 2"), 'S');
  EXPECT_EQ(parse_thread_state("12 (cut"), '\0');
  EXPECT_EQ(thread_state(::getpid(), 1 << 30), '\0');
}

}  // namespace
}  // namespace foreload
