#include "peers/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace foreload {
namespace {

// A machine of the test's making.
struct Around {
  std::map<std::string, std::string> environment{};
  std::vector<std::string> own = {"127.0.0.1", "10.0.0.1"};
  std::map<std::string, std::vector<std::string>> names{};  // numbers are what they are
  std::string way = "10.0.0.1";                             // empty: there is none

  Surroundings make() const {
    return {.variable = [this](const std::string& name) -> std::optional<std::string> {
              const auto found = environment.find(name);
              return found != environment.end() ? std::optional(found->second) : std::nullopt;
            },
            .addresses = [this] { return own; },
            .look_up = [this](const std::string& host) -> std::vector<std::string> {
              const auto found = names.find(host);
              if (found != names.end()) return found->second;
              const bool numbers = host.find_first_not_of("0123456789.:") == std::string::npos;
              return numbers ? std::vector{host} : std::vector<std::string>();
            },
            .way_to = [this](const std::string& host) -> Result<std::string> {
              if (way.empty()) return Error{Code::kIo, "there is no way to \"" + host + "\""};
              return way;
            }};
  }
  Places find(const PlacesOptions& options = {}) const {
    auto found = find_places(options, make());
    EXPECT_TRUE(found) << found.error().message;
    return found ? std::move(*found) : Places();
  }
  std::string problem(const PlacesOptions& options = {}) const {
    const auto found = find_places(options, make());
    EXPECT_FALSE(found);
    return found ? "" : found.error().message;
  }
};

using Addresses = std::vector<std::string>;

void expect_words(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
}

TEST(PlacesTest, AListNamesAllHostsAndThisOneIsWhoseAddressItHas) {
  const Around around;
  const Places places = around.find({.peers = "10.0.0.2, 10.0.0.1:7000,[fd00::3]:7001,node4", .learners = 2});
  EXPECT_EQ(places.addresses, (Addresses{"10.0.0.2:7433", "", "[fd00::3]:7001", "node4:7433"}));
  EXPECT_EQ(places.self, 1u);
  EXPECT_EQ(places.name, "10.0.0.1:7000");
  EXPECT_EQ(places.listen, "10.0.0.1:7000");
  EXPECT_EQ(places.learners, 2u);
}

TEST(PlacesTest, AListOfOneHostIsAList) {
  const Places places = Around().find({.peers = "10.0.0.1", .learners = 0});
  EXPECT_EQ(places.addresses, Addresses{""});
  EXPECT_EQ(places.name, "10.0.0.1:7433");
}

TEST(PlacesTest, NoneOrSeveralAddressesOfThisMachineNeedAnIndex) {
  const Around around;
  expect_words(around.problem({.peers = "10.0.0.8,10.0.0.9", .learners = 1}),
               {"none", "0 = 10.0.0.8:7433", "1 = 10.0.0.9:7433", "--host-index"});
  const std::string twice = "127.0.0.1:7001,127.0.0.2:7001,10.0.0.7";
  expect_words(around.problem({.peers = twice, .learners = 1}), {"2 of --peers", "--host-index"});
  const Places places = around.find({.peers = twice, .host = 1, .learners = 1});
  EXPECT_EQ(places.addresses, (Addresses{"127.0.0.1:7001", "", "10.0.0.7:7433"}));
  EXPECT_EQ(places.listen, "127.0.0.2:7001");
  expect_words(around.problem({.peers = twice, .host = 3, .learners = 1}), {"--host-index is 3", "0 to 2"});
}

TEST(PlacesTest, ListsThatCanNotBeMeantAreRefusedWithWhatIsWrong) {
  const Around around;
  expect_words(around.problem({.peers = "a,,b"}), {"--peers", "\"\""});
  expect_words(around.problem({.peers = "a,b,"}), {"--peers"});
  expect_words(around.problem({.peers = "a,b:x"}), {"b:x", "ports"});
  expect_words(around.problem({.peers = "a,b:0"}), {"b:0", "port"});
  expect_words(around.problem({.peers = "a,fd00::1"}), {"fd00::1", "brackets"});
  expect_words(around.problem({.peers = "a,b,a:7433"}), {"a:7433", "twice"});
  std::string many = "h0";
  for (std::size_t i = 1; i <= Roster::kMostHosts; ++i) many += ",h" + std::to_string(i);
  expect_words(around.problem({.peers = many}), {"4096"});
}

TEST(PlacesTest, TheLaunchersIndexCountsUnlessTheAddressIsAnotherMachines) {
  Around around;
  around.environment = {{"SLURM_NODEID", "1"}, {"LOCAL_WORLD_SIZE", "4"}};
  EXPECT_EQ(around.find({.peers = "10.0.0.2,10.0.0.1"}).self, 1u);
  EXPECT_EQ(around.find({.peers = "10.0.0.1,nobody-knows-it"}).self, 1u) << "names may be known to others only";
  expect_words(around.problem({.peers = "10.0.0.1,10.0.0.2"}), {"SLURM_NODEID", "10.0.0.2:7433", "--host-index"});
  EXPECT_EQ(around.find({.peers = "10.0.0.1,10.0.0.2", .host = 1}).self, 1u) << "what was written counts";
  around.environment["GROUP_RANK"] = "0";
  EXPECT_EQ(around.find({.peers = "10.0.0.1,10.0.0.2"}).self, 0u);
  around.environment["GROUP_RANK"] = "2";
  expect_words(around.problem({.peers = "10.0.0.1,10.0.0.2"}), {"GROUP_RANK is 2", "0 to 1"});
  around.environment["GROUP_RANK"] = "first";
  expect_words(around.problem({.peers = "10.0.0.1,10.0.0.2"}), {"GROUP_RANK=\"first\"", "no number"});
}

Around torchrun(const std::string& group, const std::string& master = "10.0.0.9") {
  Around around;
  around.environment = {{"GROUP_RANK", group},  {"GROUP_WORLD_SIZE", "3"},       {"LOCAL_WORLD_SIZE", "8"},
                        {"WORLD_SIZE", "24"},   {"MASTER_ADDR", master},         {"MASTER_PORT", "29500"},
                        {"SLURM_NODEID", "77"}, {"SLURM_JOB_NODELIST", "x[1-3]"}};
  return around;
}

TEST(PlacesTest, UnderTorchrunHostZeroIsKnownAndListensForAll) {
  const Places first = torchrun("0", "10.0.0.1").find();
  EXPECT_EQ(first.addresses, (Addresses{"", "", ""}));
  EXPECT_EQ(first.self, 0u);
  EXPECT_EQ(first.name, "10.0.0.1:7433");
  EXPECT_EQ(first.listen, "0.0.0.0:7433");
  EXPECT_EQ(first.learners, 8u);
  EXPECT_EQ(torchrun("0", "fd00::1").find().listen, "[::]:7433");
  EXPECT_EQ(torchrun("0", "fd00::1").find().name, "[fd00::1]:7433");
  EXPECT_EQ(torchrun("0", "localhost").find().listen, "localhost:7433") << "needs no credentials";
  EXPECT_EQ(torchrun("0").find({.listen = "10.0.0.1"}).listen, "10.0.0.1:7433");
  expect_words(torchrun("0").problem({.listen = "0.0.0.0:9000"}), {"host 0", "10.0.0.9:7433", "--peers"});
}

TEST(PlacesTest, UnderTorchrunTheOthersListenWhereHostZeroSeesThem) {
  const Places other = torchrun("2").find();
  EXPECT_EQ(other.addresses, (Addresses{"10.0.0.9:7433", "", ""}));
  EXPECT_EQ(other.self, 2u);
  EXPECT_EQ(other.name, "10.0.0.1:7433") << "the same port after a restart";
  EXPECT_EQ(other.listen, other.name);
  const Places written = torchrun("2").find({.listen = "0.0.0.0:9000"});
  EXPECT_EQ(written.listen, "0.0.0.0:9000");
  EXPECT_EQ(written.name, "10.0.0.1:9000");
  EXPECT_EQ(torchrun("2").find({.listen = "10.1.1.1:9000"}).name, "10.1.1.1:9000");
  expect_words(torchrun("2").problem({.listen = "::1"}), {"--listen ::1", "brackets"});
  Around six = torchrun("1", "fd00::9");
  six.way = "fd00::1";
  EXPECT_EQ(six.find().listen, "[fd00::1]:7433");
  EXPECT_EQ(six.find().addresses.front(), "[fd00::9]:7433");
}

TEST(PlacesTest, BesideHostZeroOnItsMachineAnyPortIsTaken) {
  EXPECT_EQ(torchrun("1", "10.0.0.1").find().listen, "10.0.0.1:0");
  Around local = torchrun("1", "localhost");
  local.way = "127.0.0.1";
  EXPECT_EQ(local.find().listen, "127.0.0.1:0");
}

TEST(PlacesTest, HostsOfTorchrunAreCountedOneWayOrTheOther) {
  Around around = torchrun("1");
  around.environment.erase("GROUP_WORLD_SIZE");
  EXPECT_EQ(around.find().addresses.size(), 3u);
  around.environment["WORLD_SIZE"] = "25";
  expect_words(around.problem(), {"GROUP_WORLD_SIZE", "WORLD_SIZE", "--peers"});
  around.environment.erase("WORLD_SIZE");
  expect_words(around.problem(), {"GROUP_WORLD_SIZE", "--peers"});
  around.environment["GROUP_WORLD_SIZE"] = "4097";
  EXPECT_FALSE(find_places({}, around.make()));
}

TEST(PlacesTest, ARendezvousThatCanNotBeReachedIsNamed) {
  Around lost = torchrun("1", "nowhere");
  lost.way = "";
  expect_words(lost.problem(), {"nowhere:7433", "no way", "MASTER_ADDR"});
  expect_words(torchrun("1", "no where").problem(), {"MASTER_ADDR=\"no where\""});
  expect_words(torchrun("3").problem(), {"GROUP_RANK is 3", "0 to 2"});
}

Around slurm(const std::string& node) {
  Around around;
  around.environment = {{"SLURM_NODEID", node},
                        {"SLURM_JOB_NODELIST", "node[01-03,7],other"},
                        {"SLURM_STEP_TASKS_PER_NODE", "4(x4),3"},
                        {"SLURM_NTASKS_PER_NODE", "9"}};
  around.names = {{"node02", {"10.0.0.1"}}, {"node01", {"10.0.0.2"}}, {"other", {"127.0.1.1"}}};
  return around;
}

TEST(PlacesTest, SlurmsListNamesAllHosts) {
  const Places places = slurm("1").find();
  EXPECT_EQ(places.addresses, (Addresses{"node01:7433", "", "node03:7433", "node7:7433", "other:7433"}));
  EXPECT_EQ(places.self, 1u);
  EXPECT_EQ(places.name, "node02:7433");
  EXPECT_EQ(places.listen, "node02:7433");
  EXPECT_EQ(places.learners, 4u);
  EXPECT_EQ(slurm("4").find().learners, 3u);
}

TEST(PlacesTest, AStepOnSomeNodesCountsInsteadOfTheWholeJob) {
  Around around = slurm("0");
  around.environment["SLURM_STEP_NODELIST"] = "node[02-03]";
  EXPECT_EQ(around.find().addresses, (Addresses{"", "node03:7433"}));
}

TEST(PlacesTest, AHostThatCallsItselfLoopbackListensForAll) {
  EXPECT_EQ(slurm("4").find().name, "other:7433");
  EXPECT_EQ(slurm("4").find().listen, "0.0.0.0:7433");
  EXPECT_EQ(slurm("4").find({.listen = "10.0.0.1:7433"}).listen, "10.0.0.1:7433");
  Around local;
  local.names = {{"a", {"127.0.0.1"}}, {"b", {"127.0.0.1"}}};
  EXPECT_EQ(local.find({.peers = "a:1,b:2", .host = 1, .learners = 1}).listen, "b:2") << "all are on this machine";
}

TEST(PlacesTest, AnUnreadableNodeListIsNamed) {
  Around around = slurm("0");
  around.environment["SLURM_JOB_NODELIST"] = "node[01";
  expect_words(around.problem(), {"SLURM_JOB_NODELIST=\"node[01\"", "bracket", "--peers"});
  around.environment["SLURM_JOB_NODELIST"] = "node[1-5000]";
  expect_words(around.problem(), {"more than 4096", "--peers"});
}

TEST(PlacesTest, LearnersAreWrittenOrSaidByTheLauncher) {
  Around around;
  const PlacesOptions list{.peers = "10.0.0.1,10.0.0.2"};
  expect_words(around.problem(list), {"LOCAL_WORLD_SIZE", "--learners"});
  around.environment["SLURM_NTASKS_PER_NODE"] = "6";
  EXPECT_EQ(around.find(list).learners, 6u);
  around.environment["SLURM_STEP_TASKS_PER_NODE"] = "1(y2)";
  expect_words(around.problem(list), {"SLURM_STEP_TASKS_PER_NODE=\"1(y2)\"", "--learners"});
  around.environment["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_EQ(around.find(list).learners, 2u);
  around.environment["LOCAL_WORLD_SIZE"] = "70000";
  expect_words(around.problem(list), {"LOCAL_WORLD_SIZE", "70000", "65536"});
  EXPECT_EQ(around.find({.peers = list.peers, .learners = 0}).learners, 0u);
}

TEST(PlacesTest, NobodyWhoSaysWhereHostsAreIsAnErrorWithAllWays) {
  expect_words(Around().problem(), {"--peers", "MASTER_ADDR", "SLURM_JOB_NODELIST"});
}

TEST(SurroundingsTest, ThisMachineKnowsItselfAndTheWayToItself) {
  const Surroundings around = real_surroundings();
  EXPECT_EQ(around.look_up("127.0.0.1"), Addresses{"127.0.0.1"});
  EXPECT_TRUE(around.look_up("no such name!").empty());
  const auto way = around.way_to("127.0.0.1");
  ASSERT_TRUE(way) << way.error().message;
  EXPECT_EQ(*way, "127.0.0.1");
  EXPECT_FALSE(around.way_to("no such name!"));
  const auto own = around.addresses();
  EXPECT_NE(std::find(own.begin(), own.end(), "127.0.0.1"), own.end());
  EXPECT_FALSE(around.variable("FORELOAD_NOT_SET"));
  ::setenv("FORELOAD_TEST_SET", "x", 1);
  EXPECT_EQ(around.variable("FORELOAD_TEST_SET"), "x");
  ::setenv("FORELOAD_TEST_SET", "", 1);
  EXPECT_FALSE(around.variable("FORELOAD_TEST_SET"));
}

}  // namespace
}  // namespace foreload
