#include "source/index.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <random>

#include "base/hash.h"
#include "base/test_folder.h"
#include "base/write_file.h"
#include "source/index_builder.h"

namespace foreload {
namespace {

std::vector<std::byte> folder_index() {
  IndexBuilder builder(IndexKind::kFolder, 40, 1'700'000'000'000'000'000);
  builder.add_class("cat");
  builder.add_class("dog");
  builder.add_directory("", 5, 11);
  for (int label = 0; label < 2; ++label) {
    const auto directory = builder.add_directory(label == 0 ? "cat" : "dog", 7 + label, 13);
    for (int i = 0; i < 20; ++i) {
      const std::string name = fmt::format("image_{:03}.jpg", i);
      builder.add({.directory = directory, .name = name, .length = 100u + i, .label = label, .mtime_ns = 1000 + i});
    }
  }
  builder.add_note("one thing was strange");
  return std::move(builder).finish();
}

std::vector<std::byte> tar_index() {
  IndexBuilder builder(IndexKind::kTar, 3, 0);
  builder.add_shard("a/train-0.tar", {5000, 77});
  builder.add_shard("train-1.tar", {6000, 78});
  const auto directory = builder.add_directory("deep/er");
  builder.add({.directory = directory, .name = "x.jpg", .length = 10, .label = -5, .shard = 0, .offset = 512});
  builder.add(
      {.directory = directory, .name = "y.jpg", .length = 0, .label = 1'000'000'000'000, .shard = 1, .offset = 6000});
  builder.add({.directory = directory, .name = "z.jpg", .length = 6000, .shard = 1, .offset = 0});
  return std::move(builder).finish();
}

// Makes the hashes fit again, so that the checks behind them have to find what is wrong.
void rehash(std::vector<std::byte>& file) {
  IndexHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  const std::size_t hash_at = sizeof header + std::min(header.columns, kMaxIndexColumns) * sizeof(IndexColumnEntry);
  if (hash_at + 8 > file.size()) return;
  header.file_bytes = file.size();
  header.content_hash = hash_bytes(std::span(file).subspan(hash_at + 8));
  std::memcpy(file.data(), &header, sizeof header);
  const std::uint64_t hash = hash_bytes(std::span(file).first(hash_at));
  std::memcpy(file.data() + hash_at, &hash, sizeof hash);
}

// Touches everything that an accepted index offers.
std::uint64_t read_all(const IndexView& view) {
  std::uint64_t sum = view.total_bytes() + view.max_length() + view.classes().size() + view.notes().size();
  for (SampleId id = 0; id < view.size(); ++id) {
    sum += view.length(id) + static_cast<std::uint64_t>(view.label(id)) + view.key(id).size();
    sum += view.dimensions(id) ? 1 : 0;
    if (view.kind() == IndexKind::kTar) {
      EXPECT_LE(view.offset(id) + view.length(id), view.shard_stamp(view.shard(id)).size);
    }
  }
  for (std::uint64_t i = 0; i < view.directories(); ++i) sum += view.directory(i).size() + view.directory_listing(i);
  for (std::uint64_t i = 0; i < view.shards(); ++i) sum += view.shard_path(i).size();
  return sum;
}

TEST(PackedTest, KeepsEveryNumberInAsFewBytesAsItNeeds) {
  const std::vector<std::pair<std::vector<std::int64_t>, unsigned>> cases{{{}, 0},
                                                                          {{7, 7, 7}, 0},
                                                                          {{-1, 254}, 1},
                                                                          {{-1, 255}, 2},
                                                                          {{0, 65536}, 4},
                                                                          {{5, 5 + 0xffffffffLL + 1}, 8},
                                                                          {{INT64_MIN, INT64_MAX, 0, -1}, 8}};
  for (const auto& [values, width] : cases) {
    const PackedColumn column = pack(values);
    EXPECT_EQ(column.width, width);
    const Packed packed(column.bytes.data(), column.count, column.width, column.base);
    ASSERT_EQ(packed.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(packed[i], values[i]);
  }
}

TEST(NameTableTest, GivesBackEveryName) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(fmt::format("n01440764_{}.JPEG", i * 37));
  names.insert(names.end(), {"", std::string(4096, 'x'), std::string(4096, 'x') + "", "x", std::string(200, 'y')});
  NameTableBuilder builder;
  for (const std::string& name : names) builder.add(name);
  const PackedColumn blocks = pack(builder.blocks());
  const NameTable table(names.size(), Packed(blocks.bytes.data(), blocks.count, blocks.width, blocks.base),
                        builder.text());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(table.at(i), names[i]) << i;
  EXPECT_TRUE(table.verify([](std::string_view) { return true; }));
  EXPECT_FALSE(table.verify([](std::string_view name) { return name != "x"; }));
}

TEST(IndexTest, GivesBackWhatAFolderPutIn) {
  const std::vector<std::byte> file = folder_index();
  const auto view = IndexView::parse(file);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->size(), 40u);
  EXPECT_EQ(view->key(25), "dog/image_005.jpg");
  EXPECT_EQ(view->label(25), 1);
  EXPECT_EQ(view->length(25), 105u);
  EXPECT_EQ(view->mtime_ns(25), 1005);
  EXPECT_EQ(view->max_length(), 119u);
  EXPECT_EQ(view->total_bytes(), 2u * (20 * 100 + 190));
  EXPECT_EQ(view->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(view->notes(), (std::vector<std::string>{"one thing was strange"}));
  EXPECT_EQ(view->directory_mtime_ns(2), 8);
  EXPECT_EQ(view->directory_listing(2), 13u);
  EXPECT_FALSE(view->has_samples_in(0));
  EXPECT_TRUE(view->has_samples_in(2));
  EXPECT_EQ(view->scan_time_ns(), 1'700'000'000'000'000'000);
  EXPECT_FALSE(view->dimensions(0));
}

TEST(IndexTest, GivesBackWhatTarsPutIn) {
  const std::vector<std::byte> file = tar_index();
  const auto view = IndexView::parse(file);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->key(1), "deep/er/y.jpg");
  EXPECT_EQ(view->label(0), -5);
  EXPECT_EQ(view->label(1), 1'000'000'000'000);
  EXPECT_EQ(view->label(2), kNoLabel);
  EXPECT_EQ(view->shard_path(view->shard(0)), "a/train-0.tar");
  EXPECT_EQ(view->offset(1), 6000u);
  EXPECT_EQ(view->shard_stamp(1), (FileStamp{6000, 78}));
}

TEST(IndexTest, FingerprintIsTheHashOfCountKeysLengthsAndLabels) {
  Hasher hasher;
  hasher.add(std::uint64_t{3});
  hasher.add("deep/er/x.jpg").add(std::uint64_t{10}).add(static_cast<std::uint64_t>(-5));
  hasher.add("deep/er/y.jpg").add(std::uint64_t{0}).add(std::uint64_t{1'000'000'000'000});
  hasher.add("deep/er/z.jpg").add(std::uint64_t{6000}).add(static_cast<std::uint64_t>(-1));
  const std::vector<std::byte> file = tar_index();
  EXPECT_EQ(IndexView::parse(file)->fingerprint(), hasher.value());
}

TEST(IndexTest, DimensionsAreAddedAndReplaced) {
  const std::vector<std::byte> plain = tar_index();
  const std::vector<Dimensions> first{{500, 375}, {0, 0}, {1, 70000}};
  const std::vector<std::byte> with = IndexView::parse(plain)->with_dimensions(first);
  const auto view = IndexView::parse(with);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->dimensions(0)->width, 500u);
  EXPECT_EQ(view->dimensions(2)->height, 70000u);
  EXPECT_FALSE(view->dimensions(1));
  EXPECT_EQ(view->key(1), "deep/er/y.jpg");
  EXPECT_EQ(view->fingerprint(), IndexView::parse(plain)->fingerprint());
  const std::vector<Dimensions> second(3, Dimensions{2, 3});
  const std::vector<std::byte> again = view->with_dimensions(second);
  EXPECT_EQ(IndexView::parse(again)->dimensions(1)->height, 3u);
}

TEST(IndexTest, EveryFlippedByteIsNoticed) {
  for (const std::vector<std::byte>& whole : {folder_index(), tar_index()}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::vector<std::byte> file = whole;
      file[i] ^= std::byte{1};
      EXPECT_FALSE(IndexView::parse(file).ok()) << "byte " << i;
    }
  }
}

TEST(IndexTest, EveryTruncationIsNoticed) {
  const std::vector<std::byte> whole = folder_index();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(IndexView::parse(std::span(whole).first(size)).ok()) << size;
  }
}

TEST(IndexTest, DamageBehindFittingHashesNeverLeadsOutside) {
  const unsigned seed = 20240611;
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  for (const std::vector<std::byte>& whole : {folder_index(), tar_index()}) {
    for (int round = 0; round < 4000; ++round) {
      std::vector<std::byte> file = whole;
      // Half of the damage goes where it hurts most: header and column entries.
      const std::size_t reach = round % 2 == 0 ? file.size() : std::min<std::size_t>(file.size(), 700);
      for (unsigned flips = 1 + random() % 3; flips > 0; --flips) file[random() % reach] = std::byte(random() & 0xff);
      rehash(file);
      const auto view = IndexView::parse(file);
      (view.ok() ? accepted : refused) += 1;
      if (view.ok()) read_all(*view);
    }
  }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 1000u);
}

IndexColumnEntry& entry_of(std::vector<std::byte>& file, ColumnId id) {
  auto* entries = reinterpret_cast<IndexColumnEntry*>(file.data() + sizeof(IndexHeader));
  while (entries->id != static_cast<std::uint32_t>(id)) ++entries;
  return *entries;
}

TEST(IndexTest, RefusesPathsThatLeaveTheRoot) {
  for (const char* path : {"/etc", "..", "a/../..", "../x"}) {
    IndexBuilder builder(IndexKind::kFolder, 1, 0);
    const auto directory = builder.add_directory(path);
    builder.add({.directory = directory, .name = "x.jpg"});
    EXPECT_FALSE(IndexView::parse(std::move(builder).finish()).ok()) << path;
  }
  for (const char* name : {"", ".", "..", "a/b", "/"}) {
    IndexBuilder builder(IndexKind::kFolder, 1, 0);
    builder.add_directory("");
    builder.add({.name = name});
    EXPECT_FALSE(IndexView::parse(std::move(builder).finish()).ok()) << name;
  }
  IndexBuilder builder(IndexKind::kTar, 1, 0);
  builder.add_directory("");
  builder.add_shard("../secret.tar", {5000, 0});
  builder.add({.name = "x.jpg"});
  EXPECT_FALSE(IndexView::parse(std::move(builder).finish()).ok());
}

TEST(IndexTest, RefusesASampleOutsideOfItsShard) {
  IndexBuilder builder(IndexKind::kTar, 1, 0);
  builder.add_directory("");
  builder.add_shard("x.tar", {5000, 0});
  builder.add({.name = "x.jpg", .length = 4001, .offset = 1000});
  EXPECT_FALSE(IndexView::parse(std::move(builder).finish()).ok());
}

TEST(IndexTest, SkipsUnknownOptionalColumnsAndRefusesUnknownRequiredOnes) {
  std::vector<std::byte> file = folder_index();
  IndexColumnEntry& notes = entry_of(file, ColumnId::kNoteText);
  notes.id = 0x1777;
  rehash(file);
  const auto view = IndexView::parse(file);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_TRUE(view->notes().empty());
  notes.id = 0x77;
  rehash(file);
  EXPECT_FALSE(IndexView::parse(file).ok());
}

TEST(IndexTest, AHugeCountInATinyFileIsRefusedAtOnce) {
  std::vector<std::byte> file = folder_index();
  IndexHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  header.samples = std::uint64_t{1} << 60;
  std::memcpy(file.data(), &header, sizeof header);
  for (const ColumnId id : {ColumnId::kLength, ColumnId::kLabel, ColumnId::kDirectory, ColumnId::kMtime}) {
    entry_of(file, id).width = 0;
    entry_of(file, id).count = header.samples;
  }
  rehash(file);
  EXPECT_FALSE(IndexView::parse(file).ok());
}

// ImageNet's shape: 1,000 folders, names like n01440764_10026.JPEG. The budgets are those of 1.28 M samples, scaled.
TEST(IndexTest, AHundredThousandSamplesAreSmallAndOpenFast) {
  constexpr std::uint64_t kSamples = 100'000;
  IndexBuilder builder(IndexKind::kFolder, kSamples, 0);
  builder.add_directory("");
  std::mt19937_64 random(7);
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t label = i / 1300;
    const std::string folder = fmt::format("n{:08}", 1440764 + label * 977);
    if (i % 1300 == 0) builder.add_directory(folder, static_cast<std::int64_t>(random() >> 2), random());
    const std::string name = fmt::format("{}_{}.JPEG", folder, 10000 + i % 1300 * 9);
    builder.add({.directory = label + 1,
                 .name = name,
                 .length = 20000 + random() % 200000,
                 .label = static_cast<std::int64_t>(label),
                 .mtime_ns = static_cast<std::int64_t>(random() >> 4)});
  }
  const std::vector<std::byte> file = std::move(builder).finish();
  EXPECT_LT(file.size(), kSamples * 40);
  const TestFolder folder;
  const std::string path = folder.path("index");
  ASSERT_TRUE(replace_file(path, file).ok());
  const auto start = std::chrono::steady_clock::now();
  const auto index = Index::open(path);
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->view().size(), kSamples);
  EXPECT_LT(std::chrono::duration<double>(took).count(), 0.5);
}

}  // namespace
}  // namespace foreload
