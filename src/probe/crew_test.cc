#include "probe/crew.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>

namespace foreload {
namespace {

using namespace std::chrono_literals;

using Lines = std::vector<std::string>;

TEST(CrewTest, AnswersComeInTheOrderOfTheCommands) {
  auto crew =
      Crew::start({{"sh", "-c", "while read x; do echo a$x; done"}, {"sh", "-c", "while read x; do echo b$x; done"}});
  ASSERT_TRUE(crew.ok()) << crew.error().message;
  for (int round = 0; round < 3; ++round) {
    const auto answers = crew->ask("1", 20s);
    ASSERT_TRUE(answers.ok()) << answers.error().message;
    EXPECT_EQ(*answers, (Lines{"a1", "b1"}));
  }
  EXPECT_EQ(*crew->ask_one(1, "2", 20s), "b2");
}

TEST(CrewTest, WhoDiesIsAnErrorAndNoWait) {
  auto crew = Crew::start({{"cat"}, {"sh", "-c", "read x; exit 3"}});
  ASSERT_TRUE(crew.ok()) << crew.error().message;
  const auto answers = crew->ask("go", 20s);
  ASSERT_FALSE(answers.ok());
  EXPECT_EQ(answers.error().code, Code::kIo);
  EXPECT_NE(answers.error().message.find("process 2 of 2 has ended"), std::string::npos) << answers.error().message;
}

TEST(CrewTest, WhoSaysNothingIsNotWaitedForLonger) {
  auto crew = Crew::start({{"sh", "-c", "while read x; do :; done"}});
  ASSERT_TRUE(crew.ok()) << crew.error().message;
  const auto answers = crew->ask("go", 20ms);
  ASSERT_FALSE(answers.ok());
  EXPECT_NE(answers.error().message.find("not answered in time"), std::string::npos) << answers.error().message;
}

TEST(CrewTest, NobodyOutlivesIt) {
  pid_t first = 0;
  {
    auto crew = Crew::start({{"cat"}, {"cat"}});
    ASSERT_TRUE(crew.ok()) << crew.error().message;
    first = crew->process(0);
    EXPECT_EQ(::kill(first, 0), 0);
  }
  EXPECT_EQ(::kill(first, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(CrewTest, AProgramThatIsNotThereIsNamed) {
  const auto crew = Crew::start({{"cat"}, {"no-such-program-of-ours"}});
  ASSERT_FALSE(crew.ok());
  EXPECT_EQ(crew.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace foreload
