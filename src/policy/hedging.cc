#include "policy/hedging.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kEnough = 100;   // requests, before anything is known
constexpr std::uint32_t kMemory = 2000;  // then all counts are halved
constexpr std::uint32_t kOneOf = 20;     // requests may be sent twice
constexpr Duration kShortest = 20ms;     // less is noise of this machine
constexpr unsigned kPerDoublingBits = 3;

}  // namespace

// The three bits behind the leading one say which eighth of a doubling.
std::size_t Hedging::bucket_of(Duration silence) {
  const auto units = static_cast<std::uint64_t>(std::max<std::int64_t>(silence.count() >> 10, 1)) << kPerDoublingBits;
  const unsigned top = static_cast<unsigned>(std::bit_width(units)) - 1 - kPerDoublingBits;
  const std::size_t bucket = (top << kPerDoublingBits) + ((units >> top) & 7);
  return std::min(bucket, kBuckets - 1);
}

Duration Hedging::upper_end(std::size_t bucket) {
  const std::size_t next = bucket + 1;
  const std::uint64_t units = (8 + (next & 7)) << (next >> kPerDoublingBits);
  return Duration(static_cast<std::int64_t>(units << 10 >> kPerDoublingBits));
}

void Hedging::on_done(Duration silence) {
  ++counts_[bucket_of(silence)];
  if (++seen_ < kMemory) return;
  seen_ = 0;
  for (std::uint32_t& count : counts_) {
    count /= 2;
    seen_ += count;
  }
  hedged_ /= 2;
}

Duration Hedging::quantile(double share) const {
  const auto wanted = static_cast<std::uint32_t>(share * seen_);
  std::uint32_t passed = 0;
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    passed += counts_[bucket];
    if (passed > wanted) return upper_end(bucket);
  }
  return upper_end(kBuckets - 1);
}

Duration Hedging::delay() const {
  if (seen_ < kEnough || (hedged_ + 1) * kOneOf > seen_) return Duration::max();
  return std::max(kShortest, std::min(quantile(0.99), 3 * quantile(0.5)));
}

}  // namespace foreload
