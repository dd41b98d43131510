#include "peers/peers_grpc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "peers/grpc_testing.h"
#include "peers/refusals.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLengths[] = {0, 1, 100, 110'000, kPartBytes, kPartBytes + 1, 3 * kPartBytes + 77};

bool has_word(const std::vector<std::string>& warnings, const std::string& word) {
  return std::any_of(warnings.begin(), warnings.end(),
                     [&](const std::string& each) { return each.find(word) != std::string::npos; });
}

TEST(GrpcPeersTest, SamplesOfAnyLengthComeAsTheyAreWithTlsAndWithout) {
  for (const bool secure : {true, false}) {
    TestShelf shelf;
    Wanted wanted;
    for (SampleId id = 0; id < std::size(kLengths); ++id) {
      shelf.put(id, kLengths[id]);
      wanted.add(id, kLengths[id]);
    }
    const auto credentials = secure ? std::optional(job_credentials().front()) : std::nullopt;
    const auto server = serve(shelf, credentials);
    const auto peers = peers_at(server->address(), credentials);
    wanted.fetch_and_wait(*peers);
    EXPECT_TRUE(wanted.all(PeerResult::kHere));
    EXPECT_TRUE(peers->take_warnings().empty());
  }
}

TEST(GrpcPeersTest, ManyFetchesAreUnderWayAtOnce) {
  constexpr std::size_t kFetches = 100;
  TestShelf shelf;
  for (SampleId id = 0; id < 64; ++id) shelf.put(id, 1'000 * id);
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials);
  const auto peers = peers_at(server->address(), credentials);
  std::vector<std::vector<Content>> memory(kFetches);
  const Time deadline = now() + kPlenty;
  for (std::size_t f = 0; f < kFetches; ++f) {
    std::vector<PeerWant> wants;
    for (SampleId id = 0; id < 64; ++id) memory[f].emplace_back(1'000 * id);
    for (SampleId id = 0; id < 64; ++id) wants.push_back({.id = id, .into = memory[f][id], .token = 64 * f + id});
    peers->fetch(0, kTestKey, wants, deadline);
  }
  std::vector<PeerEnd> ends;
  while (ends.size() < 64 * kFetches && now() < deadline) peers->wait(ends, deadline);
  ASSERT_EQ(ends.size(), 64 * kFetches);
  for (const PeerEnd& end : ends) {
    ASSERT_EQ(end.result, PeerResult::kHere);
    ASSERT_EQ(memory[end.token / 64][end.token % 64], shelf.content(end.token % 64));
  }
}

TEST(GrpcPeersTest, MoreThanFitsIntoOneRequestIsDivided) {
  TestShelf shelf;
  constexpr SampleId kThere = kMostItems + 2'000;
  shelf.put(kThere, 8);
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  Wanted wanted(0, kMostItems + 5'000, 8);
  wanted.fetch_and_wait(*peers);
  EXPECT_EQ(wanted.count(PeerResult::kAbsent), kMostItems + 4'999);
  EXPECT_EQ(wanted.result(kThere), PeerResult::kHere);
}

TEST(GrpcPeersTest, WhatItsHomeDoesNotHaveIsAbsent) {
  TestShelf shelf;
  shelf.put(1, 500);
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials);
  const auto peers = peers_at(server->address(), credentials);
  Wanted wanted(0, 3, 500);
  wanted.fetch_and_wait(*peers);
  EXPECT_EQ(wanted.result(0), PeerResult::kAbsent);
  EXPECT_EQ(wanted.result(1), PeerResult::kHere);
  EXPECT_EQ(wanted.result(2), PeerResult::kAbsent);
}

TEST(GrpcPeersTest, AnotherDatasetPlanOrRosterIsRefusedAndHarmsNothingElse) {
  TestShelf shelf;
  shelf.put(0, 500);
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials);
  const auto peers = peers_at(server->address(), credentials);
  Wanted wanted(0, 1, 500);
  for (PeerKey key : {PeerKey{0, 22, 33}, PeerKey{11, 0, 33}, PeerKey{11, 22, 0}}) {
    wanted.fetch_and_wait(*peers, now() + kPlenty, key);
    EXPECT_TRUE(wanted.all(PeerResult::kRefused));
    wanted.again();
  }
  EXPECT_EQ(shelf.takes(), 0u);
  wanted.fetch_and_wait(*peers);
  EXPECT_TRUE(wanted.all(PeerResult::kHere));
  EXPECT_TRUE(peers->take_warnings().empty());  // hosts begin at different times
}

TEST(GrpcPeersTest, WhoDoesNotHaveAKeyIsAskedForItAgainButNotAllTheTime) {
  TestShelf shelf;
  shelf.put(0, 500);
  shelf.know(false);
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  const Time begin = now();
  std::size_t rounds = 0;
  Wanted wanted(0, 1, 500);
  for (; shelf.asked() < 3 && now() < begin + kPlenty; ++rounds) {
    wanted.fetch_and_wait(*peers);
    ASSERT_TRUE(wanted.all(PeerResult::kRefused));
    wanted.again();
  }
  EXPECT_EQ(shelf.asked(), 3u);
  EXPECT_GE(now() - begin, 2 * Refusals::kPause);
  EXPECT_GT(rounds, 10u);
  shelf.know(true);
  for (const Time limit = now() + kPlenty; now() < limit; std::this_thread::sleep_for(10ms)) {
    wanted.again();
    wanted.fetch_and_wait(*peers);
    if (wanted.all(PeerResult::kHere)) break;
  }
  EXPECT_TRUE(wanted.all(PeerResult::kHere));
  EXPECT_TRUE(peers->take_warnings().empty());
}

TEST(GrpcPeersTest, HowWantsEndIsCountedByPeer) {
  TestShelf shelf;
  for (SampleId id = 0; id < 5; ++id) shelf.put(id, 500);
  shelf.lies[4] = 12345;
  auto server = serve(shelf, std::nullopt);
  auto peers = GrpcPeers::open({.addresses = {server->address(), ""}});
  ASSERT_TRUE(peers);
  const PeerCounts none{.address = server->address()};
  EXPECT_EQ((*peers)->counts(), (std::vector{none, PeerCounts()}));
  for (int i = 0; i < 2; ++i) Wanted(0, 3, 500).fetch_and_wait(**peers, now() + kPlenty, PeerKey());
  Wanted(0, 7, 500).fetch_and_wait(**peers);
  Wanted(0, 8, 500).fetch_and_wait(**peers, now() - 1s);
  const PeerCounts some{.address = server->address(),
                        .samples = 4,
                        .bytes = 2'000,
                        .absent = 2,
                        .refused = 6,
                        .wrong = 1,
                        .unreachable = 8};
  EXPECT_EQ((*peers)->counts(), (std::vector{some, PeerCounts()}));
}

TEST(GrpcPeersTest, BytesWithoutTheirHashAndOtherLengthsAreWrong) {
  TestShelf shelf;
  for (SampleId id = 0; id < 4; ++id) shelf.put(id, 500);
  shelf.lies[1] = 12345;
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials);
  const auto peers = peers_at(server->address(), credentials);
  Wanted wanted(0, 2, 500);
  wanted.add(2, 499);
  wanted.add(3, 500);
  wanted.fetch_and_wait(*peers);
  EXPECT_EQ(wanted.result(0), PeerResult::kHere);
  EXPECT_EQ(wanted.result(1), PeerResult::kWrong);
  EXPECT_EQ(wanted.result(2), PeerResult::kWrong);
  EXPECT_EQ(wanted.result(3), PeerResult::kHere);
  EXPECT_TRUE(has_word(peers->take_warnings(), "not the sample's"));
}

TEST(GrpcPeersTest, NobodyThereEndsEverythingWithOneWarning) {
  TestShelf shelf;
  const std::string address = serve(shelf, std::nullopt)->address();  // and it is gone
  const auto peers = peers_at(address, std::nullopt);
  Wanted wanted(0, 10, 100);
  for (int i = 0; i < 20; ++i) {
    wanted.fetch_and_wait(*peers);
    EXPECT_TRUE(wanted.all(PeerResult::kUnreachable));
    wanted.again();
  }
  EXPECT_EQ(peers->take_warnings().size(), 1u);
  const auto answer = peers->greet(0, now() + 50ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kIo);
  EXPECT_NE(answer.error().message.find(address), std::string::npos) << answer.error().message;
}

TEST(GrpcPeersTest, AServerThatHangsCostsOneDeadline) {
  TestShelf shelf;
  for (SampleId id = 0; id < 10; ++id) shelf.put(id, 100);
  std::atomic<bool> hangs = true;
  shelf.before_take = [&](SampleId id) {
    while (id == 5 && hangs) std::this_thread::sleep_for(1ms);
  };
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials);
  const auto peers = peers_at(server->address(), credentials);
  Wanted wanted(0, 10, 100);
  wanted.fetch_and_wait(*peers, now() + 1s);
  EXPECT_EQ(wanted.count(PeerResult::kUnreachable), 10 - wanted.count(PeerResult::kHere));
  EXPECT_EQ(wanted.result(5), PeerResult::kUnreachable);
  EXPECT_TRUE(has_word(peers->take_warnings(), "does not answer in time"));
  Wanted next(0, 10, 100);  // nothing is waited for now
  next.fetch(*peers, now() + 24h);
  next.wait(*peers, 10);
  EXPECT_TRUE(next.all(PeerResult::kUnreachable));
  hangs = false;
}

TEST(GrpcPeersTest, ADeadlineThatIsOverEndsEverythingAndIsNoFailureOfThePeer) {
  TestShelf shelf;
  shelf.put(0, 100);
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  Wanted wanted(0, 1, 100);
  wanted.fetch_and_wait(*peers, now() - 1s);
  EXPECT_TRUE(wanted.all(PeerResult::kUnreachable));
  wanted.again();
  wanted.fetch_and_wait(*peers);
  EXPECT_TRUE(wanted.all(PeerResult::kHere));
}

TEST(GrpcPeersTest, WaitEndsAtItsTimeAndWhenItIsWoken) {
  TestShelf shelf;
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  std::vector<PeerEnd> ends;
  const Time until = now() + 20ms;
  peers->wait(ends, until);
  EXPECT_GE(now(), until);
  std::thread waker([&] { peers->wake(); });
  peers->wait(ends, kNever);
  waker.join();
  EXPECT_TRUE(ends.empty());
}

TEST(GrpcPeersTest, BothSidesEndAtOnceWhateverIsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    TestShelf shelf;
    for (SampleId id = 0; id < 200; ++id) shelf.put(id, 50'000);
    const auto credentials = job_credentials().front();
    auto server = serve(shelf, credentials);
    auto peers = peers_at(server->address(), credentials);
    const Wanted wanted(0, 200, 50'000);
    wanted.fetch(*peers);
    std::vector<PeerEnd> ends;
    if (round % 4 != 0) peers->wait(ends, now() + kPlenty);  // the first sample has come
    if (round % 2 == 0) server.reset();
    const Time begin = now();
    peers.reset();
    server.reset();
    EXPECT_LT(now() - begin, 8s);  // gRPC's own shutdown may wait 10 s
    EXPECT_EQ(shelf.leases(), 0u);
  }
}

TEST(GrpcPeersTest, HelloTellsWhoIsThere) {
  TestShelf shelf;
  const auto credentials = job_credentials().front();
  const Hello hello{
      .nonce = 77, .hosts = 4, .job = "test", .card = {.host = 3, .learners = 2, .memory = 5, .disk = 6, .name = "me"}};
  const HelloAnswer answer{.nonce = 9, .cards = {PeerCard{.learners = 4, .name = "it"}, PeerCard{}}};
  auto server = GrpcServer::listen({.credentials = credentials}, shelf, [&](const Hello& got) {
    return got == hello ? answer : HelloAnswer{.refusal = "it is \"" + got.job + "\""};
  });
  ASSERT_TRUE(server);
  const std::vector<std::string> addresses = {"", (*server)->address()};
  auto peers = GrpcPeers::open({.addresses = addresses, .credentials = credentials, .hello = hello});
  ASSERT_TRUE(peers);
  const auto got = (*peers)->greet(1, now() + kPlenty);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, answer);
  auto other = GrpcPeers::open({.addresses = addresses, .credentials = credentials, .hello = {.job = "other"}});
  const auto refused = (*other)->greet(1, now() + kPlenty);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kMismatch);
  EXPECT_NE(refused.error().message.find("it is \"other\""), std::string::npos) << refused.error().message;
}

TEST(GrpcPeersTest, WhatCanNotBeAnAddressIsRefusedAtTheStart) {
  TestShelf shelf;
  const auto open = [](const std::string& address, bool secure) {
    const auto credentials = secure ? std::optional(job_credentials().front()) : std::nullopt;
    const auto peers = GrpcPeers::open({.addresses = {address}, .credentials = credentials});
    return peers ? "" : peers.error().message;
  };
  for (const char* address :
       {"host", ":1", "host:", "host:0", "host:65536", "host:1x", "unix:/tmp/x:1", "a b:1", "h:1,i:2"}) {
    EXPECT_NE(open(address, true).find(address), std::string::npos) << address;
  }
  EXPECT_EQ(open("some-host.example:9470", true), "");
  EXPECT_EQ(open("[::1]:9470", false), "");
  EXPECT_NE(open("192.0.2.1:9470", false).find("credentials"), std::string::npos) << open("192.0.2.1:9470", false);
}

TEST(GrpcServerTest, BeyondThisMachineItListensOnlyWithCredentials) {
  TestShelf shelf;
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    const auto refused = GrpcServer::listen({.address = address}, shelf, welcome());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_NE(refused.error().message.find("--make-credentials"), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(GrpcServer::listen({.address = "0.0.0.0:0", .credentials = job_credentials().front()}, shelf, welcome()));
}

TEST(GrpcServerTest, APortThatIsTakenAndAnAddressThatIsNotOursAreClearErrors) {
  TestShelf shelf;
  const auto server = serve(shelf, std::nullopt);
  const auto second = GrpcServer::listen({.address = server->address()}, shelf, welcome());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kIo);
  EXPECT_NE(second.error().message.find("name another port"), std::string::npos) << second.error().message;
  const auto foreign =
      GrpcServer::listen({.address = "192.0.2.1:0", .credentials = job_credentials().front()}, shelf, welcome());
  ASSERT_FALSE(foreign);
  EXPECT_NE(foreign.error().message.find("192.0.2.1"), std::string::npos) << foreign.error().message;
}

}  // namespace
}  // namespace foreload
