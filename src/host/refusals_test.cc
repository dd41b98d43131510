// Who is refused, and in which words: too many, other versions, members that hand out something else or stand still.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <random>

#include "base/test_folder.h"
#include "host/host_testing.h"

namespace foreload {
namespace {

TEST(RefusalsTest, SixtyFourProcessesJoinAndOneMoreIsRefusedUntilOneIsGone) {
  const std::string host = fresh_host();
  std::vector<HostChild> members;
  for (unsigned i = 0; i < kMostMembers; ++i) {
    members.push_back(joiner(host));
    const auto told = members.back().next();
    ASSERT_TRUE(told && told->what == 0) << "member " << i;
  }
  const auto refused = join_host(*HostName::parse(host), {.own_budget = 1_GiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().message.find("64 members"), std::string::npos) << refused.error().message;
  members[40].kill();
  HostChild next = joiner(host);
  const auto told = next.next();
  ASSERT_TRUE(told && told->what == 0);
  EXPECT_FALSE(told->created);
}

// Listens at place 0 and says always the same, with a descriptor or without.
HostChild impostor(const std::string& host, const HostReply& reply, const std::function<Descriptor()>& file) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    const auto place = listen_local(HostName::parse(host)->address(0));
    if (!place.ok() || !place->has_value()) return tell({.what = -1});
    const Descriptor handed = file();
    const std::vector<int> files(handed.valid() ? 1 : 0, handed.get());
    tell({.what = 1});
    char end = 0;
    ::fcntl(until, F_SETFL, O_NONBLOCK);
    while (::read(until, &end, 1) < 0) {
      wait_readable(std::array{(*place)->get(), until}, now() + std::chrono::seconds(1));
      const auto guest = accept_local((*place)->get());
      if (!guest) continue;
      wait_readable(std::array{guest->get()}, now() + std::chrono::seconds(1));
      Frame request;
      (void)receive_frame(guest->get(), request);
      (void)send_frame(guest->get(), encode(reply), files);
    }
  });
}

Error refused_by(const HostReply& reply, const std::function<Descriptor()>& file) {
  const std::string host = fresh_host();
  HostChild member = impostor(host, reply, file);
  const auto told = member.next();
  EXPECT_TRUE(told && told->what == 1);
  const auto joined = join_host(*HostName::parse(host), {.own_budget = 1_GiB, .patience = std::chrono::seconds(1)});
  EXPECT_FALSE(joined.ok());
  if (joined.ok()) return {Code::kCancelled, ""};
  EXPECT_NE(joined.error().message.find(host), std::string::npos) << joined.error().message;
  EXPECT_NE(joined.error().message.find(std::to_string(member.pid())), std::string::npos) << joined.error().message;
  return joined.error();
}

Descriptor nothing() {
  return Descriptor();
}
Descriptor memory_file(Bytes bytes, int seals) {
  Descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  if (seals != 0 && ::fcntl(file.get(), F_ADD_SEALS, seals) != 0) std::abort();
  return file;
}

TEST(RefusalsTest, AHostOfAnotherProtocolIsNamedWithBothNumbers) {
  const Error error = refused_by({.protocol = 77, .kind = HostReply::Kind::kProtocol}, nothing);
  EXPECT_EQ(error.code, Code::kMismatch);
  EXPECT_NE(error.message.find("protocol 77, this program " + std::to_string(kHostProtocol)), std::string::npos)
      << error.message;
}

// Whatever a member hands over instead of a control block, nobody maps it.
TEST(RefusalsTest, WhatIsNoControlBlockIsRefused) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const Bytes size = Control::region_bytes();
  const std::vector<std::function<Descriptor()>> wrong = {
      [] { return Descriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)); },
      [&] { return memory_file(size, 0); },
      [&] { return memory_file(size, F_SEAL_GROW | F_SEAL_SEAL); },
      [&] { return memory_file(size - 1, kSeals); },
      [&] { return memory_file(size + 4096, kSeals); },
      [&] { return memory_file(size, kSeals); },
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    SCOPED_TRACE(i);
    const Error error = refused_by({.kind = HostReply::Kind::kWelcome}, wrong[i]);
    EXPECT_EQ(error.code, Code::kInvalid) << error.message;
  }
}

TEST(RefusalsTest, AWelcomeWithoutAControlBlockIsNone) {
  EXPECT_EQ(refused_by({.kind = HostReply::Kind::kWelcome}, nothing).code, Code::kIo);
  EXPECT_EQ(refused_by({.kind = HostReply::Kind::kNotHere}, nothing).code, Code::kIo);
}

TEST(RefusalsTest, TheFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  const TestFolder top;
  const std::string host = top.path("host");
  ASSERT_EQ(::mkdir(host.c_str(), 0700), 0);
  ASSERT_EQ(::chown(host.c_str(), 65534, 65534), 0);
  const auto refused = HostName::parse(host);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("of this user"), std::string::npos) << refused.error().message;
  const std::string link = top.path("link");
  ASSERT_EQ(::symlink(top.path().c_str(), link.c_str()), 0);
  EXPECT_FALSE(HostName::parse(link).ok()) << "a link may lead anywhere";
}

TEST(RefusalsTest, WhoLooksIsToldThatAHostDoesNotAnswer) {
  const std::string host = fresh_host();
  HostChild member = joiner(host);
  ASSERT_TRUE(member.next());
  member.stop();
  const auto seen = watch_host(*HostName::parse(host), std::chrono::seconds(1));
  ASSERT_FALSE(seen.ok()) << "it says that there is none";
  EXPECT_NE(seen.error().message.find("process " + std::to_string(member.pid())), std::string::npos)
      << seen.error().message;
  member.signal(SIGCONT);
  EXPECT_TRUE(watch_host(*HostName::parse(host), std::chrono::seconds(5)).ok());
}

// Stopped inside of the lock, sooner or later: whoever needs the lock is told which process it is, and when that goes
// on all is as before.
TEST(RefusalsTest, WhoIsStoppedInsideOfTheLockIsNamed) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string host = fresh_host();
  HostChild child([&](const HostChild::Tell& tell, int) {
    const auto member = Member::join(host, {.budget = 1_GiB});
    tell({.what = member.ok() ? 1 : -1});
    for (int i = 0; member.ok() && i < 100'000'000; ++i) (void)(*member)->control().reserve(100).ok();
  });
  ASSERT_EQ(child.next()->what, 1);
  const auto member = Member::join(host, {.budget = 1_GiB});
  ASSERT_TRUE(member.ok());
  Control& control = (*member)->control();
  Status reserved;
  for (int i = 0; i < 1'000 && reserved.ok(); ++i) {
    ::usleep(random() % 500);
    child.stop();
    reserved = control.reserve(1);
    if (reserved.ok()) child.signal(SIGCONT);
  }
  ASSERT_FALSE(reserved.ok()) << "it was never inside";
  EXPECT_EQ(reserved.error().code, Code::kIo);
  EXPECT_NE(reserved.error().message.find("process " + std::to_string(child.pid())), std::string::npos)
      << reserved.error().message;
  EXPECT_EQ(control.members().size(), 2u) << "who only looks needs no lock";
  child.signal(SIGCONT);
  EXPECT_TRUE(control.reserve(2).ok());
}

}  // namespace
}  // namespace foreload
