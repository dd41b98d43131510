#include "prep/npy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace foreload {
namespace {

std::vector<std::byte> npy(const std::string& dictionary, std::size_t data_bytes, int version = 1) {
  std::string text = fmt::format("\x93NUMPY{}{}", static_cast<char>(version), '\0');
  const std::size_t length = dictionary.size() + 1;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) text += static_cast<char>(length >> (8 * i));
  text += dictionary + "\n";
  for (std::size_t i = 0; i < data_bytes; ++i) text += static_cast<char>(i);
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

const TensorSpec kSpec{DType::kF32, {2, 3}};
const std::string kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

std::string refusal(const std::vector<std::byte>& sample, const TensorSpec& spec = kSpec) {
  const auto data = npy_data(sample, spec);
  if (data) return "accepted";
  EXPECT_EQ(data.error().code, Code::kBadSample);
  return data.error().message;
}

TEST(NpyTest, AllVersionsAreRead) {
  for (const int version : {1, 2, 3}) {
    const auto sample = npy(kGood, 24, version);
    const auto data = npy_data(sample, kSpec);
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(data->size(), 24u);
    EXPECT_EQ((*data)[23], std::byte{23});
  }
  EXPECT_NE(refusal(npy(kGood, 24, 4)).find("version 4"), std::string::npos);
}

TEST(NpyTest, EveryElementTypeIsRead) {
  const std::pair<const char*, DType> types[] = {{"|u1", DType::kU8},  {"<i2", DType::kI16}, {"<u2", DType::kU16},
                                                 {"<i4", DType::kI32}, {"<i8", DType::kI64}, {"<f2", DType::kF16},
                                                 {"=f4", DType::kF32}, {"<f8", DType::kF64}};
  for (const auto& [descr, dtype] : types) {
    const auto header =
        parse_npy(npy(fmt::format("{{'shape': (7,), 'fortran_order': False, \"descr\": '{}'}}", descr), 0));
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(header->dtype, dtype);
    ASSERT_EQ(header->rank, 1u);
    EXPECT_EQ(header->shape()[0], 7u);
  }
}

TEST(NpyTest, ScalarHasNoDimensions) {
  const auto sample = npy("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8);
  EXPECT_TRUE(npy_data(sample, {DType::kF64, {}}));
}

TEST(NpyTest, RefusalsSayWhy) {
  const auto replaced = [](const std::string& what, const std::string& by) {
    std::string text = kGood;
    return npy(text.replace(text.find(what), what.size(), by), 24);
  };
  EXPECT_NE(refusal(replaced("<f4", ">f4")).find("big-endian"), std::string::npos);
  EXPECT_NE(refusal(replaced("False", "True")).find("Fortran order"), std::string::npos);
  EXPECT_NE(refusal(replaced("<f4", "<c8")).find("'<c8'"), std::string::npos);
  EXPECT_NE(refusal(replaced("<f4", "<i4")).find("i32, the chain wants f32"), std::string::npos);
  EXPECT_NE(refusal(replaced("(2, 3)", "(3, 2)")).find("(3, 2), the chain wants (2, 3)"), std::string::npos);
  EXPECT_NE(refusal(npy(kGood, 23)).find("23 bytes follow"), std::string::npos);
  EXPECT_NE(refusal(npy(kGood, 25)).find("25 bytes follow"), std::string::npos);
  EXPECT_NE(refusal(replaced("'<f4'", "[('a', '<f4')]")).find("not a plain number"), std::string::npos);
}

TEST(NpyTest, BrokenHeadersAreRefused) {
  const auto whole = npy(kGood, 24);
  for (std::size_t length = 0; length < whole.size() - 24; ++length) {
    EXPECT_NE(refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), "accepted") << length;
  }
  for (const char* text :
       {"", "{", "{}", "{'descr': '<f4'}", "[1]", "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"}) {
    EXPECT_NE(refusal(npy(text, 24)), "accepted") << text;
  }
}

TEST(NpyTest, LongHeaderIsRefusedBeforeItIsRead) {
  auto sample = npy(kGood, 24, 2);
  sample[10] = std::byte{0xff};
  EXPECT_NE(refusal(sample).find("claims"), std::string::npos);
}

TEST(NpyTest, HeaderlessMustHaveTheExactLength) {
  const std::vector<std::byte> bytes(24);
  EXPECT_TRUE(headerless_data(bytes, kSpec));
  const auto shorter = headerless_data(std::span(bytes).first(23), kSpec);
  ASSERT_FALSE(shorter);
  EXPECT_NE(shorter.error().message.find("23 bytes"), std::string::npos);
}

}  // namespace
}  // namespace foreload
