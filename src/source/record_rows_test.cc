#include "source/record_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/test_folder.h"

namespace foreload {
namespace {

using Rows = std::vector<std::uint32_t>;

const std::vector<Rows> kSamples{{623, 1000, 4000, 4001}, {}, {20, 21}, {}, {5, 6, 0xffffffff}};

std::vector<std::byte> file_of(const std::vector<Rows>& samples) {
  RecordRowsBuilder builder;
  for (const Rows& rows : samples) builder.add(rows);
  return std::move(builder).finish(77);
}

// Makes the hashes fit, so that only the checks behind them can object.
void fit_hashes(std::vector<std::byte>& file) {
  RowsHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  header.content_hash = hash_bytes(std::span(file).subspan(sizeof header));
  header.header_hash = hash_bytes(std::as_bytes(std::span(&header, 1)).first(sizeof header - 8));
  std::memcpy(file.data(), &header, sizeof header);
}

template <typename T>
void put(std::vector<std::byte>& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  fit_hashes(file);
}

TEST(RecordRowsTest, WhatIsWrittenIsRead) {
  const std::vector<std::byte> file = file_of(kSamples);
  const auto view = RecordRowsView::parse(file);
  ASSERT_TRUE(view.ok()) << view.error().message;
  ASSERT_EQ(view->size(), kSamples.size());
  EXPECT_EQ(view->fingerprint(), 77u);
  for (std::size_t id = 0; id < kSamples.size(); ++id) {
    const auto rows = view->rows(id);
    EXPECT_EQ(Rows(rows.begin(), rows.end()), kSamples[id]) << id;
  }
  EXPECT_TRUE(RecordRowsView::parse(file_of({})).ok());
}

TEST(RecordRowsTest, AFileThatChangesAfterwardsNeverLeadsOutside) {
  std::vector<std::byte> file = file_of(kSamples);
  const auto view = RecordRowsView::parse(file);
  ASSERT_TRUE(view.ok());
  const std::size_t start = sizeof(RowsHeader) + 8;  // of sample 1
  for (const std::uint64_t value : {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{10}}) {
    std::memcpy(file.data() + start, &value, sizeof value);
    EXPECT_TRUE(view->rows(0).empty()) << "it would end behind the offsets";
    EXPECT_TRUE(view->rows(1).empty()) << "it would begin behind its end";
  }
}

TEST(RecordRowsTest, EveryChangedByteAndEveryTruncationIsFound) {
  const std::vector<std::byte> file = file_of(kSamples);
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::vector<std::byte> changed = file;
    changed[at] ^= std::byte{0x10};
    EXPECT_FALSE(RecordRowsView::parse(changed).ok()) << at;
    EXPECT_FALSE(RecordRowsView::parse(std::span(file).first(at)).ok()) << at;
  }
}

TEST(RecordRowsTest, NumbersThatWereMadeToHarmAreRefusedBehindRightHashes) {
  constexpr std::size_t kStarts = sizeof(RowsHeader);
  const std::size_t offsets = kStarts + 8 * (kSamples.size() + 1);
  std::vector<std::byte> file = file_of(kSamples);
  put<std::uint64_t>(file, kStarts + 8, ~std::uint64_t{0});
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
  file = file_of(kSamples);
  put<std::uint64_t>(file, kStarts + 8, 3);  // the second sample gets one offset
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
  file = file_of(kSamples);
  put<std::uint64_t>(file, kStarts, 1);
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
  file = file_of(kSamples);
  put<std::uint32_t>(file, offsets + 4, 600);
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
  file = file_of(kSamples);
  put<std::uint64_t>(file, 16, std::uint64_t{1} << 61);  // samples: the length would overflow
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
  file = file_of(kSamples);
  put<std::uint64_t>(file, 24, std::uint64_t{1} << 62);
  EXPECT_FALSE(RecordRowsView::parse(file).ok());
}

TEST(RecordRowsTest, AFileOfAnotherDatasetIsRefused) {
  const TestFolder folder;
  const std::vector<std::byte> content = file_of(kSamples);
  const std::string path =
      folder.write("rows", std::string_view(reinterpret_cast<const char*>(content.data()), content.size()));
  EXPECT_TRUE(RecordRows::open(path, 77).ok());
  EXPECT_EQ(RecordRows::open(path, 78).error().code, Code::kMismatch);
  EXPECT_EQ(RecordRows::open(folder.path("none"), 77).error().code, Code::kNotFound);
  EXPECT_EQ(RecordRows::open(folder.write("empty", ""), 77).error().code, Code::kInvalid);
}

}  // namespace
}  // namespace foreload
