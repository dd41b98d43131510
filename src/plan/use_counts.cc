#include "plan/use_counts.h"

#include <limits>

namespace foreload {
namespace {

constexpr Epoch kUnknownEnd = 16;
constexpr std::uint64_t kMostUses = 1ull << 26;

}  // namespace

std::vector<std::uint16_t> count_uses(const Stream& stream) {
  const std::uint64_t per_epoch = stream.assignment().batches_per_epoch();
  const Epoch epochs = stream.epochs() != 0 ? stream.epochs() : kUnknownEnd;
  std::vector<std::uint16_t> uses(stream.schedule().options().samples);
  std::uint64_t counted = 0;
  for (Epoch epoch = 0; epoch < epochs && counted < kMostUses; ++epoch) {
    for (std::uint64_t step = 0; step < per_epoch; ++step) {
      const BatchPlan batch = stream.batch(stream.number_of(epoch, step));
      for (std::uint64_t i = 0; i < batch.count; ++i) {
        std::uint16_t& count = uses[stream.sample(batch, i)];
        if (count < std::numeric_limits<std::uint16_t>::max()) ++count;
      }
      counted += batch.count;
    }
  }
  return uses;
}

}  // namespace foreload
