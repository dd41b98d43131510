#include "tier/extents.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace foreload {
namespace {

std::span<std::byte> aligned(std::vector<std::byte>& storage) {
  auto at = reinterpret_cast<std::uintptr_t>(storage.data());
  const std::size_t skip = (16 - at % 16) % 16;
  return {storage.data() + skip, storage.size() - skip};
}

TEST(ExtentsTest, FillingARangeLosesNothingButFootprints) {
  std::vector<std::byte> storage(4 << 20);
  std::mt19937_64 random(1);
  auto range = aligned(storage);
  Extents extents = Extents::format(range);
  const Bytes capacity = range.size() - Extents::overhead();
  std::vector<Bytes> lengths;
  Bytes planned = 0;
  while (planned + Extents::footprint(20000) <= capacity - 64) {
    lengths.push_back(1 + random() % 20000);
    planned += Extents::footprint(lengths.back());
  }
  for (Bytes length : lengths) ASSERT_TRUE(extents.allocate(length)) << "of " << length;
  EXPECT_EQ(extents.used_bytes(), planned);
}

TEST(ExtentsTest, RandomUseNeverOverlapsAndEndsWhole) {
  const unsigned seed = 42;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::vector<std::byte> storage(1 << 20);
  Extents extents = Extents::format(aligned(storage));
  auto range = aligned(storage);
  std::map<std::uint64_t, std::pair<Bytes, std::byte>> live;
  for (int i = 0; i < 20000; ++i) {
    if (live.empty() || random() % 5 < 3) {
      const Bytes length = 1 + random() % (1u << (random() % 17));
      const auto offset = extents.allocate(length);
      if (!offset) continue;
      ASSERT_EQ(*offset % 16, 0u);
      ASSERT_LE(*offset + length, range.size());
      const auto fill = static_cast<std::byte>(random());
      std::memset(range.data() + *offset, static_cast<int>(fill), length);
      ASSERT_TRUE(live.emplace(*offset, std::pair{length, fill}).second);
    } else {
      auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      for (Bytes b = 0; b < victim->second.first; ++b) {
        ASSERT_EQ(range[victim->first + b], victim->second.second) << "byte " << b << " was overwritten";
      }
      extents.free(victim->first);
      live.erase(victim);
    }
  }
  for (const auto& [offset, unused] : live) extents.free(offset);
  EXPECT_EQ(extents.used_bytes(), 0u);
  EXPECT_TRUE(extents.allocate(range.size() - Extents::overhead() - 64)) << "freed stretches did not grow together";
}

TEST(ExtentsTest, AnAllocationThatCanNotFitIsRefused) {
  std::vector<std::byte> storage(64 << 10);
  Extents extents = Extents::format(aligned(storage));
  EXPECT_FALSE(extents.allocate(64 << 10));
  EXPECT_FALSE(extents.allocate(~Bytes{0} - 8));
  EXPECT_TRUE(extents.allocate(1000));
}

}  // namespace
}  // namespace foreload
