#include "peers/meet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "peers/grpc_testing.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// What differs from host to host, and from test to test.
struct HostTraits {
  HostIndex host = 0;
  std::uint32_t hosts = 3;
  std::string listen = "127.0.0.1:0";
  std::uint64_t nonce = 0;  // 0: of its index
  std::uint32_t learners = 2;
  std::string job = "test";
  std::optional<PeerCredentials> credentials{};
  Duration patience = 50s;
};

// An agent as far as meeting goes: a server, the other hosts' addresses, and a thread that meets them.
class TestHost {
 public:
  explicit TestHost(HostTraits traits) : traits_(std::move(traits)) {
    const std::uint64_t nonce = traits_.nonce != 0 ? traits_.nonce : 100 + traits_.host;
    meeting_ = std::make_unique<Meeting>(
        Hello{.nonce = nonce,
              .hosts = traits_.hosts,
              .job = traits_.job,
              .card = {.host = traits_.host, .learners = traits_.learners, .memory = 1'000, .name = traits_.listen}});
    auto server = GrpcServer::listen({.address = traits_.listen, .credentials = traits_.credentials}, shelf_,
                                     [this](const Hello& hello) { return meeting_->greet(hello); });
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    meeting_->served(server_->address());
  }
  ~TestHost() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::string name() const { return server_->address(); }
  // Begins to meet whom it knows of.
  void start(std::vector<std::string> addresses) {
    addresses.resize(traits_.hosts);
    addresses[traits_.host].clear();
    auto peers = GrpcPeers::open(
        {.addresses = std::move(addresses), .credentials = traits_.credentials, .hello = meeting_->own()});
    ASSERT_TRUE(peers) << peers.error().message;
    peers_ = std::move(*peers);
    thread_ = std::thread([this] {
      met_.emplace(meet(*meeting_, *peers_,
                        {.stop = [this, limit = now() + 2 * kPlenty] { return stop_ || now() > limit; },
                         .told = [this](const std::string& line) { tell(line); },
                         .pause = 20ms,
                         .patience = traits_.patience,
                         .silence = 100ms}));
    });
  }
  // How it ended. REQUIRES: started, and it ends.
  Result<Met>& finish() {
    thread_.join();
    return *met_;
  }
  void stop() { stop_ = true; }
  Meeting& meeting() { return *meeting_; }
  GrpcPeers& peers() { return *peers_; }

  bool was_told(const std::string& words) {
    const Time limit = now() + kPlenty;
    while (now() < limit) {
      {
        MutexLock lock(mutex_);
        if (lines_.find(words) != std::string::npos) return true;
      }
      std::this_thread::sleep_for(5ms);
    }
    MutexLock lock(mutex_);
    ADD_FAILURE() << "no word of \"" << words << "\" in: " << lines_.substr(0, 2'000);
    return false;
  }

 private:
  void tell(const std::string& line) {
    MutexLock lock(mutex_);
    lines_ += line + "\n";
  }

  HostTraits traits_;
  TestShelf shelf_{};
  std::unique_ptr<Meeting> meeting_{};
  std::unique_ptr<GrpcServer> server_{};
  std::unique_ptr<GrpcPeers> peers_{};
  std::atomic<bool> stop_ = false;
  std::optional<Result<Met>> met_{};
  Mutex mutex_;
  std::string lines_ FORELOAD_GUARDED_BY(mutex_);
  std::thread thread_{};
};

using Hosts = std::vector<std::unique_ptr<TestHost>>;

Hosts make_hosts(std::uint32_t count, const std::optional<PeerCredentials>& credentials = std::nullopt) {
  Hosts hosts;
  for (HostIndex host = 0; host < count; ++host) {
    hosts.push_back(std::make_unique<TestHost>(
        HostTraits{.host = host, .hosts = count, .learners = host, .credentials = credentials}));
  }
  return hosts;
}

std::vector<std::string> names_of(const Hosts& hosts) {
  std::vector<std::string> names;
  for (const auto& host : hosts) names.push_back(host->name());
  return names;
}

// A hello may be lost with an old connection; then another is said.
bool is_reached(GrpcPeers& peers, HostIndex host) {
  for (const Time limit = now() + kPlenty; now() < limit;) {
    if (peers.greet(host, limit)) return true;
  }
  return false;
}

// All have the roster of make_hosts(), know where the others are, and reach them.
void expect_all_met(const Hosts& hosts) {
  for (HostIndex self = 0; self < hosts.size(); ++self) {
    const auto& met = hosts[self]->finish();
    ASSERT_TRUE(met) << met.error().message;
    ASSERT_EQ(met->roster.hosts().size(), hosts.size());
    for (HostIndex host = 0; host < hosts.size(); ++host) {
      EXPECT_EQ(met->roster.hosts()[host].learners, host);
      EXPECT_EQ(met->roster.hosts()[host].name, hosts[host]->name());
      EXPECT_EQ(met->addresses[host], host == self ? "" : hosts[host]->name());
    }
  }
  for (HostIndex self = 0; self < hosts.size(); ++self) {
    for (const std::size_t next : {1, 2}) {
      const auto host = static_cast<HostIndex>((self + next) % hosts.size());
      if (host == self) continue;
      EXPECT_TRUE(is_reached(hosts[self]->peers(), host));
    }
  }
}

TEST(MeetTest, HostsOfAListMeetWithTlsAndWithout) {
  for (const bool secure : {true, false}) {
    const Hosts hosts = make_hosts(3, secure ? std::optional(job_credentials().front()) : std::nullopt);
    for (const auto& host : hosts) host->start(names_of(hosts));
    expect_all_met(hosts);
  }
}

TEST(MeetTest, AtARendezvousOnlyTheFirstHostIsKnown) {
  const Hosts hosts = make_hosts(4, job_credentials().front());
  hosts[0]->start({});
  for (HostIndex host = 1; host < 4; ++host) hosts[host]->start({hosts[0]->name()});
  expect_all_met(hosts);
}

TEST(MeetTest, ManyHostsMeetInRoundsOfSome) {
  const Hosts hosts = make_hosts(20);
  for (const auto& host : hosts) host->start(names_of(hosts));
  expect_all_met(hosts);
}

TEST(MeetTest, HostsThatAreNotThereDoNotKeepOneFromTheOthers) {
  TestHost one({.host = 0, .hosts = 41});
  const TestHost last({.host = 40, .hosts = 41});
  std::vector<std::string> addresses = {""};
  for (int port = 1; port < 40; ++port) addresses.push_back("127.0.0.1:" + std::to_string(port));
  addresses.push_back(last.name());
  one.start(addresses);
  EXPECT_TRUE(one.was_told("waiting for 39 of 41 hosts: 127.0.0.1:1 ("));
  EXPECT_TRUE(one.was_told(" and 34 more"));
}

TEST(MeetTest, AHostThatComesLateIsWaitedForAndNamed) {
  const std::string late = [] {
    TestShelf shelf;
    return serve(shelf, std::nullopt)->address();  // and it is free again
  }();
  Hosts hosts;
  for (HostIndex host = 0; host < 2; ++host) {
    hosts.push_back(std::make_unique<TestHost>(HostTraits{.host = host, .learners = host}));
  }
  const std::vector<std::string> names = {hosts[0]->name(), hosts[1]->name(), late};
  for (const auto& host : hosts) host->start(names);
  for (const auto& host : hosts) {
    EXPECT_TRUE(host->was_told("waiting for 1 of 3 hosts: " + late + " (it can not be reached ("));
    EXPECT_TRUE(host->was_told("refused"));  // the connection
  }
  hosts.push_back(std::make_unique<TestHost>(HostTraits{.host = 2, .listen = late, .learners = 2}));
  hosts[2]->start(names);
  expect_all_met(hosts);
}

TEST(MeetTest, TheFirstHostOfARendezvousMayComeLast) {
  const std::string first = [] {
    TestShelf shelf;
    return serve(shelf, std::nullopt)->address();
  }();
  Hosts hosts(3);
  for (const HostIndex host : {2, 1}) {
    hosts[host] = std::make_unique<TestHost>(HostTraits{.host = host, .learners = host});
    hosts[host]->start({first});
    EXPECT_TRUE(hosts[host]->was_told("waiting for 2 of 3 hosts: " + first));
  }
  EXPECT_TRUE(hosts[2]->was_told("host 1 (it has not come yet)"));
  hosts[0] = std::make_unique<TestHost>(HostTraits{.host = 0, .listen = first, .learners = 0});
  hosts[0]->start({});
  expect_all_met(hosts);
}

TEST(MeetTest, AHostThatIsStartedAgainLearnsAllFromAnybody) {
  for (const HostIndex again : {1u, 0u}) {
    Hosts hosts = make_hosts(3);
    hosts[0]->start({});
    for (HostIndex host = 1; host < 3; ++host) hosts[host]->start({hosts[0]->name()});
    std::vector<std::string> addresses;
    for (const auto& host : hosts) {
      ASSERT_TRUE(host->finish());
      addresses.push_back(host->name());
    }
    hosts[again].reset();
    TestHost back({.host = again, .listen = addresses[again], .nonce = 9, .learners = again});
    // Host 0 knows nobody; who misses it asks for it sooner or later.
    back.start(again == 0 ? std::vector<std::string>() : std::vector{addresses[0]});
    if (again == 0) {
      ASSERT_TRUE(is_reached(hosts[1]->peers(), 0));
    }
    const auto& met = back.finish();
    ASSERT_TRUE(met) << met.error().message;
    EXPECT_EQ(met->roster.hosts()[2].name, addresses[2]);
    EXPECT_EQ(met->addresses[2], addresses[2]);
    EXPECT_TRUE(is_reached(back.peers(), 2));
  }
}

TEST(MeetTest, AHostThatComesBackWithAnotherCardIsToldWhy) {
  Hosts hosts = make_hosts(2);
  for (const auto& host : hosts) host->start(names_of(hosts));
  const auto names = names_of(hosts);
  expect_all_met(hosts);
  hosts[1].reset();
  TestHost back({.host = 1, .hosts = 2, .listen = names[1], .nonce = 9, .learners = 5, .patience = 0s});
  back.start(names);
  const auto& met = back.finish();
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, Code::kMismatch);
  EXPECT_NE(met.error().message.find("peer " + names[0] + ": it refuses this host"), std::string::npos)
      << met.error().message;
  EXPECT_NE(met.error().message.find("1 learner, memory 1000, disk 0, and not 5 learners"), std::string::npos)
      << met.error().message;
  EXPECT_EQ(hosts[0]->meeting().take_warnings().size(), 1u);
}

TEST(MeetTest, AnotherJobsAgentRefusesAndIsNotMet) {
  TestHost one({.host = 0, .hosts = 2});
  TestHost other({.host = 1, .hosts = 2, .job = "eval", .patience = 200ms});
  one.start({"", other.name()});
  EXPECT_TRUE(one.was_told("its job is \"eval\", and not \"test\""));
  other.start({one.name()});
  EXPECT_TRUE(one.was_told("host 1 at " + other.name() + " said hello and was refused"));
  const auto& met = other.finish();
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("its job is \"test\", and not \"eval\""), std::string::npos)
      << met.error().message;
  one.stop();
  const auto& stopped = one.finish();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  EXPECT_NE(stopped.error().message.find("waiting for 1 of 2 hosts: " + other.name()), std::string::npos)
      << stopped.error().message;
}

TEST(MeetTest, AnAgentOfAnEarlierJobIsWaitedFor) {
  TestHost one({.host = 0, .hosts = 2});
  auto old = std::make_unique<TestHost>(HostTraits{.host = 1, .hosts = 2, .job = "earlier"});
  const std::string address = old->name();
  one.start({"", address});
  EXPECT_TRUE(one.was_told("earlier"));
  old.reset();
  TestHost next({.host = 1, .hosts = 2, .listen = address, .nonce = 9});
  next.start({one.name()});
  EXPECT_TRUE(one.finish());
  EXPECT_TRUE(next.finish());
}

TEST(MeetTest, TwoHostsOfOneIndexAreFound) {
  TestHost first({.host = 0});
  TestHost one({.host = 1, .patience = 0s});
  TestHost two({.host = 1, .nonce = 9, .patience = 0s});
  first.start({});
  one.start({first.name()});
  EXPECT_TRUE(one.was_told("waiting for 1 of 3 hosts: host 2"));
  two.start({first.name()});
  const auto& met = two.finish();
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("host 1 is at " + one.name() + ", and not at " + two.name()), std::string::npos)
      << met.error().message;
  EXPECT_TRUE(first.was_told("host 1 at " + two.name() + " said hello and was refused"));
}

TEST(MeetTest, ListsInAnotherOrderAreFound) {
  TestHost one({.host = 0, .hosts = 2, .patience = 0s});
  TestHost two({.host = 0, .hosts = 2, .nonce = 9, .patience = 0s});
  one.start({"", two.name()});
  const auto& met = one.finish();
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("it is host 0 itself, at " + two.name()), std::string::npos)
      << met.error().message;
}

TEST(MeetTest, AListThatLeadsBackToOneselfIsFound) {
  TestHost one({.host = 0, .hosts = 2, .patience = 0s});
  one.start({"", one.name()});
  const auto& met = one.finish();
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("this agent itself"), std::string::npos) << met.error().message;
}

TEST(MeetTest, WithoutTheJobsCredentialsNobodyIsMetAndTheReasonIsTold) {
  TestHost one({.host = 0, .hosts = 2, .credentials = job_credentials().front()});
  TestHost other({.host = 1, .hosts = 2, .credentials = job_credentials().front()});
  one.start({"", other.name()});
  other.start({one.name()});
  EXPECT_TRUE(one.was_told("handshake"));
  EXPECT_TRUE(other.was_told("handshake"));
}

}  // namespace
}  // namespace foreload
