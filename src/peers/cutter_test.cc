#include "peers/cutter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/hash.h"
#include "peers/grpc_testing.h"
#include "prep/chain.h"
#include "prep/jpeg_cut.h"
#include "prep/jpeg_samples.h"

namespace foreload {
namespace {

constexpr PeerCrop kCrop{.picture_width = 320, .picture_height = 160, .x = 65, .y = 33, .width = 90, .height = 50};

Content picture(std::uint64_t seed = 1) {
  return make_jpeg({.width = 320, .height = 160, .sampling = {2, 2, 1, 1, 1, 1}, .restart = 2, .seed = seed});
}

// A sample and its leases.
class Kept : private LeaseBook {
 public:
  explicit Kept(Content bytes) : bytes_(std::move(bytes)) {}

  PeerShelf::Taken take() {
    ++leases;
    return {.kind = PeerShelf::Taken::Kind::kHere, .lease = Lease(this, 7, bytes_), .hash = hash_bytes(bytes_)};
  }
  const Content& bytes() const { return bytes_; }

  int leases = 0;

 private:
  void add(SampleId) override { ++leases; }
  void drop(SampleId) override { --leases; }

  Content bytes_;
};

TEST(CutterTest, TheCutComesWithItsOwnHashAndTheSampleIsGivenBack) {
  const Cutter cutter;
  Kept kept(picture());
  auto sample = kept.take();
  ASSERT_TRUE(cutter.cut({.id = 7, .length = kept.bytes().size(), .crop = kCrop}, sample));
  EXPECT_EQ(kept.leases, 0);
  const auto expected = cut_jpeg(kept.bytes(), {320, 160}, {65, 33, 90, 50});
  ASSERT_TRUE(expected);
  EXPECT_TRUE(std::ranges::equal(sample.lease.bytes(), *expected));
  EXPECT_EQ(sample.hash, hash_bytes(*expected));
  EXPECT_LT(expected->size(), kept.bytes().size() / 2);
  const Lease second = sample.lease.share();
  sample.lease = Lease();
  EXPECT_TRUE(std::ranges::equal(second.bytes(), *expected)) << "it lives as long as somebody has it";
}

TEST(CutterTest, WhatCanNotBeCutStaysAsItIs) {
  const Cutter cutter;
  const auto stays = [&](Content bytes, const PeerCrop& crop, std::uint64_t other_hash = 0) {
    Kept kept(std::move(bytes));
    auto sample = kept.take();
    sample.hash ^= other_hash;
    const auto hash = sample.hash;
    const bool cut = cutter.cut({.id = 7, .length = kept.bytes().size(), .crop = crop}, sample);
    return !cut && kept.leases == 1 && sample.hash == hash && sample.lease.bytes().data() == kept.bytes().data();
  };
  EXPECT_FALSE(stays(picture(), kCrop));
  EXPECT_TRUE(stays(picture(), {})) << "all of it is wanted";
  EXPECT_TRUE(stays(picture(), {.picture_width = 320, .picture_height = 160, .width = 320, .height = 160}));
  EXPECT_TRUE(stays(test_sample(3, 5000), kCrop));
  EXPECT_TRUE(stays(make_jpeg({.width = 320, .height = 160}), kCrop)) << "without markers";
  EXPECT_TRUE(stays(make_jpeg({.width = 320, .height = 176, .restart = 2}), kCrop)) << "of another size";
  EXPECT_TRUE(stays(picture(), kCrop, 1)) << "damaged where it is kept: who gets it has to see that";
  PeerCrop beyond = kCrop;
  beyond.x = 300;
  EXPECT_TRUE(stays(picture(), beyond));
}

TEST(CutterTest, MemoryForCutsIsBounded) {
  Kept kept(picture());
  const PeerItem item{.id = 7, .length = kept.bytes().size(), .crop = kCrop};
  const Cutter cutter(2 * kept.bytes().size());
  std::vector<PeerShelf::Taken> taken;
  for (int i = 0; i < 20; ++i) {
    taken.push_back(kept.take());
    (void)cutter.cut(item, taken.back());
  }
  Bytes held = 0;
  for (const auto& each : taken)
    held += each.lease.bytes().data() != kept.bytes().data() ? each.lease.bytes().size() : 0;
  EXPECT_GT(held, kept.bytes().size() / 2);
  EXPECT_LE(held, 2 * kept.bytes().size());
  EXPECT_GT(kept.leases, 0) << "some went out whole";
  taken.clear();
  EXPECT_EQ(kept.leases, 0);
  auto again = kept.take();
  EXPECT_TRUE(cutter.cut(item, again)) << "their memory is free";
}

PeerCrop crop_of(const Box& box) {
  const auto number = [](std::uint32_t pixels) { return static_cast<std::uint16_t>(pixels); };
  return {.picture_width = 320,
          .picture_height = 160,
          .x = number(box.x),
          .y = number(box.y),
          .width = number(box.width),
          .height = number(box.height)};
}

// By token. REQUIRES: tokens count from 0.
std::vector<PeerEnd> fetch_all(GrpcPeers& peers, const std::vector<PeerWant>& wants) {
  peers.fetch(0, kTestKey, wants, now() + kPlenty);
  std::vector<PeerEnd> ends(wants.size());
  for (std::size_t ended = 0; ended < wants.size();) {
    std::vector<PeerEnd> some;
    peers.wait(some, now() + kPlenty);
    EXPECT_FALSE(some.empty());
    if (some.empty()) break;
    for (const PeerEnd& end : some) ends.at(end.token) = end;
    ended += some.size();
  }
  return ends;
}

// Over a real connection: what comes for crops is prepared to the same pixels, and is what crossed the network.
TEST(CutterTest, ASampleAskedForWithItsCropComesCutAndGivesTheSamePixels) {
  constexpr std::size_t kPictures = 40;
  const auto chain = Chain::compile({.transforms = {random_resized_crop(64)}, .dtype = DType::kU8});
  ASSERT_TRUE(chain);
  ChainRunner runner(*chain);
  CropForesight foresight(*chain);
  TestShelf shelf;
  std::vector<Content> memory(kPictures);
  std::vector<PeerWant> wants;
  Bytes whole = 0;
  for (std::size_t i = 0; i < kPictures; ++i) {
    shelf.put(i, 0);
    // Every eighth can not be cut.
    shelf.content(i) = i % 8 == 0 ? make_jpeg({.width = 320, .height = 160, .seed = i}) : picture(i);
    memory[i].resize(shelf.content(i).size());
    const auto box = foresight.box({320, 160}, {.seed = 1, .position = i});
    ASSERT_TRUE(box);
    wants.push_back({.id = i, .into = memory[i], .token = i, .crop = crop_of(*box)});
    whole += memory[i].size();
  }
  const auto credentials = job_credentials();
  const auto server = serve(shelf, credentials[0]);
  const auto peers = peers_at(server->address(), credentials[0]);
  Bytes came = 0;
  std::size_t cuts = 0;
  std::vector<std::byte> expected(chain->output().bytes());
  std::vector<std::byte> found(expected.size());
  for (const PeerEnd& end : fetch_all(*peers, wants)) {
    ASSERT_EQ(end.result, PeerResult::kHere);
    const std::size_t i = end.token;
    const PrepKey key{.seed = 1, .position = i};
    ASSERT_TRUE(runner.begin(shelf.content(i), key));
    ASSERT_TRUE(runner.finish(expected));
    RowHint hint;
    const PeerCrop& crop = wants[i].crop;
    if (end.cut > 0) hint.cut = CutHint{crop.picture(), {crop.x, crop.y, crop.width, crop.height}};
    const auto bytes = std::span(memory[i]).first(end.cut > 0 ? end.cut : memory[i].size());
    ASSERT_TRUE(runner.begin(bytes, key, hint));
    ASSERT_TRUE(runner.finish(found));
    EXPECT_EQ(found, expected) << i;
    EXPECT_TRUE(i % 8 != 0 || end.cut == 0) << i;
    cuts += end.cut > 0;
    came += bytes.size();
  }
  EXPECT_GT(cuts, kPictures / 2);
  EXPECT_LT(came, whole * 3 / 4);
  EXPECT_EQ(peers->counts()[0].bytes, came);
  EXPECT_EQ(peers->counts()[0].samples, kPictures);
}

}  // namespace
}  // namespace foreload
