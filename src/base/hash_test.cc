#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace foreload {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// XXH3_64bits of nothing, seed 0, as published with xxHash.
TEST(HashTest, IsXxh3) {
  EXPECT_EQ(hash_bytes({}), 0x2d06800538d394c2u);
  EXPECT_NE(hash_bytes(bytes_of("a")), hash_bytes(bytes_of("b")));
  EXPECT_NE(hash_bytes(bytes_of("a"), 1), hash_bytes(bytes_of("a"), 2));
}

// Computed with the library's portable code: what a machine's vectors compute must not differ.
TEST(HashTest, LongInputHashesAlikeOnEveryMachine) {
  std::string text(110'000, '\0');
  for (unsigned i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 + (i >> 8));
  EXPECT_EQ(hash_bytes(bytes_of(text)), 0x8a3cf6aa593ef5c6u);
  EXPECT_EQ(hash_bytes(bytes_of(text), 7), 0x75a2669ee25376b7u);
}

TEST(HashTest, StreamingEqualsAtOnceHoweverItIsCut) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i * i);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{240}, std::size_t{1024}, text.size()}) {
    Hasher hasher(9);
    hasher.add_raw(bytes_of(text.substr(0, cut))).add_raw(bytes_of(text.substr(cut)));
    EXPECT_EQ(hasher.value(), hash_bytes(bytes_of(text), 9)) << "cut at " << cut;
  }
}

TEST(HashTest, IntegersAreEightLittleEndianBytes) {
  const std::string bytes("\x08\x07\x06\x05\x04\x03\x02\x01", 8);
  EXPECT_EQ(Hasher().add(0x0102030405060708u).value(), hash_bytes(bytes_of(bytes)));
}

TEST(HashTest, StringsDoNotRunIntoEachOther) {
  EXPECT_NE(Hasher().add("ab").add("c").value(), Hasher().add("a").add("bc").value());
  EXPECT_NE(Hasher().add("").value(), Hasher().value());
}

TEST(HashTest, AHasherCanBeMoved) {
  Hasher first;
  first.add(1);
  Hasher second = std::move(first);
  EXPECT_EQ(second.add(2).value(), Hasher().add(1).add(2).value());
}

TEST(HashTest, HexHasSixteenDigits) {
  EXPECT_EQ(hex16(0xab), "00000000000000ab");
  EXPECT_EQ(hex16(~0ull), "ffffffffffffffff");
}

}  // namespace
}  // namespace foreload
