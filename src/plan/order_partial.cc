// N positions; home h of H is the part of every global batch that rank h of H would take as its slice. It has n_h
// places, and n_h samples of its own: an epoch-independent shuffle deals them. In every epoch, with q the share that is
// dealt:
//
//   position ──► (home h, place j) ──ρ(epoch, h)──► k < n_h
//     k < m_h = ⌈q·n_h⌉:  x = m_0 + … + m_(h-1) + k ──γ(epoch)──► another such number ──► (h, k) of any home
//     k ≥ m_h:            stays
//   (h, k) ──σ(epoch, h)──► own number of the sample in h ──► n_0 + … + n_(h-1) + number ──π──► id
//
// ρ spreads the dealt places over the epoch, σ makes the dealt samples fresh ones, γ deals. All are keyed bijections
// and have inverses. Two sums per home are all that is kept.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "plan/assignment.h"
#include "plan/keyed_bijection.h"
#include "plan/order.h"

namespace foreload {
namespace {

constexpr std::uint32_t kHomeTag = 0x686f6d65;
constexpr std::uint32_t kPlaceTag = 0x706c6163;
constexpr std::uint32_t kOwnTag = 0x6f776e20;
constexpr std::uint32_t kDealTag = 0x6465616c;
constexpr std::uint64_t kMostBatch = std::uint64_t{1} << 40;

struct Place {
  std::uint64_t home = 0;
  std::uint64_t index = 0;
};

class Partial final : public Order {
 public:
  explicit Partial(const ScheduleOptions& options);

  SampleId sample_at(Epoch epoch, Position position) const override;
  Position position_of(Epoch epoch, SampleId id) const override;

 private:
  std::uint64_t count(std::uint64_t home) const { return first_[home + 1] - first_[home]; }
  std::uint64_t dealt(std::uint64_t home) const { return first_dealt_[home + 1] - first_dealt_[home]; }
  Place place_at(Position position) const;
  Position position_at(const Place& place) const;
  KeyedBijection base() const { return {samples_, order_key(seed_, 0, kHomeTag)}; }
  KeyedBijection local(Epoch epoch, std::uint32_t tag, std::uint64_t home) const {
    return {count(home), order_key(order_key(seed_, epoch, tag), home)};
  }
  KeyedBijection deal(Epoch epoch) const { return {first_dealt_.back(), order_key(seed_, epoch, kDealTag)}; }

  std::uint64_t samples_;
  std::uint64_t seed_;
  std::uint64_t homes_;
  std::uint64_t batch_;
  std::uint64_t whole_;  // global batches; the rest is one that is shorter
  std::uint64_t rest_;
  std::vector<std::uint64_t> first_;        // per home: places of the homes before it
  std::vector<std::uint64_t> first_dealt_;  // per home: dealt places of the homes before it
};

// The entry of ascending sums in which `number` lies.
Place split(const std::vector<std::uint64_t>& sums, std::uint64_t number) {
  const auto home = static_cast<std::uint64_t>(std::upper_bound(sums.begin(), sums.end(), number) - sums.begin()) - 1;
  return {home, number - sums[home]};
}

Partial::Partial(const ScheduleOptions& options)
    : samples_(options.samples),
      seed_(options.seed),
      homes_(options.homes),
      batch_(std::min(options.global_batch, std::max<std::uint64_t>(options.samples, 1))) {
  FORELOAD_CHECK(homes_ > 0 && homes_ <= kMostHomes, "the options were checked: there are homes");
  FORELOAD_CHECK(batch_ > 0 && batch_ <= kMostBatch, "the options were checked: a global batch has samples");
  whole_ = samples_ / batch_;
  rest_ = samples_ % batch_;
  first_.resize(homes_ + 1);
  first_dealt_.resize(homes_ + 1);
  __extension__ using Wide = unsigned __int128;
  const Wide share = fixed_share(options.reshuffle);
  for (std::uint64_t home = 0; home < homes_; ++home) {
    first_[home + 1] = whole_ * slice_begin(batch_, home + 1, homes_) + slice_begin(rest_, home + 1, homes_);
    first_dealt_[home + 1] = first_dealt_[home] + static_cast<std::uint64_t>((share * count(home) + 0xffffffff) >> 32);
  }
}

Place Partial::place_at(Position position) const {
  const std::uint64_t step = position / batch_;
  const std::uint64_t length = step < whole_ ? batch_ : rest_;
  const std::uint64_t index = position % batch_;
  const std::uint64_t home = ((index + 1) * homes_ - 1) / length;
  const std::uint64_t each = slice_begin(batch_, home + 1, homes_) - slice_begin(batch_, home, homes_);
  return {home, step * each + index - slice_begin(length, home, homes_)};
}

Position Partial::position_at(const Place& place) const {
  const std::uint64_t begin = slice_begin(batch_, place.home, homes_);
  const std::uint64_t each = slice_begin(batch_, place.home + 1, homes_) - begin;
  if (place.index < whole_ * each) return place.index / each * batch_ + begin + place.index % each;
  return whole_ * batch_ + slice_begin(rest_, place.home, homes_) + place.index - whole_ * each;
}

SampleId Partial::sample_at(Epoch epoch, Position position) const {
  Place place = place_at(position);
  place.index = local(epoch, kPlaceTag, place.home).forward(place.index);
  if (place.index < dealt(place.home)) {
    place = split(first_dealt_, deal(epoch).forward(first_dealt_[place.home] + place.index));
  }
  const std::uint64_t own = local(epoch, kOwnTag, place.home).forward(place.index);
  return base().forward(first_[place.home] + own);
}

Position Partial::position_of(Epoch epoch, SampleId id) const {
  Place place = split(first_, base().backward(id));
  place.index = local(epoch, kOwnTag, place.home).backward(place.index);
  if (place.index < dealt(place.home)) {
    place = split(first_dealt_, deal(epoch).backward(first_dealt_[place.home] + place.index));
  }
  place.index = local(epoch, kPlaceTag, place.home).backward(place.index);
  return position_at(place);
}

}  // namespace

// A product with a power of two is exact, so every machine cuts off alike.
std::uint64_t fixed_share(double share) {
  return static_cast<std::uint64_t>(share * 4294967296.0);
}

std::unique_ptr<Order> partial_order(const ScheduleOptions& options) {
  return std::make_unique<Partial>(options);
}

}  // namespace foreload
