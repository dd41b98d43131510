// Batches that are more than a row of equal tensors: ragged samples, mixed pairs; and token sequences as a source.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "base/test_folder.h"
#include "foreload/loader.h"
#include "prep/jpeg_samples.h"

namespace foreload {
namespace {

// What stands at a position, with everything that belongs to it.
struct Delivered {
  SampleId id = 0;
  std::vector<std::byte> bytes;
  std::int64_t label = 0;
  Mix mix;

  bool operator==(const Delivered&) const = default;
};
using Epochs = std::map<std::pair<Epoch, Position>, Delivered>;

void collect(const Batch& batch, Epochs& into) {
  const bool ragged = !batch.offsets().empty();
  const Bytes size = ragged ? dtype_size(batch.sample_spec().dtype) : batch.sample_spec().bytes();
  if (ragged) {
    ASSERT_EQ(batch.offsets().size(), batch.size() + 1);
    ASSERT_EQ(batch.offsets().front(), 0u);
    ASSERT_EQ(batch.data().size(), batch.offsets().back() * size) << "data() is the values only";
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const std::uint64_t first = ragged ? batch.offsets()[i] : i;
    const std::uint64_t count = ragged ? batch.offsets()[i + 1] - first : 1;
    const auto bytes = batch.data().subspan(first * size, count * size);
    Delivered delivered{batch.ids()[i], {bytes.begin(), bytes.end()}, batch.labels()[i], {}};
    if (!batch.mixes().empty()) delivered.mix = batch.mixes()[i];
    const bool is_new = into.emplace(std::pair{batch.epoch(), batch.positions()[i]}, std::move(delivered)).second;
    ASSERT_TRUE(is_new) << "position " << batch.positions()[i] << " was delivered twice";
  }
}

// All ranks' epochs together.
Epochs read_all(LoaderOptions options) {
  Epochs all;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    auto loader = Loader::open(options);
    EXPECT_TRUE(loader.ok()) << (loader.ok() ? "" : loader.error().message);
    if (!loader.ok()) return all;
    for (Epoch epoch = 0; epoch < options.epochs;) {
      auto batch = loader->next();
      EXPECT_TRUE(batch.ok()) << (batch.ok() ? "" : batch.error().message);
      if (!batch.ok()) return all;
      if (!*batch) {
        ++epoch;
      } else {
        collect(**batch, all);
      }
    }
  }
  return all;
}

LoaderOptions base_options(const TestFolder& folder) {
  LoaderOptions options;
  options.dataset = {folder.path()};
  options.seed = 5;
  options.memory = 64_MiB;
  options.epochs = 2;
  options.last_batch = LastBatch::kRagged;
  return options;
}

// Sample i holds 1 + 37·i mod 50 numbers, all of them i.
std::string ragged_content(std::uint64_t id) {
  const std::vector<std::uint16_t> values(1 + id * 37 % 50, static_cast<std::uint16_t>(id));
  return {reinterpret_cast<const char*>(values.data()), values.size() * 2};
}

TEST(LoaderKindsTest, RaggedSamplesArriveOnceWithTheirOwnLengthForEveryWorld) {
  constexpr std::uint64_t kSamples = 101;
  TestFolder folder;
  for (std::uint64_t i = 0; i < kSamples; ++i) folder.write(fmt::format("{:03}.bin", i), ragged_content(i));
  LoaderOptions options = base_options(folder);
  options.chain = {ragged(DType::kU16, 50, {.headerless = true})};
  options.global_batch = 25;  // the last one has a single sample: most ranks get an empty batch
  for (const std::uint32_t world : {1u, 2u, 4u}) {
    options.world = world;
    options.workers = world;
    const Epochs seen = read_all(options);
    ASSERT_EQ(seen.size(), 2 * kSamples);
    std::map<SampleId, int> times;
    for (const auto& [place, delivered] : seen) {
      const std::string expected = ragged_content(delivered.id);
      ASSERT_EQ(delivered.bytes.size(), expected.size());
      ASSERT_EQ(std::memcmp(delivered.bytes.data(), expected.data(), expected.size()), 0);
      ++times[delivered.id];
    }
    ASSERT_EQ(times.size(), kSamples);
    for (const auto& [id, count] : times) EXPECT_EQ(count, 2) << id;
  }
}

TEST(LoaderKindsTest, ARaggedSampleThatIsTooLongIsNamedWithBothLengths) {
  TestFolder folder;
  folder.write("a.bin", std::string(20, 'a'));
  folder.write("b.bin", std::string(40, 'b'));
  LoaderOptions options = base_options(folder);
  options.batch = 2;
  options.chain = {ragged(DType::kU16, 15, {.headerless = true})};
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok()) << loader.error().message;
  const auto batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_NE(batch.error().message.find("b.bin"), std::string::npos) << batch.error().message;
  EXPECT_NE(batch.error().message.find("20 elements, more than the chain's max_length of 15"), std::string::npos)
      << batch.error().message;
  options.chain = {ragged(DType::kU16, 15, {.headerless = true, .truncate = true})};
  options.shuffle = false;
  EXPECT_EQ(read_all(options).at({0, 1}).bytes.size(), 30u);
}

class Pictures {
 public:
  explicit Pictures(std::uint64_t samples) {
    for (std::uint64_t i = 0; i < samples; ++i) {
      const auto jpeg = make_jpeg({.width = 30, .height = 24, .seed = i + 1});
      folder_.write(file(i), {reinterpret_cast<const char*>(jpeg.data()), jpeg.size()});
    }
  }
  static std::string file(std::uint64_t id) { return fmt::format("class{}/{:03}.jpg", id / 4, id); }
  void damage(std::uint64_t id) const { folder_.write(file(id), "no picture at all"); }

  LoaderOptions options(const Transform& mix, std::uint32_t world, LastBatch last) const {
    LoaderOptions options = base_options(folder_);
    options.chain = {center_crop(16), random_flip(), normalize(kImageNet), mix};
    options.global_batch = 8;
    options.world = world;
    options.workers = world == 2 ? 1 : 4;
    options.last_batch = last;
    return options;
  }

 private:
  TestFolder folder_;
};

// Up to position `samples`: what is padded differs between worlds.
Epochs genuine(Epochs all, Position samples) {
  std::erase_if(all, [samples](const auto& entry) { return entry.first.second >= samples; });
  return all;
}

TEST(LoaderKindsTest, MixedContentDoesNotDependOnWorldThreadsOrLastBatch) {
  constexpr std::uint64_t kSamples = 23;
  const Pictures pictures(kSamples);
  for (const Transform& mix : {mixup(0.4), cutmix()}) {
    const Epochs expected = read_all(pictures.options(mix, 1, LastBatch::kRagged));
    ASSERT_EQ(expected.size(), 2 * kSamples);
    for (const std::uint32_t world : {1u, 2u, 4u}) {
      for (const LastBatch last : {LastBatch::kRagged, LastBatch::kPad}) {
        const Epochs seen = read_all(pictures.options(mix, world, last));
        EXPECT_EQ(genuine(seen, kSamples), expected) << mix.name << ", world " << world;
        if (last == LastBatch::kRagged) continue;
        EXPECT_EQ(seen.size() % world, 0u) << "ranks have equally many";
      }
    }
  }
}

TEST(LoaderKindsTest, MixupIsTheStatedMixtureOfTheTwoNeighbours) {
  constexpr std::uint64_t kSamples = 23;
  const Pictures pictures(kSamples);
  LoaderOptions options = pictures.options(mixup(), 1, LastBatch::kRagged);
  const Epochs mixed = read_all(options);
  options.chain.pop_back();
  const Epochs plain = read_all(options);
  std::size_t changed = 0;
  for (const auto& [place, delivered] : mixed) {
    const bool alone = place.second == kSamples - 1;
    const Delivered& own = plain.at(place);
    const Delivered& other = alone ? own : plain.at({place.first, place.second ^ 1});
    EXPECT_EQ(delivered.id, own.id);
    EXPECT_EQ(delivered.label, own.label);
    EXPECT_EQ(delivered.mix.other_label, other.label);
    const float share = delivered.mix.own_share;
    ASSERT_TRUE(!alone || share == 1.0f);
    for (std::size_t i = 0; i < own.bytes.size(); i += 4) {
      float a, b, got;
      std::memcpy(&a, &own.bytes[i], 4);
      std::memcpy(&b, &other.bytes[i], 4);
      std::memcpy(&got, &delivered.bytes[i], 4);
      ASSERT_EQ(got, alone ? a : share * a + (1 - share) * b) << place.second;
    }
    changed += delivered.bytes != own.bytes ? 1 : 0;
  }
  EXPECT_GE(changed, 40u);
}

TEST(LoaderKindsTest, ReplacedSamplesAreMixedAlikeOnEveryRank) {
  const Pictures pictures(24);
  pictures.damage(5);
  pictures.damage(6);
  std::optional<Epochs> expected;
  for (const std::uint32_t world : {1u, 2u, 4u}) {
    LoaderOptions options = pictures.options(mixup(1.0), world, LastBatch::kRagged);
    options.on_error = OnError::kReplace;
    const Epochs seen = read_all(options);
    ASSERT_EQ(seen.size(), 48u);
    for (const auto& [place, delivered] : seen) EXPECT_TRUE(delivered.id != 5 && delivered.id != 6);
    if (!expected) expected = seen;
    EXPECT_EQ(seen, *expected) << "world " << world;
  }
}

TEST(LoaderKindsTest, ABadSampleInAMixedBatchIsDeliveredAsTheError) {
  const Pictures pictures(8);
  pictures.damage(3);
  auto loader = Loader::open(pictures.options(cutmix(), 1, LastBatch::kRagged));
  ASSERT_TRUE(loader.ok()) << loader.error().message;
  const auto batch = loader->next();
  ASSERT_FALSE(batch.ok());
  EXPECT_NE(batch.error().message.find("003.jpg"), std::string::npos) << batch.error().message;
}

TEST(LoaderKindsTest, BatchesThatWouldBreakPairsAreRefusedInWords) {
  const Pictures pictures(8);
  LoaderOptions options = pictures.options(mixup(), 1, LastBatch::kRagged);
  options.global_batch = 7;
  auto loader = Loader::open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_NE(loader.error().message.find("must be even"), std::string::npos) << loader.error().message;
  options.global_batch = 6;
  options.world = 4;
  loader = Loader::open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_NE(loader.error().message.find("two samples for each of 4 ranks; it is 6"), std::string::npos)
      << loader.error().message;
}

TEST(LoaderKindsTest, TokenSequencesOfSeveralFilesArriveOnceAndResume) {
  constexpr std::uint64_t kLength = 5;
  TestFolder folder;
  std::uint32_t token = 0;
  for (const std::uint64_t count : {52u, 3u, 100u}) {  // 10, none and 20 sequences
    std::vector<std::uint32_t> tokens(count);
    for (auto& each : tokens) each = token++;
    folder.write(fmt::format("t{}.bin", token), {reinterpret_cast<const char*>(tokens.data()), count * 4});
  }
  LoaderOptions options = base_options(folder);
  options.dataset = {folder.path() + "/t{52,55,155}.bin"};
  options.source.tokens = TokenSequences{DType::kU32, kLength};
  options.global_batch = 8;
  std::string warning;
  options.warn = [&](const std::string& text) { warning = text; };
  for (options.world = 1; options.world <= 3; ++options.world) {
    const Epochs seen = read_all(options);
    ASSERT_EQ(seen.size(), 2u * 30);
    for (const auto& [place, delivered] : seen) {
      ASSERT_EQ(delivered.bytes.size(), kLength * 4);
      std::vector<std::uint32_t> tokens(kLength);
      std::memcpy(tokens.data(), delivered.bytes.data(), delivered.bytes.size());
      const auto first =
          static_cast<std::uint32_t>(delivered.id < 10 ? delivered.id * kLength : 55 + (delivered.id - 10) * kLength);
      for (std::uint32_t i = 0; i < kLength; ++i) ASSERT_EQ(tokens[i], first + i) << delivered.id;
      EXPECT_EQ(delivered.label, kNoLabel);
    }
  }
  EXPECT_NE(warning.find("2 of 3 token files"), std::string::npos) << warning;
  options.world = 1;
  auto loader = Loader::open(options);
  ASSERT_TRUE(loader.ok());
  ASSERT_TRUE(loader->next().ok());
  const State state = loader->position();
  const auto expected = loader->next();
  auto resumed = Loader::open(options);
  ASSERT_TRUE(resumed.ok() && resumed->seek(state).ok());
  const auto got = resumed->next();
  ASSERT_TRUE(expected.ok() && got.ok());
  EXPECT_TRUE(std::equal((*expected)->ids().begin(), (*expected)->ids().end(), (*got)->ids().begin()));
}

}  // namespace
}  // namespace foreload
