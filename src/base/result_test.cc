#include "foreload/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace foreload {
namespace {

Result<std::unique_ptr<int>> half(int number) {
  if (number % 2 != 0) return Error{Code::kInvalid, "odd"};
  return std::make_unique<int>(number / 2);
}

Result<int> quarter(int number) {
  FORELOAD_ASSIGN(auto first, half(number));
  FORELOAD_ASSIGN(auto second, half(*first));
  return *second;
}

Status divisible_by_four(int number) {
  FORELOAD_TRY(quarter(number));
  return {};
}

TEST(ResultTest, CarriesAValueOrAnError) {
  EXPECT_EQ(**half(8), 4);
  EXPECT_FALSE(half(7).ok());
  EXPECT_EQ(half(7).error().message, "odd");
}

TEST(ResultTest, MacrosReturnTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().code, Code::kInvalid);
  EXPECT_TRUE(divisible_by_four(8).ok());
  EXPECT_EQ(divisible_by_four(6).error().message, "odd");
}

TEST(ResultTest, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::kCancelled); ++code)
    names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::kCancelled) + 1);
  EXPECT_EQ(names.count("Unknown"), 0u);
  EXPECT_STREQ(code_name(Code::kDataChanged), "DataChanged");
}

}  // namespace
}  // namespace foreload
