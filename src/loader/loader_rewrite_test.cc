// Cached JPEGs that are made crop-addressable while the loader runs: nobody may see a difference but in time.
#include <gtest/gtest.h>

#include <thread>

#include "base/files.h"
#include "base/test_folder.h"
#include "foreload/loader.h"
#include "prep/jpeg_samples.h"
#include "tier/disk_store.h"

namespace foreload {
namespace {

// More than the fetcher looks ahead: what it holds a lease on is not changed.
constexpr std::uint64_t kImages = 600;
constexpr std::uint64_t kKinds = 8;

class LoaderRewriteTest : public testing::Test {
 protected:
  LoaderRewriteTest() {
    for (std::uint64_t kind = 0; kind < kKinds; ++kind) {
      const auto bytes = make_jpeg({.width = 200 + static_cast<unsigned>(kind),
                                    .height = 160,
                                    .sampling = {2, 2, 1, 1, 1, 1},
                                    .progressive = kind == 7,
                                    .seed = kind});
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      for (std::uint64_t id = kind; id < kImages; id += kKinds) {
        folder_.write("a/" + std::to_string(1000 + id) + ".jpg", text);
      }
    }
  }

  LoaderOptions options(Rewrite rewrite) const {
    LoaderOptions options;
    options.dataset = {folder_.path()};
    options.batch = 20;
    options.seed = 3;
    options.chain = {random_resized_crop(24), random_flip(), normalize(kImageNet)};
    options.memory = 64_MiB;
    options.rewrite = rewrite;
    return options;
  }

  // The tensors of some epochs, one after the other.
  static std::vector<std::byte> read(Loader& loader, Epoch epochs) {
    std::vector<std::byte> all;
    for (Epoch epoch = 0; epoch < epochs; ++epoch) {
      for (auto batch = loader.next(); *batch; batch = loader.next()) {
        all.insert(all.end(), (*batch)->data().begin(), (*batch)->data().end());
      }
    }
    return all;
  }

  TestFolder folder_;
};

TEST_F(LoaderRewriteTest, RewrittenSamplesGiveTheSameTensors) {
  auto plain = Loader::open(options(Rewrite::kOff));
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  const auto expected = read(*plain, 3);
  EXPECT_EQ(plain->stats().rewritten, 0u);
  for (const unsigned threads : {1u, 3u}) {
    LoaderOptions asked = options(Rewrite::kOn);
    asked.workers = threads;
    auto loader = Loader::open(asked);
    ASSERT_TRUE(loader.ok()) << loader.error().message;
    EXPECT_TRUE(read(*loader, 3) == expected) << threads << " threads";
    EXPECT_GT(loader->stats().rewritten, kImages / 4);
    EXPECT_LE(loader->stats().rewritten, kImages);
  }
}

TEST_F(LoaderRewriteTest, SpareTimeIsUsedOnlyWhenEnoughEpochsFollow) {
  for (const Epoch epochs : {Epoch{0}, Epoch{3}}) {
    LoaderOptions asked = options(Rewrite::kAuto);
    asked.epochs = epochs;
    auto loader = Loader::open(asked);
    ASSERT_TRUE(loader.ok()) << loader.error().message;
    read(*loader, 1);
    // Nobody takes a batch, so the workers have nothing to prepare soon, however busy the machine is.
    const int looks = epochs == 0 ? 6000 : 20;
    for (int i = 0; i < looks && loader->stats().rewritten == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(loader->stats().rewritten > 0, epochs == 0) << loader->stats().rewritten;
  }
}

TEST_F(LoaderRewriteTest, WithoutACacheNothingIsRewritten) {
  LoaderOptions asked = options(Rewrite::kOn);
  asked.cache = false;
  auto loader = Loader::open(asked);
  ASSERT_TRUE(loader.ok()) << loader.error().message;
  read(*loader, 2);
  EXPECT_EQ(loader->stats().rewritten, 0u);
}

TEST_F(LoaderRewriteTest, TheDiskGetsTheBytesOfTheSource) {
  const TestFolder disk;
  LoaderOptions options = this->options(Rewrite::kOn);
  options.disk = disk.path();
  {
    auto loader = Loader::open(options);
    ASSERT_TRUE(loader.ok()) << loader.error().message;
    (void)read(*loader, 3);
    EXPECT_GT(loader->stats().rewritten, kImages / 4);
  }
  const auto source = open_source({.datasets = options.dataset});
  ASSERT_TRUE(source.ok());
  const Source& original = **source;
  auto store = DiskStore::open({.folder = disk.path(),
                                .samples = {.count = kImages,
                                            .fingerprint = original.fingerprint(),
                                            .length = [&](SampleId id) { return original.length(id); },
                                            .stamp = [&](SampleId id) { return original.locate(id).stamp; }},
                                .total_bytes = original.total_bytes()});
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (SampleId id = 0; id < kImages; ++id) {
    const auto place = (*store)->begin_read(id);
    ASSERT_TRUE(place) << "sample " << id;
    std::vector<std::byte> kept(original.length(id));
    ASSERT_TRUE(read_exactly(place->fd, place->offset, kept).ok());
    std::vector<std::byte> bytes(original.length(id));
    const Extent extent = original.locate(id);
    const auto file = open_below(extent.root, extent.path);
    ASSERT_TRUE(read_exactly(file->get(), extent.offset, bytes).ok());
    ASSERT_EQ(kept, bytes) << "sample " << id;
  }
}

}  // namespace
}  // namespace foreload
