#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace foreload {
namespace {

Descriptor another(const SharedMemory& memory) {
  return Descriptor(::fcntl(memory.file(), F_DUPFD_CLOEXEC, 0));
}

TEST(SharedMemoryTest, WhatOneWritesTheOtherReads) {
  const auto first = SharedMemory::create(8192, "a test");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->reserve(0, 8192).ok());
  const auto second = SharedMemory::adopt(another(*first), 8192, "a test");
  ASSERT_TRUE(second.ok());
  first->bytes()[5000] = std::byte{7};
  EXPECT_EQ(second->bytes()[5000], std::byte{7});
  EXPECT_EQ(second->bytes()[5001], std::byte{0});
}

TEST(SharedMemoryTest, NobodyCanPullPagesAway) {
  const auto memory = SharedMemory::create(8192, "a test");
  ASSERT_TRUE(memory.ok());
  EXPECT_NE(::ftruncate(memory->file(), 4096), 0);
  EXPECT_NE(::ftruncate(memory->file(), 16384), 0);
}

TEST(SharedMemoryTest, OnlySealedMemoryOfTheRightSizeIsAdopted) {
  const auto memory = SharedMemory::create(8192, "a test");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(SharedMemory::adopt(another(*memory), 4096, "a test").error().code, Code::kInvalid);
  Descriptor open_end(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_end.get(), 8192), 0);
  EXPECT_EQ(SharedMemory::adopt(std::move(open_end), 8192, "a test").error().code, Code::kInvalid);
  EXPECT_EQ(SharedMemory::adopt(Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 8192, "a test").error().code,
            Code::kInvalid);
}

TEST(SharedMemoryTest, MoreThanTheMachineHasIsRefusedWithNumbers) {
  constexpr Bytes kMuch = 1ull << 39;  // TSan has no room for much more
  const auto memory = SharedMemory::create(kMuch, "a test");
  ASSERT_TRUE(memory.ok()) << "it costs nothing until it is reserved";
  const Status refused = memory->reserve(0, kMuch);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNoMemory);
  EXPECT_NE(refused.error().message.find("512 GiB"), std::string::npos) << refused.error().message;
}

// The kernel would send SIGXFSZ.
TEST(SharedMemoryTest, TheLimitOfFilesIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit little = before;
  little.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto refused = SharedMemory::create(8192, "a test");
  const auto fits = SharedMemory::create(4096, "a test");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNoMemory);
  EXPECT_NE(refused.error().message.find("ulimit -f"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(fits.ok());
}

}  // namespace
}  // namespace foreload
