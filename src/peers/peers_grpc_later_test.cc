// Samples that are on their way to the shelf when they are asked for.
#include <gtest/gtest.h>

#include <thread>

#include "peers/grpc_testing.h"
#include "peers/peers_grpc.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAnyPort = "127.0.0.1:0";
constexpr Duration kPromptly = kPlenty / 2;  // in tests where something else takes kPlenty

bool comes_true(const std::function<bool()>& condition, Duration within = kPlenty) {
  const Time limit = now() + within;
  while (!condition() && now() < limit) std::this_thread::sleep_for(1ms);
  return condition();
}

// It is asked for no more.
bool is_still(const TestShelf& shelf) {
  const std::uint64_t before = shelf.takes();
  std::this_thread::sleep_for(100ms);
  return shelf.takes() == before;
}

TEST(GrpcLaterTest, WhatIsOnItsWayIsAskedForAgainUntilItIsHere) {
  TestShelf shelf;
  for (SampleId id = 0; id < 4; ++id) shelf.put(id, 3'000'000 * id);
  shelf.delay(0, 5);
  shelf.delay(2, 5);
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials, kAnyPort, kPlenty);
  const auto peers = peers_at(server->address(), credentials);
  Wanted wanted;
  for (SampleId id = 0; id < 4; ++id) wanted.add(id, 3'000'000 * id);
  wanted.fetch_and_wait(*peers);
  EXPECT_TRUE(wanted.all(PeerResult::kHere));
  EXPECT_EQ(wanted.order(), (std::vector<std::size_t>{1, 3, 0, 2}));
  EXPECT_EQ(shelf.takes(), 2u + 2 * 6);
  const std::vector<PeerItem> items = {{0, 0}, {1, 3'000'000}, {2, 6'000'000}, {3, 9'000'000}};
  EXPECT_EQ(shelf.expected(), (std::vector<std::vector<PeerItem>>{items}));
}

TEST(GrpcLaterTest, WhatDoesNotComeInTimeIsAbsentAndTheRestHasComeBefore) {
  TestShelf shelf;
  for (SampleId id = 0; id < 10; ++id) shelf.put(id, 1'000);
  for (const SampleId id : {0, 5, 9}) shelf.delay(id, kForever);
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  Wanted wanted(0, 10, 1'000);
  const Time begin = now();
  wanted.fetch(*peers);
  wanted.wait(*peers, 7);
  EXPECT_EQ(wanted.count(PeerResult::kHere), 7u);
  wanted.wait(*peers, 10);
  EXPECT_GE(now() - begin, kLaterPatience);
  EXPECT_LT(now() - begin, kPlenty / 5);
  for (const SampleId id : {0, 5, 9}) EXPECT_EQ(wanted.result(id), PeerResult::kAbsent);
  EXPECT_TRUE(peers->take_warnings().empty());
  EXPECT_LT(shelf.takes(), 7u + 3 * 60);  // 0, 2, 6, 14, 30, … ms
  wanted.again();
  shelf.deliver();
  wanted.fetch_and_wait(*peers);  // the peer is as well as before
  EXPECT_TRUE(wanted.all(PeerResult::kHere));
}

TEST(GrpcLaterTest, ANearDeadlineIsAnsweredBeforeItIsOver) {
  TestShelf shelf;
  shelf.put(0, 1'000);
  shelf.delay(0, kForever);
  const auto server = serve(shelf, std::nullopt, kAnyPort, kPlenty);
  bool answered = false;
  for (int i = 0; i < 10 && !answered; ++i) {  // a machine without time may miss some
    const auto peers = peers_at(server->address(), std::nullopt);
    Wanted wanted(0, 1, 1'000);
    wanted.fetch_and_wait(*peers, now() + 400ms);
    answered = wanted.all(PeerResult::kAbsent);
  }
  EXPECT_TRUE(answered);
}

TEST(GrpcLaterTest, CallsThatWaitHoldUpNobody) {
  constexpr std::size_t kWaiting = 60;  // of the 64 that a connection carries
  TestShelf shelf;
  for (SampleId id = 0; id <= kWaiting; ++id) shelf.put(id, 10'000);
  for (SampleId id = 0; id < kWaiting; ++id) shelf.delay(id, kForever);
  const auto credentials = job_credentials().front();
  const auto server = serve(shelf, credentials, kAnyPort, kPlenty);
  const auto peers = peers_at(server->address(), credentials);
  std::vector<Content> memory(kWaiting + 1, Content(10'000));
  const Time deadline = now() + kPlenty;
  for (SampleId id = 0; id <= kWaiting; ++id) {
    const PeerWant want{.id = id, .into = memory[id], .token = id};
    peers->fetch(0, kTestKey, std::span(&want, 1), deadline);
  }
  std::vector<PeerEnd> ends;
  peers->wait(ends, deadline);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].token, kWaiting);
  EXPECT_TRUE(comes_true([&] { return shelf.expected().size() == kWaiting + 1; }));
  shelf.deliver();
  while (ends.size() <= kWaiting && now() < deadline) peers->wait(ends, deadline);
  ASSERT_EQ(ends.size(), kWaiting + 1);
  for (const PeerEnd& end : ends) {
    EXPECT_EQ(end.result, PeerResult::kHere);
    EXPECT_EQ(memory[end.token], test_sample(end.token, 10'000));
  }
}

TEST(GrpcLaterTest, MoreCallsThanAConnectionCarriesMayWait) {
  constexpr std::size_t kCalls = 200;
  TestShelf shelf;
  shelf.put(0, 1'000);
  shelf.delay(0, kForever);
  const auto server = serve(shelf, std::nullopt);
  const auto peers = peers_at(server->address(), std::nullopt);
  std::vector<Content> memory(kCalls, Content(1'000));
  const Time deadline = now() + kPlenty;
  for (std::size_t i = 0; i < kCalls; ++i) {
    const PeerWant want{.id = 0, .into = memory[i], .token = i};
    peers->fetch(0, kTestKey, std::span(&want, 1), deadline);
  }
  std::vector<PeerEnd> ends;
  while (ends.size() < kCalls && now() < deadline) peers->wait(ends, deadline);
  ASSERT_EQ(ends.size(), kCalls);
  for (const PeerEnd& end : ends) EXPECT_EQ(end.result, PeerResult::kAbsent);
}

// 64 calls, of which each has got one sample and waits for another.
class WaitingCalls {
 public:
  static constexpr std::size_t kCalls = 64;

  WaitingCalls() {
    shelf_.put(0, 1'000);
    shelf_.put(1, 1'000);
    shelf_.delay(1, kForever);
    server_ = serve(shelf_, credentials_, kAnyPort, kPlenty);
    peers_ = peers_at(server_->address(), credentials_);
    for (std::size_t i = 0; i < kCalls; ++i) {
      const std::array<PeerWant, 2> wants{PeerWant{.id = 0, .into = memory_[2 * i], .token = 2 * i},
                                          PeerWant{.id = 1, .into = memory_[2 * i + 1], .token = 2 * i + 1}};
      peers_->fetch(0, kTestKey, wants, now() + kPlenty);
    }
    wait(kCalls);
    for (const PeerEnd& end : ends_) EXPECT_EQ(end.result, PeerResult::kHere);
  }
  void wait(std::size_t ends) {
    const Time limit = now() + kPlenty;
    while (ends_.size() < ends && now() < limit) peers_->wait(ends_, limit);
    EXPECT_EQ(ends_.size(), ends);
  }

  const TestShelf& shelf() const { return shelf_; }
  std::span<const PeerEnd> ends() const { return ends_; }
  void destroy_server() { server_.reset(); }
  void destroy_peers() { peers_.reset(); }

 private:
  const PeerCredentials credentials_ = job_credentials().front();
  std::vector<Content> memory_ = std::vector<Content>(2 * kCalls, Content(1'000));
  TestShelf shelf_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<GrpcPeers> peers_;
  std::vector<PeerEnd> ends_;
};

TEST(GrpcLaterTest, AServerEndsAtOnceWhileCallsWait) {
  WaitingCalls calls;
  const Time begin = now();
  calls.destroy_server();
  EXPECT_LT(now() - begin, kPromptly);
  EXPECT_EQ(calls.shelf().leases(), 0u);
  calls.wait(2 * WaitingCalls::kCalls);
  for (const PeerEnd& end : calls.ends().subspan(WaitingCalls::kCalls)) {
    EXPECT_EQ(end.result, PeerResult::kUnreachable);
  }
}

TEST(GrpcLaterTest, CallsWhoseClientIsGoneWaitNoLonger) {
  WaitingCalls calls;
  EXPECT_TRUE(comes_true([&] { return !is_still(calls.shelf()); }));
  const Time begin = now();
  calls.destroy_peers();
  EXPECT_TRUE(comes_true([&] { return is_still(calls.shelf()); }, kPromptly));
  EXPECT_LT(now() - begin, kPromptly);
}

TEST(GrpcLaterTest, BothSidesEndWheneverTheyWill) {
  for (int round = 0; round < 50; ++round) {
    TestShelf shelf;
    for (SampleId id = 0; id < 20; ++id) shelf.put(id, 1'000);
    for (SampleId id = 0; id < 20; id += 2) shelf.delay(id, 1 + id / 2);
    auto server = serve(shelf, std::nullopt, kAnyPort, kPlenty);
    auto peers = peers_at(server->address(), std::nullopt);
    const std::vector<Wanted> calls(10, Wanted(0, 20, 1'000));
    for (const Wanted& wanted : calls) wanted.fetch(*peers);
    std::this_thread::sleep_for(round * 1ms);
    if (round % 2 == 0) server.reset();
    peers.reset();
    server.reset();
    EXPECT_EQ(shelf.leases(), 0u);
  }
}

}  // namespace
}  // namespace foreload
