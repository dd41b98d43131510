#include "host/member.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <filesystem>
#include <random>

#include "host/host_testing.h"

namespace foreload {
namespace {

constexpr ObjectKey kKey{ObjectKey::Kind::kArena, 1, 2};

ObjectNeeds needs(Bytes bytes, Bytes reserve, char content = 'x') {
  return {.key = kKey, .bytes = bytes, .reserve = reserve, .fill = [content](const SharedMemory& memory) -> Status {
            memory.bytes()[0] = std::byte(content);
            return {};
          }};
}

// Opens the object, says what its first byte is, and stays.
HostChild holder(const std::string& host, char content) {
  return HostChild([=](const HostChild::Tell& tell, int until) {
    auto member = Member::join(host, {.own_budget = 1_GiB});
    if (!member.ok()) return tell({.what = -1});
    auto object = (*member)->open(needs(8192, 4096, content));
    if (!object.ok()) return tell({.what = -2});
    tell({.what = static_cast<int>((*object)->memory().bytes()[0])});
    wait_for_end(until);
  });
}

bool eventually(const std::function<bool()>& what, Duration patience = std::chrono::seconds(5)) {
  const Time until = now() + patience;
  while (now() < until) {
    if (what()) return true;
    ::usleep(5'000);
  }
  return what();
}

TEST(MemberTest, MemoryOutlivesItsMakerAndIsHandedOnByWhoeverHasIt) {
  const std::string host = fresh_host();
  HostChild maker = holder(host, 'a');
  ASSERT_EQ(maker.next()->what, 'a');
  HostChild second = holder(host, 'b');
  ASSERT_EQ(second.next()->what, 'a');
  maker.kill();
  HostChild third = holder(host, 'c');
  EXPECT_EQ(third.next()->what, 'a');
  second.kill();
  third.kill();
  HostChild fourth = holder(host, 'd');  // nobody had it any more
  EXPECT_EQ(fourth.next()->what, 'd');
}

TEST(MemberTest, TwoLoadersOfAProcessAreOneMember) {
  const std::string host = fresh_host();
  const auto first = Member::join(host, {.own_budget = 1_GiB});
  const auto second = Member::join(host, {.own_budget = 1_GiB});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ((*first)->control().members().size(), 1u);
  EXPECT_FALSE(Member::join(host, {.budget = 7}).ok());
}

TEST(MemberTest, WhatTheDeadHeldIsTakenBackWithinASecond) {
  for (int round = 0; round < soak(100); ++round) {
    const std::string host = fresh_host();
    HostChild child = holder(host, 'a');  // forked while this process has no threads
    const auto told = child.next();
    ASSERT_TRUE(told);
    ASSERT_EQ(told->what, 'a');
    const auto member = Member::join(host, {.own_budget = 1_GiB});
    ASSERT_TRUE(member.ok());
    Control& control = (*member)->control();
    ASSERT_EQ(control.objects().size(), 1u);
    ASSERT_EQ(control.members().size(), 2u);
    child.kill();
    EXPECT_TRUE(eventually([&] { return control.members().size() == 1 && control.objects().empty(); },
                           std::chrono::seconds(1)));
    EXPECT_TRUE(control.reserve(1_GiB).ok());
  }
}

TEST(MemberTest, TheBudgetIsNeverExceededAndWhatIsLeftIsNamed) {
  const std::string host = fresh_host();
  const auto member = Member::join(host, {.budget = 10'000});
  ASSERT_TRUE(member.ok());
  Control& control = (*member)->control();
  ASSERT_TRUE(control.reserve(6'000).ok());
  const auto refused = (*member)->open(needs(8192, 5'000));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kNoMemory);
  ASSERT_TRUE(control.reserve(5'000).ok());
  {
    const auto object = (*member)->open(needs(8192, 5'000));
    ASSERT_TRUE(object.ok());
    EXPECT_FALSE(control.reserve(5'001).ok());
    EXPECT_FALSE(control.grow((*object)->id(), 5'001).ok());
    EXPECT_TRUE(control.reserve(3'000).ok());
    EXPECT_TRUE(control.grow((*object)->id(), 7'000).ok());
    EXPECT_TRUE(control.grow((*object)->id(), 6'000).ok()) << "somebody who comes late";
    EXPECT_FALSE(control.reserve(3'001).ok()) << "what was grown stays so";
  }
  EXPECT_TRUE(control.objects().empty());
  EXPECT_TRUE(control.reserve(10'000).ok());
}

// Killed inside of the lock, sooner or later.
TEST(MemberTest, TheLockIsTakenFromTheDead) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < soak(200, 20); ++round) {
    const std::string host = fresh_host();
    HostChild child([&](const HostChild::Tell& tell, int) {
      auto joined = Member::join(host, {.budget = 1_GiB});
      if (!joined.ok()) return tell({.what = -1});
      tell({});
      for (int i = 0; i < 10'000'000; ++i) (void)(*joined)->control().reserve(static_cast<Bytes>(i % 100)).ok();
    });
    const auto told = child.next();
    ASSERT_TRUE(told);
    ASSERT_EQ(told->what, 0);
    const auto member = Member::join(host, {.budget = 1_GiB});
    ASSERT_TRUE(member.ok());
    ::usleep(random() % 3'000);
    child.kill();
    const Time before = now();
    ASSERT_TRUE((*member)->control().reserve(1_MiB).ok()) << "round " << round;
    ASSERT_LT(now() - before, std::chrono::seconds(1));
  }
}

TEST(MemberTest, AnObjectThatAllLetGoOfIsFoundByNobody) {
  const std::string host = fresh_host();
  const auto member = Member::join(host, {.own_budget = 1_GiB});
  ASSERT_TRUE(member.ok());
  auto object = (*member)->open(needs(8192, 0, 'a'));
  ASSERT_TRUE(object.ok());
  const ObjectId id = (*object)->id();
  ASSERT_TRUE((*member)->control().drop(id).ok());
  EXPECT_FALSE((*member)->fetch(id).ok());
  auto next = (*member)->open(needs(8192, 0, 'b'));
  ASSERT_TRUE(next.ok());
  EXPECT_EQ((*next)->memory().bytes()[0], std::byte('b'));
  EXPECT_NE((*next)->id(), id);
  object->reset();
  EXPECT_FALSE((*member)->control().object(id));
}

// R14: whatever comes in, the member goes on serving, and does not grow.
TEST(MemberTest, AHostileClientChangesNothing) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string host = fresh_host();
  HostChild served = joiner(host);
  ASSERT_TRUE(served.next());
  const LocalAddress address = HostName::parse(host)->address(0);
  const Descriptor spare(::memfd_create("spare", MFD_CLOEXEC));
  std::vector<Descriptor> idle;
  for (int round = 0; round < soak(10'000, 1'000); ++round) {
    auto connected = connect_local(address);
    if (!connected.ok() || !connected->has_value()) {
      ::usleep(1'000);  // its waiting room is full
      continue;
    }
    const int socket = (*connected)->get();
    std::vector<std::byte> bytes(random() % kMostFrameBytes);
    for (std::byte& byte : bytes) byte = std::byte(random());
    if (round % 3 == 0) {
      const RequestBytes good = encode(HostRequest{.kind = HostRequest::Kind::kFetch, .object = random()});
      bytes.assign(good.begin(), good.end());
      bytes[random() % bytes.size()] = std::byte(random());
    }
    const std::vector<int> files(round % 5 == 0 ? kMostFrameFiles : 0, spare.get());
    (void)send_frame(socket, bytes, files);
    if (round % 7 == 0) (void)!::send(socket, std::vector<char>(100'000).data(), 100'000, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (round % 11 == 0 && idle.size() < 100) idle.push_back(std::move(**connected));  // says no more, and stays
  }
  const std::string files = "/proc/" + std::to_string(served.pid()) + "/fd";
  EXPECT_TRUE(eventually([&] {
    std::size_t open = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(files)) ++open;
    return open < 32;
  }));
  HostChild next = joiner(host);
  const auto joined = next.next();
  ASSERT_TRUE(joined && joined->what == 0);
  EXPECT_FALSE(joined->created);
}

TEST(MemberTest, AnotherProtocolIsRefusedByNumber) {
  const std::string host = fresh_host();
  HostChild served = joiner(host);
  ASSERT_TRUE(served.next());
  const auto connected = connect_local(HostName::parse(host)->address(0));
  ASSERT_TRUE(connected.ok() && connected->has_value());
  ASSERT_TRUE(send_frame((*connected)->get(), encode(HostRequest{.protocol = 77})));
  wait_readable(std::array{(*connected)->get()}, now() + std::chrono::seconds(5));
  Frame frame;
  ASSERT_EQ(receive_frame((*connected)->get(), frame, 1), Received::kFrame);
  EXPECT_TRUE(frame.files.empty());
  EXPECT_EQ(parse_reply(frame.bytes)->kind, HostReply::Kind::kProtocol);
  EXPECT_EQ(parse_reply(frame.bytes)->protocol, kHostProtocol);
}

TEST(MemberTest, LookingDoesNotJoin) {
  const std::string host = fresh_host();
  const auto name = HostName::parse(host);
  const auto nobody = watch_host(*name, std::chrono::seconds(1));
  ASSERT_TRUE(nobody.ok());
  EXPECT_FALSE(nobody->has_value());
  HostChild served = joiner(host, {.budget = 5_GiB});
  ASSERT_TRUE(served.next());
  const auto seen = watch_host(*name, std::chrono::seconds(5));
  ASSERT_TRUE(seen.ok() && seen->has_value());
  EXPECT_EQ((*seen)->budget(), 5_GiB);
  ASSERT_EQ((*seen)->members().size(), 1u);
  EXPECT_EQ((*seen)->members()[0].process, static_cast<std::uint32_t>(served.pid()));
  EXPECT_TRUE((*seen)->members()[0].alive);
}

// R5: everybody killed at once, again and again; nothing is in the way of the next start.
TEST(MemberTest, AfterAllWereKilledTheNextStartIsQuick) {
  const std::string host = fresh_host();
  for (int round = 0; round < soak(100); ++round) {
    std::vector<HostChild> children;
    for (int i = 0; i < 3; ++i) children.push_back(holder(host, static_cast<char>('a' + round % 20)));
    for (HostChild& child : children) {
      const auto told = child.next(std::chrono::seconds(3));
      ASSERT_TRUE(told);
      ASSERT_EQ(told->what, 'a' + round % 20) << "something of the round before was left";
    }
    for (HostChild& child : children) child.kill();
  }
}

TEST(MemberTest, WhoOnlyHelpsDoesNotKeepAnObjectInUse) {
  const auto member = *Member::join(fresh_host(), {.own_budget = 1_GiB});
  auto user = *member->open(needs(8192, 0));
  auto other = *member->open(needs(8192, 0));
  auto helper = *member->fetch(user->id());
  const ObjectId id = user->id();
  EXPECT_NE(member->control().object(id)->users, 0u);
  user.reset();
  EXPECT_NE(member->control().object(id)->users, 0u);
  other.reset();
  EXPECT_EQ(member->control().object(id)->users, 0u);
  EXPECT_NE(member->control().object(id)->holders, 0u);
  helper.reset();
  EXPECT_FALSE(member->control().object(id));
}

// Somebody asks for an object all the time while its last user lets go of it and leaves.
TEST(MemberTest, LeavingWhileSomebodyAsksIsNoTrouble) {
  const std::string host = fresh_host();
  HostChild child([&](const HostChild::Tell& tell, int) {
    for (int round = 0; round < soak(10'000, 1'000); ++round) {
      auto member = Member::join(host, {.own_budget = 1_GiB});
      if (!member.ok()) return tell({.what = -1});
      auto object = (*member)->open(needs(8192, 0));
      member->reset();
      if (!object.ok()) return tell({.what = -2});
      if (round == 0) tell({.what = 1, .numbers = {(*object)->id()}});
    }
    tell({.what = 2});
  });
  const auto first = child.next();
  ASSERT_TRUE(first && first->what == 1);
  const RequestBytes request = encode(HostRequest{.kind = HostRequest::Kind::kFetch, .object = first->numbers[0]});
  std::optional<Told> told;
  const Time until = now() + std::chrono::seconds(120);
  while (!told && now() < until) {
    for (int i = 0; i < 100; ++i) {
      const auto connected = connect_local(HostName::parse(host)->address(0));
      if (connected.ok() && connected->has_value()) (void)send_frame((*connected)->get(), request);
    }
    told = child.next(Duration{});
  }
  ASSERT_TRUE(told) << "it hangs, or is dead";
  EXPECT_EQ(told->what, 2);
}

TEST(MemberTest, ACoreIsFreeWhateverTimeItsHolderWrote) {
  const auto member = *Member::join(fresh_host(), {.own_budget = 1_GiB, .cores = 1});
  Control& control = member->control();
  for (const Time wrote : {now() + std::chrono::hours(1), Time::min(), Time::max()}) {
    const auto core = control.take_core(wrote);
    ASSERT_TRUE(core);
    const auto taken = control.take_core(now());
    ASSERT_TRUE(taken) << wrote.count();
    EXPECT_FALSE(control.take_core(now())) << "one that was renewed just now";
    control.give_back(*taken);
  }
}

}  // namespace
}  // namespace foreload
