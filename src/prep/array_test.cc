#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "base/random.h"
#include "prep/array_window.h"
#include "prep/chain.h"

namespace foreload {
namespace {

using Places = std::vector<std::uint64_t>;

// Element by element, from the definition.
std::vector<std::uint16_t> reference(const std::vector<std::uint16_t>& from, const Places& shape, const Places& origin,
                                     const Places& size) {
  std::vector<std::uint16_t> out;
  const std::uint64_t count = std::accumulate(size.begin(), size.end(), std::uint64_t{1}, std::multiplies<>());
  for (std::uint64_t n = 0; n < count; ++n) {
    std::uint64_t rest = n;
    std::uint64_t place = 0;
    std::uint64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      place += (origin[i] + rest % size[i]) * step;
      rest /= size[i];
      step *= shape[i];
    }
    out.push_back(from[place]);
  }
  return out;
}

TEST(ArrayWindowTest, EveryWindowEqualsTheElementsOfItsPlaces) {
  constexpr std::uint64_t kSeed = 5;
  for (std::uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", round " << round);
    KeyedRandom random(kSeed, 0, round, 0);
    Places shape, origin, size;
    for (std::uint64_t rank = random.below(5) + 1; rank > 0; --rank) {
      shape.push_back(1 + random.below(7));
      size.push_back(random.below(3) == 0 ? shape.back() : 1 + random.below(shape.back()));
      origin.push_back(random.below(shape.back() - size.back() + 1));
    }
    std::vector<std::uint16_t> from(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    std::iota(from.begin(), from.end(), std::uint16_t{1});
    const auto expected = reference(from, shape, origin, size);
    std::vector<std::uint16_t> got(expected.size());
    copy_window(std::as_bytes(std::span(from)), 2, {shape, origin, size}, std::as_writable_bytes(std::span(got)));
    ASSERT_EQ(got, expected);
  }
}

Result<Chain> compile(const std::string& text) {
  FORELOAD_ASSIGN(auto transforms, parse_chain(text));
  return Chain::compile({.transforms = std::move(transforms)});
}

std::string refusal(const std::string& text) {
  const auto chain = compile(text);
  return chain.ok() ? "accepted" : chain.error().message;
}

// A volume of 2 x 6 x 5 x 4 whose elements are their own places.
std::vector<std::uint32_t> volume() {
  std::vector<std::uint32_t> elements(2 * 6 * 5 * 4);
  std::iota(elements.begin(), elements.end(), 0u);
  return elements;
}

std::vector<std::uint32_t> run(const Chain& chain, Position position) {
  const auto sample = volume();
  ChainRunner runner(chain);
  EXPECT_TRUE(runner.begin(std::as_bytes(std::span(sample)), {1, 0, position}).ok());
  std::vector<std::uint32_t> out(chain.output().bytes() / 4);
  EXPECT_TRUE(runner.finish(std::as_writable_bytes(std::span(out))).ok());
  return out;
}

TEST(WindowOpTest, RandomWindowReachesEveryPlaceAndIsKeyedByPosition) {
  const auto chain = compile("array(u32, 2:6:5:4, headerless=1), random_window(4:5:2)");
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_EQ(chain->output(), (TensorSpec{DType::kU32, {2, 4, 5, 2}}));
  std::set<std::uint32_t> corners;
  for (Position position = 0; position < 200; ++position) {
    const auto got = run(*chain, position);
    EXPECT_EQ(got, run(*chain, position));
    EXPECT_EQ(got[40], got[0] + 120) << "both volumes have the same window";
    corners.insert(got[0]);
  }
  EXPECT_EQ(corners.size(), 3u * 1 * 3);
}

TEST(WindowOpTest, CenterWindowIsTheMiddle) {
  const auto chain = compile("array(u32, 2:6:5:4, headerless=1), center_window(2:3:2)");
  ASSERT_TRUE(chain) << chain.error().message;
  EXPECT_EQ(run(*chain, 0)[0], 2u * 20 + 1 * 4 + 1);
}

TEST(WindowOpTest, WindowsThatCanNotWorkAreRefusedWithTheReason) {
  EXPECT_NE(refusal("array(f32, 4:4), random_window(5:1)").find("does not fit an array of 4:4"), std::string::npos);
  EXPECT_NE(refusal("array(f32, 4:4), random_window(1:1:1)").find("does not fit"), std::string::npos);
  EXPECT_NE(refusal("random_window(3), array(f32, 4:4)").find("must follow array"), std::string::npos);
  EXPECT_NE(refusal("array(f32, 4), center_window(2), center_window(1)").find("must follow array"), std::string::npos);
  EXPECT_NE(refusal("array(f32, 4), center_window(0)").find("whole numbers"), std::string::npos);
  EXPECT_NE(refusal("array(f32, 4:4), random_flip").find("can not be combined"), std::string::npos);
}

TEST(WindowOpTest, TextAndBuilderAgree) {
  const auto parsed = parse_chain("array(f32, 8:8:8), random_window(2:3:4)");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed, (std::vector{array(DType::kF32, {8, 8, 8}), random_window({2, 3, 4})}));
  const auto ragged_text = parse_chain("ragged(u16, 100, truncate=1)");
  ASSERT_TRUE(ragged_text);
  EXPECT_EQ(*ragged_text, std::vector{ragged(DType::kU16, 100, {.truncate = true})});
}

std::string ragged_problem(const std::string& text, std::size_t bytes) {
  const auto chain = compile(text);
  EXPECT_TRUE(chain.ok());
  const std::vector<std::byte> sample(bytes);
  ChainRunner runner(*chain);
  const auto begun = runner.begin(sample, {});
  if (begun.ok()) return std::to_string(runner.length());
  EXPECT_EQ(begun.error().code, Code::kBadSample);
  return begun.error().message;
}

TEST(RaggedOpTest, LengthIsTheSamplesOwnUpToTheLimit) {
  EXPECT_EQ(ragged_problem("ragged(u16, 10, headerless=1)", 0), "0");
  EXPECT_EQ(ragged_problem("ragged(u16, 10, headerless=1)", 20), "10");
  const std::string message = ragged_problem("ragged(u16, 10, headerless=1)", 24);
  EXPECT_NE(message.find("12 elements"), std::string::npos) << message;
  EXPECT_NE(message.find("max_length of 10"), std::string::npos) << message;
  EXPECT_EQ(ragged_problem("ragged(u16, 10, headerless=1, truncate=1)", 24), "10");
  EXPECT_NE(ragged_problem("ragged(u16, 10, headerless=1)", 3).find("no whole number"), std::string::npos);
  EXPECT_NE(ragged_problem("ragged(u16, 10)", 30).find(".npy"), std::string::npos);
}

TEST(RaggedOpTest, NpyOfOneDimensionIsRead) {
  const auto chain = compile("ragged(f32, 10)");
  ASSERT_TRUE(chain);
  for (const auto& [shape, good] : {std::pair{"(3,)", true}, {"(3, 1)", false}}) {
    std::string header = std::string("{'descr': '<f4', 'fortran_order': False, 'shape': ") + shape + ", }";
    header.resize(117, ' ');
    const std::string file = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + std::string(12, 'x');
    ChainRunner runner(*chain);
    const auto begun = runner.begin(std::as_bytes(std::span(file)), {});
    EXPECT_EQ(begun.ok(), good) << (begun.ok() ? "" : begun.error().message);
    if (!good) continue;
    EXPECT_EQ(runner.length(), 3u);
    std::vector<std::byte> out(40);
    ASSERT_TRUE(runner.finish(out));
    EXPECT_EQ(std::memcmp(out.data(), "xxxxxxxxxxxx", 12), 0);
  }
}

}  // namespace
}  // namespace foreload
