#include "peers/meeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "base/clock.h"
#include "plan/test_statistics.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

PeerCard card_of(HostIndex host) {
  return {.host = host, .learners = host + 1, .memory = 100 + host, .name = "node" + std::to_string(host) + ":7433"};
}

Hello hello_of(HostIndex host, std::uint32_t hosts = 3) {
  return {.nonce = 1000 + host, .hosts = hosts, .job = "train", .card = card_of(host)};
}

// As it comes over the wire.
HelloAnswer greeted(Meeting& meeting, const Hello& hello) {
  const auto answer = parse_hello_answer(encode(meeting.greet(hello)));
  EXPECT_TRUE(answer);
  return answer.value_or(HelloAnswer());
}

void expect_words(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << message << " lacks " << word;
}

TEST(MeetingTest, WhoSaysHelloIsToldAllCardsOnesOwnFirst) {
  Meeting meeting(hello_of(1));
  EXPECT_FALSE(meeting.complete());
  const HelloAnswer first = greeted(meeting, hello_of(2));
  EXPECT_EQ(first, (HelloAnswer{.nonce = 1001, .cards = {card_of(1), card_of(2)}}));
  EXPECT_FALSE(meeting.complete());
  EXPECT_EQ(meeting.cards()[0], std::nullopt);
  EXPECT_EQ(meeting.cards()[2], card_of(2));
  const HelloAnswer second = greeted(meeting, hello_of(0));
  EXPECT_EQ(second.cards, (std::vector{card_of(1), card_of(0), card_of(2)}));
  EXPECT_TRUE(meeting.complete());
  EXPECT_TRUE(meeting.take_warnings().empty());
}

TEST(MeetingTest, TheRosterIsTheCardsInOrderOnEveryHost) {
  Meeting first(hello_of(0));
  Meeting last(hello_of(2));
  ASSERT_TRUE(first.greet(hello_of(1)).refusal.empty());
  ASSERT_TRUE(last.learn(0, first.greet(hello_of(2))));
  const auto a = first.roster();
  const auto b = last.roster();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->hash(), b->hash());
  EXPECT_EQ(a->world(), 6u);
  EXPECT_EQ(a->hosts()[1].name, "node1:7433");
  EXPECT_EQ(a->hosts()[1].memory, 101u);
}

TEST(MeetingTest, AHostAloneHasMetEverybody) {
  const Meeting meeting(hello_of(0, 1));
  EXPECT_TRUE(meeting.complete());
  EXPECT_EQ(meeting.roster()->hosts().size(), 1u);
}

TEST(MeetingTest, AHostThatComesBackAsItWasIsWelcomeAtAnyTime) {
  Meeting meeting(hello_of(0));
  for (const HostIndex host : {1, 2, 1}) {
    Hello hello = hello_of(host);
    hello.nonce += meeting.complete() ? 100 : 0;
    EXPECT_EQ(greeted(meeting, hello).refusal, "");
  }
  EXPECT_EQ(greeted(meeting, hello_of(2)).cards.size(), 3u);
  EXPECT_TRUE(meeting.take_warnings().empty());
}

TEST(MeetingTest, AnotherCardIsRefusedWithBothValuesAndWhatToDo) {
  Meeting meeting(hello_of(0));
  ASSERT_EQ(greeted(meeting, hello_of(1)).refusal, "");
  const auto refusal = [&](auto change) {
    Hello hello = hello_of(1);
    hello.nonce = 5;
    change(hello.card);
    const HelloAnswer answer = greeted(meeting, hello);
    EXPECT_TRUE(answer.cards.empty());
    return answer.refusal;
  };
  expect_words(refusal([](PeerCard& card) { card.learners = 8; }),
               {"host 1 (node1:7433)", "2 learners", "8 learners", "--learners", "anew"});
  expect_words(refusal([](PeerCard& card) { card.memory = 77; }), {"memory 101", "memory 77", "--memory", "anew"});
  expect_words(refusal([](PeerCard& card) { card.disk = 77; }), {"disk 0", "disk 77", "anew"});
  expect_words(refusal([](PeerCard& card) { card.name = "other:7433"; }),
               {"node1:7433", "other:7433", "index of its own", "anew"});
  EXPECT_EQ(meeting.cards()[1], card_of(1));
  const auto warnings = meeting.take_warnings();
  ASSERT_EQ(warnings.size(), 4u);
  expect_words(warnings[3], {"host 1 at other:7433", "refused"});
}

TEST(MeetingTest, StrangersAreRefusedInWords) {
  Meeting meeting(hello_of(0));
  const auto refusal = [&](auto change) {
    Hello hello = hello_of(1);
    change(hello);
    return greeted(meeting, hello).refusal;
  };
  expect_words(refusal([](Hello& hello) { hello.job = "eval"; }), {"\"train\"", "\"eval\"", "port"});
  expect_words(refusal([](Hello& hello) { hello.hosts = 4; }), {"3 hosts", "not 4", "same hosts"});
  expect_words(refusal([](Hello& hello) { hello.card.host = 3; }), {"no host 3"});
  expect_words(refusal([](Hello& hello) { hello.card.host = ~0u; }), {"no host"});
  expect_words(refusal([](Hello& hello) { hello.card.host = 0; }), {"host 0 itself", "node0:7433", "--host-index"});
  expect_words(refusal([](Hello& hello) { hello.nonce = 1000; }), {"this agent itself"});
  expect_words(refusal([](Hello& hello) { hello.protocol = 9; }), {"version 2", "version 9"});
  for (const char* name : {"", "node", "node:0", "unix:/tmp/x", "a b:1"}) {
    expect_words(refusal([&](Hello& hello) { hello.card.name = name; }), {"no address"});
  }
  EXPECT_EQ(meeting.cards()[1], std::nullopt);
  EXPECT_EQ(greeted(meeting, hello_of(1)).refusal, "");
}

TEST(MeetingTest, OfAnotherVersionOnlyTheVersionIsTold) {
  Meeting meeting(hello_of(0));
  EXPECT_NE(greeted(meeting, Hello{.protocol = 9, .card = {}}).refusal, "");
  const auto warnings = meeting.take_warnings();
  ASSERT_EQ(warnings.size(), 1u);
  expect_words(warnings[0], {"version 9", "version 2", "same Foreload"});
  EXPECT_EQ(warnings[0].find("host 0"), std::string::npos) << warnings[0];
}

TEST(MeetingTest, WordsForTheUserComeOnceAndAreBounded) {
  Meeting meeting(hello_of(0));
  Hello hello = hello_of(1);
  for (int i = 0; i < 1'000; ++i) {
    hello.job = "job" + std::to_string(i);
    (void)meeting.greet(hello);
    (void)meeting.greet(hello);
  }
  const auto warnings = meeting.take_warnings();
  EXPECT_EQ(warnings.size(), 100u);
  EXPECT_NE(warnings[0], warnings[1]);
  EXPECT_TRUE(meeting.take_warnings().empty());
}

TEST(MeetingTest, TwoAgentsThatTakeTurnsAsOneHostAreNoticed) {
  Meeting meeting(hello_of(0));
  Hello one = hello_of(1);
  Hello other = hello_of(1);
  other.nonce = 5;
  EXPECT_EQ(greeted(meeting, one).refusal, "");
  EXPECT_EQ(greeted(meeting, one).refusal, "");
  EXPECT_EQ(greeted(meeting, other).refusal, "");
  EXPECT_TRUE(meeting.take_warnings().empty()) << "it was started again";
  EXPECT_EQ(greeted(meeting, one).refusal, "");
  const auto warnings = meeting.take_warnings();
  ASSERT_EQ(warnings.size(), 1u);
  expect_words(warnings[0], {"two agents", "host 1 (node1:7433)"});
}

TEST(MeetingTest, AnAnswerOfAnotherHostOrWithAnotherCardTeachesNothing) {
  Meeting meeting(hello_of(0));
  const auto problem = [&](HostIndex asked, const HelloAnswer& answer) {
    const Status status = meeting.learn(asked, answer);
    EXPECT_FALSE(status);
    if (status) return std::string();
    EXPECT_EQ(status.error().code, Code::kMismatch);
    return status.error().message;
  };
  expect_words(problem(1, {}), {"does not say who it is"});
  expect_words(problem(1, {.cards = {card_of(2), card_of(1)}}), {"host 2", "not host 1", "same order"});
  expect_words(problem(1, {.cards = {card_of(1), card_of(3)}}), {"no host 3"});
  PeerCard moved = card_of(0);
  moved.name = "elsewhere:7433";
  expect_words(problem(1, {.cards = {card_of(1), moved}}), {"host 0 is at node0:7433", "elsewhere:7433"});
  EXPECT_EQ(meeting.cards()[1], std::nullopt);
  ASSERT_TRUE(meeting.learn(1, {.cards = {card_of(1)}}));
  PeerCard larger = card_of(1);
  larger.learners = 9;
  expect_words(problem(2, {.cards = {card_of(2), larger}}), {"2 learners", "9 learners"});
  EXPECT_EQ(meeting.cards()[2], std::nullopt);
}

TEST(MeetingTest, ANameWithoutPortIsCompletedByTheServer) {
  Hello own = hello_of(0);
  own.card.name = "10.0.0.1:0";
  Meeting meeting(own);
  expect_words(greeted(meeting, hello_of(1)).refusal, {"does not listen yet"});
  meeting.served("0.0.0.0:40123");
  EXPECT_EQ(meeting.own().card.name, "10.0.0.1:40123");
  EXPECT_EQ(greeted(meeting, hello_of(1)).cards.front().name, "10.0.0.1:40123");
}

TEST(MeetingTest, WaitEndsWhenTheLastCardIsKnownOrAtItsTime) {
  Meeting meeting(hello_of(0, 2));
  const Time until = now() + 20ms;
  meeting.wait(until);
  EXPECT_GE(now(), until);
  std::thread other([&] { (void)meeting.greet(hello_of(1, 2)); });
  meeting.wait(kNever);
  other.join();
  EXPECT_TRUE(meeting.complete());
}

// Any hosts talk to any in any order; some are started again and know nothing then.
TEST(MeetingTest, WhoeverTalksToWhomAllKnowTheSameInTheEnd) {
  std::mt19937_64 random(fresh_seed());
  for (int round = 0; round < 200; ++round) {
    const auto hosts = static_cast<std::uint32_t>(2 + random() % 9);
    std::vector<std::unique_ptr<Meeting>> all;
    for (HostIndex host = 0; host < hosts; ++host) all.push_back(std::make_unique<Meeting>(hello_of(host, hosts)));
    const auto is_open = [](const auto& meeting) { return !meeting->complete(); };
    for (int step = 0; step < 100'000 && std::any_of(all.begin(), all.end(), is_open); ++step) {
      const auto from = static_cast<HostIndex>(random() % hosts);
      const auto to = static_cast<HostIndex>(random() % hosts);
      if (from == to) continue;
      if (step < 1'000 && random() % 8 == 0) {
        Hello again = hello_of(from, hosts);
        again.nonce = random();
        all[from] = std::make_unique<Meeting>(again);
      }
      const HelloAnswer answer = greeted(*all[to], all[from]->own());
      ASSERT_EQ(answer.refusal, "");
      ASSERT_TRUE(all[from]->learn(to, answer));
    }
    const auto hash = all[0]->roster()->hash();
    for (const auto& meeting : all) ASSERT_EQ(meeting->roster()->hash(), hash);
  }
}

}  // namespace
}  // namespace foreload
