#include <gtest/gtest.h>

#include "foreload/loader.h"

namespace foreload {
namespace {

const State kState{.fingerprint = 0xfedcba9876543210, .seed = ~0ull, .epoch = 89, .position = 1281024, .plan = 7};

TEST(StateTest, SurvivesJson) {
  const auto back = state_from_json(state_to_json(kState));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, kState);
  EXPECT_LT(state_to_json(kState).size(), 1024u);
}

TEST(StateTest, DamagedStatesAreRefusedWithAReason) {
  const std::string good = state_to_json(kState);
  for (std::size_t cut = 0; cut < good.size(); ++cut) EXPECT_FALSE(state_from_json(good.substr(0, cut)));
  const auto without = [&](const std::string& what, const std::string& with) {
    std::string text = good;
    text.replace(text.find(what), what.size(), with);
    return state_from_json(text);
  };
  EXPECT_FALSE(without("\"version\":1", "\"version\":2"));
  EXPECT_FALSE(without("\"epoch\":89", "\"epoch\":-1"));
  EXPECT_FALSE(without("\"epoch\":89", "\"epoch\":1.5"));
  EXPECT_FALSE(without("\"epoch\":89", "\"epoch\":\"89\""));
  EXPECT_FALSE(without("fedcba9876543210", "fedcba987654321"));
  EXPECT_FALSE(without("fedcba9876543210", "fedcba987654321g"));
  EXPECT_FALSE(without("\"position\":1281024", "\"position\":99999999999999999999999"));
  EXPECT_FALSE(state_from_json(std::string(1 << 20, '[')));
  EXPECT_FALSE(state_from_json("[1,2,3]"));
}

}  // namespace
}  // namespace foreload
