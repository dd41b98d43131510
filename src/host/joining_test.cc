// Joining, with real processes that die, stop and come at the same time.
#include "host/joining.h"

#include <array>
#include <memory>
#include <random>
#include <set>

#include "base/test_folder.h"
#include "host/host_testing.h"

namespace foreload {
namespace {

constexpr const char* kSteps[] = {"placed", "asked", "welcomed", "adopted", "entered", "alone", "created", "moved"};

// Joins and stays; every one of them says in which host it is.
std::set<ino_t> hosts_of(std::vector<HostChild>& children) {
  std::set<ino_t> hosts;
  for (HostChild& child : children) {
    const auto told = child.next();
    EXPECT_TRUE(told && told->what == 0) << (told ? told->what : 1);
    if (told) hosts.insert(told->host);
  }
  return hosts;
}

TEST(JoiningTest, TheFirstMakesTheHostAndTheOthersJoinIt) {
  const std::string host = fresh_host();
  std::vector<HostChild> children;
  children.push_back(joiner(host));
  const auto first = children[0].next();
  ASSERT_TRUE(first && first->created);
  for (int i = 0; i < 3; ++i) children.push_back(joiner(host));
  for (std::size_t i = 1; i < children.size(); ++i) {
    const auto told = children[i].next();
    ASSERT_TRUE(told);
    EXPECT_FALSE(told->created);
    EXPECT_EQ(told->host, first->host);
  }
}

TEST(JoiningTest, NewcomersAtTheSameTimeMakeOneHost) {
  for (int round = 0; round < soak(100); ++round) {
    const std::string host = fresh_host();
    std::vector<HostChild> children;
    for (int i = 0; i < 6; ++i) children.push_back(joiner(host));
    ASSERT_EQ(hosts_of(children).size(), 1u) << "round " << round;
  }
}

TEST(JoiningTest, AnybodyMayDieAtEveryStep) {
  for (const char* fatal : kSteps) {
    for (int round = 0; round < soak(20, 3); ++round) {
      SCOPED_TRACE(std::string(fatal) + ", round " + std::to_string(round));
      const std::string host = fresh_host();
      JoinOptions dies{.own_budget = 1_GiB};
      dies.at_step = [fatal](const char* step) {
        if (std::string_view(step) == fatal) ::raise(SIGKILL);
      };
      std::vector<HostChild> doomed;
      std::vector<HostChild> children;
      for (int i = 0; i < 2; ++i) {
        doomed.push_back(joiner(host, dies));
        children.push_back(joiner(host));
        doomed.push_back(joiner(host, dies));
      }
      ASSERT_EQ(hosts_of(children).size(), 1u);
    }
  }
}

// Members come, and are killed at any moment of their joining or later. Whoever is left is in one host.
TEST(JoiningTest, KillsAtRandomNeverMakeTwoHosts) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string host = fresh_host();
  std::vector<std::unique_ptr<HostChild>> members;  // those that have joined
  ino_t known = 0;
  for (int round = 0; round < soak(300); ++round) {
    std::vector<HostChild> newcomers;
    for (int i = 0; i < 5; ++i) newcomers.push_back(joiner(host));
    ::usleep(random() % 10'000);
    newcomers[0].kill();
    newcomers[1].kill();
    const bool all_die = random() % 2 == 0;  // then the host may change
    if (all_die) members.clear();
    std::set<ino_t> found;
    for (std::size_t i = 2; i < newcomers.size(); ++i) {
      const auto told = newcomers[i].next();
      ASSERT_TRUE(told && told->what == 0) << "round " << round;
      found.insert(told->host);
      members.push_back(std::make_unique<HostChild>(std::move(newcomers[i])));
    }
    ASSERT_EQ(found.size(), 1u) << "round " << round;
    ASSERT_TRUE(all_die || round == 0 || *found.begin() == known) << "round " << round;
    known = *found.begin();
    while (members.size() > 4) members.erase(members.begin() + static_cast<std::ptrdiff_t>(random() % members.size()));
  }
}

TEST(JoiningTest, AStoppedMemberIsNotReplacedByASecondHost) {
  const std::string host = fresh_host();
  HostChild first = joiner(host);
  const auto made = first.next();
  ASSERT_TRUE(made);
  first.stop();
  const auto name = HostName::parse(host);
  ASSERT_TRUE(name.ok());
  const auto refused = join_host(*name, {.own_budget = 1_GiB, .patience = std::chrono::milliseconds(700)});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kIo);
  EXPECT_NE(refused.error().message.find(std::to_string(first.pid())), std::string::npos) << refused.error().message;
  first.signal(SIGCONT);
  HostChild second = joiner(host);
  const auto joined = second.next();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->host, made->host);
  // With somebody who answers, one that is stopped is in nobody's way.
  first.stop();
  HostChild third = joiner(host);
  const auto also = third.next();
  ASSERT_TRUE(also);
  EXPECT_EQ(also->host, made->host);
  first.signal(SIGCONT);
}

TEST(JoiningTest, AnotherBudgetIsRefusedAndBothAreNamed) {
  const std::string host = fresh_host();
  HostChild first = joiner(host, {.budget = 2_GiB});
  ASSERT_TRUE(first.next());
  const auto name = HostName::parse(host);
  const auto refused = join_host(*name, {.budget = 3_GiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kMismatch);
  EXPECT_NE(refused.error().message.find("2147483648"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("3221225472"), std::string::npos) << refused.error().message;
}

TEST(JoiningTest, OneMoreThanThereArePlacesIsRefused) {
  const std::string host = fresh_host();
  const auto name = HostName::parse(host);
  std::vector<Descriptor> places;
  for (unsigned i = 0; i < kMostMembers; ++i) {
    auto listener = listen_local(name->address(i));
    ASSERT_TRUE(listener.ok() && listener->has_value());
    places.push_back(std::move(**listener));
  }
  const auto refused = join_host(*name, {.own_budget = 1_GiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().message.find("64 members"), std::string::npos) << refused.error().message;
}

TEST(JoiningTest, AnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const std::string host = fresh_host();
  HostChild first = joiner(host);
  ASSERT_TRUE(first.next());
  HostChild stranger([&](const HostChild::Tell& tell, int) {
    const auto address = HostName::parse(host)->address(0);  // the name has the owner's id in it
    if (::setuid(65534) != 0) return tell({.what = 1});
    auto connected = connect_local(address);
    if (!connected.ok() || !connected->has_value()) return tell({.what = 2});
    (void)send_frame((*connected)->get(), encode(HostRequest{}));
    wait_readable(std::array{(*connected)->get()}, now() + std::chrono::seconds(5));
    Frame frame;
    const Received received = receive_frame((*connected)->get(), frame, 1);
    const auto reply = received == Received::kFrame ? parse_reply(frame.bytes) : std::nullopt;
    tell({.what = reply && reply->kind == HostReply::Kind::kNotAllowed && frame.files.empty() ? 100 : 3});
  });
  const auto told = stranger.next();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, 100);
}

TEST(JoiningTest, APlaceHeldByAnotherUserIsAnError) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  const std::string host = fresh_host();
  const LocalAddress address = HostName::parse(host)->address(0);
  HostChild squatter([&](const HostChild::Tell& tell, int until) {
    if (::setuid(65534) != 0) return;
    const auto listener = listen_local(address);
    tell({.what = listener.ok() && listener->has_value() ? 0 : 1});
    wait_for_end(until);
  });
  ASSERT_EQ(squatter.next()->what, 0);
  const auto name = HostName::parse(host);
  const auto refused = join_host(*name, {.own_budget = 1_GiB});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("another user"), std::string::npos) << refused.error().message;
}

TEST(JoiningTest, AForkedChildDoesNotKeepThePlaceOfItsDeadParent) {
  const std::string host = fresh_host();
  HostChild parent([&](const HostChild::Tell& tell, int) {
    auto member = Member::join(host, {.own_budget = 1_GiB});
    if (!member.ok()) return;
    const pid_t orphan = ::fork();
    if (orphan == 0) {
      ::sleep(20);
      ::_exit(0);
    }
    tell({.what = orphan});
    ::raise(SIGKILL);
  });
  const auto told = parent.next();
  ASSERT_TRUE(told);
  (void)parent.wait();
  const Time asked = now();
  HostChild next = joiner(host);
  const auto joined = next.next();
  ASSERT_TRUE(joined && joined->what == 0);
  EXPECT_TRUE(joined->created);
  EXPECT_LT(now() - asked, std::chrono::seconds(3));
  ::kill(told->what, SIGKILL);
}

TEST(JoiningTest, FoldersWorkLikeNamesAndAreTakenOverFromTheDead) {
  const TestFolder folder;
  const std::string host = folder.path("host");
  for (int round = 0; round < 3; ++round) {
    HostChild first = joiner(host);
    const auto made = first.next();
    ASSERT_TRUE(made && made->what == 0);
    EXPECT_TRUE(made->created);
    HostChild second = joiner(host);
    const auto joined = second.next();
    ASSERT_TRUE(joined && joined->what == 0);
    EXPECT_EQ(joined->host, made->host);
  }  // both are killed, and leave their sockets behind
  ::chmod(host.c_str(), 0755);
  const auto refused = HostName::parse(host);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("0700"), std::string::npos);
}

TEST(JoiningTest, NamesThatCanNotBeAreRefused) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string(49, 'x'), std::string("a\0b", 3)}) {
    EXPECT_FALSE(HostName::parse(name).ok()) << name;
  }
  EXPECT_TRUE(HostName::parse("job_1.train-2").ok());
}

// A member that shows somebody the door is there all the same.
TEST(JoiningTest, WhoHangsUpIsNotNobody) {
  const std::string host = fresh_host();
  const auto place = listen_local(HostName::parse(host)->address(1));
  ASSERT_TRUE(place.ok() && place->has_value());
  HostChild newcomer = joiner(host, {.own_budget = 1_GiB, .patience = std::chrono::milliseconds(300)});
  std::optional<Told> told;
  for (int i = 0; i < 1'000 && !told; ++i) {
    while (const auto guest = accept_local((*place)->get())) {
      wait_readable(std::array{guest->get()}, now() + std::chrono::seconds(1));  // its request is there, and not read
    }
    told = newcomer.next(std::chrono::milliseconds(5));
  }
  ASSERT_TRUE(told);
  EXPECT_EQ(told->what, -1 - static_cast<int>(Code::kIo)) << "it made a second host";
}

}  // namespace
}  // namespace foreload
