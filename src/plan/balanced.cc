// One global batch: look up ids, homes and lengths of its samples; make units of them with a cost at home and
// elsewhere; deal them to hosts and learners (unit_dealing.cc); write each learner's offsets, ascending, by a counting
// sort.
//
// Counts depend only on the batch's length, and an epoch has at most two of them: they are made once. A last unit that
// is not whole stays with the last learner that has any, as in slices, so that everybody's count of samples is fixed,
// too; it is not dealt.
#include "plan/balanced.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 28;

// What a sample costs is counted in blocks, the first for the asking. So a cost of at most 255 per block fits in 32
// bits.
constexpr unsigned kBlockBits = 8;

std::uint32_t blocks(std::uint32_t length) {
  return 1 + (length >> kBlockBits);
}

std::uint32_t sum_of_costs(std::uint32_t a, std::uint32_t b) {
  return a > ~b ? ~std::uint32_t{0} : a + b;
}

// Units of each learner in proportion to the rates: rounded down, and what is left to the largest remainders.
std::vector<std::uint32_t> proportional(std::uint64_t units, std::span<const std::uint32_t> rates) {
  const std::uint64_t sum = std::accumulate(rates.begin(), rates.end(), std::uint64_t{0});
  std::vector<std::uint32_t> counts;
  std::vector<std::pair<std::uint64_t, std::size_t>> by_remainder;
  std::uint64_t left = units;
  for (std::size_t rank = 0; rank < rates.size(); ++rank) {
    const std::uint64_t product = units * rates[rank];
    counts.push_back(static_cast<std::uint32_t>(product / sum));
    by_remainder.emplace_back(sum - product % sum, rank);
    left -= counts.back();
  }
  std::ranges::sort(by_remainder);
  for (std::size_t i = 0; i < left; ++i) ++counts[by_remainder[i].second];
  return counts;
}

std::vector<std::uint32_t> equal(std::uint64_t units, std::uint64_t world) {
  std::vector<std::uint32_t> counts;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    counts.push_back(static_cast<std::uint32_t>(slice_begin(units, rank + 1, world) - slice_begin(units, rank, world)));
  }
  return counts;
}

}  // namespace

HostLoad BalancedStep::total() const {
  HostLoad sum;
  for (const HostLoad& load : loads_) {
    sum.received += load.received;
    sum.received_bytes += load.received_bytes;
    sum.missed += load.missed;
    sum.missed_bytes += load.missed_bytes;
  }
  return sum;
}

BalancedAssignment::BalancedAssignment(const Schedule& schedule, const SliceAssignment& slice, Roster roster,
                                       HostPlacement placement, const std::function<Bytes(SampleId)>& length)
    : schedule_(schedule), slice_(slice), roster_(std::move(roster)), placement_(std::move(placement)) {
  const JobShape& shape = slice.shape();
  FORELOAD_CHECK(shape.world == roster_.world(), "a job has the learners of its roster");
  FORELOAD_CHECK(shape.samples == schedule.size(), "the shape is that of the schedule");
  FORELOAD_CHECK(placement_.samples() == schedule.options().samples, "the placement is of the schedule's samples");
  FORELOAD_CHECK(std::min(shape.global_batch, slice.positions_per_epoch()) <= kMostSamples,
                 "the options were checked: a global batch fits in memory");
  const OriginCosts& costs = roster_.costs();
  costs_ = {{{costs.own_memory, costs.peer_memory}, {costs.source, costs.source}, {costs.own_disk, costs.peer_disk}}};
  lengths_.resize(placement_.samples());
  for (SampleId id = 0; id < lengths_.size(); ++id) {
    lengths_[id] = static_cast<std::uint32_t>(std::min<Bytes>(length(id), std::numeric_limits<std::uint32_t>::max()));
  }
  if (slice_.batches_per_epoch() == 0) return;
  full_ = divide(slice_.batch_size(0));
  last_ = divide(slice_.batch_size(slice_.batches_per_epoch() - 1));
}

BalancedAssignment::Division BalancedAssignment::divide(std::uint64_t length) const {
  const std::uint64_t unit = slice_.shape().unit;
  const std::uint64_t rest = length % unit;
  const std::uint64_t units = length / unit + (rest > 0 ? 1 : 0);
  Division division;
  division.length = length;
  division.of_learners = roster_.equal_rates() ? equal(units, roster_.world()) : proportional(units, roster_.rates());
  for (std::uint32_t rank = 0; rank < roster_.world(); ++rank) {
    if (division.of_learners[rank] > 0) division.rest_rank = rank;
  }
  if (rest > 0) --division.of_learners[division.rest_rank];
  division.of_hosts.resize(roster_.hosts().size());
  std::uint64_t end = 0;
  for (std::uint32_t rank = 0; rank < roster_.world(); ++rank) {
    division.begins.push_back(static_cast<std::uint32_t>(end));
    end += division.of_learners[rank] * unit + (rank == division.rest_rank ? rest : 0);
    division.of_hosts[roster_.host_of(rank)] += division.of_learners[rank];
  }
  division.begins.push_back(static_cast<std::uint32_t>(end));
  return division;
}

const BalancedAssignment::Division& BalancedAssignment::division(std::uint64_t step) const {
  return slice_.batch_size(step) == full_.length ? full_ : last_;
}

std::uint64_t BalancedAssignment::count(std::uint64_t step, std::uint32_t rank) const {
  FORELOAD_CHECK(rank < roster_.world(), "ranks are 0 … world-1");
  const std::vector<std::uint32_t>& begins = division(step).begins;
  return begins[rank + 1] - begins[rank];
}

void BalancedAssignment::plan(Epoch epoch, std::uint64_t step, BalancedStep& out) const {
  const Division& division = this->division(step);
  look_up(epoch, step, out);
  const std::uint64_t unit = slice_.shape().unit;
  out.dealing_.units.resize(division.length / unit);
  if (unit == 1) {
    weigh_samples(out);
  } else {
    for (std::size_t i = 0; i < division.length / unit; ++i) weigh_unit(i, out);
  }
  out.dealing_.to_hosts(division.of_hosts);
  out.dealing_.to_learners(division.of_learners, roster_.first_ranks());
  write(division, out);
}

void BalancedAssignment::look_up(Epoch epoch, std::uint64_t step, BalancedStep& out) const {
  const std::uint64_t length = slice_.batch_size(step);
  const Position first = step * slice_.shape().global_batch;
  out.ids_.resize(length);
  out.homes_.resize(length);
  out.lengths_.resize(length);
  const std::uint64_t unpadded = std::min(length, schedule_.size() - std::min(schedule_.size(), first));
  if (unpadded > 0) schedule_.samples_at(epoch, first, std::span(out.ids_).first(unpadded));
  for (std::uint64_t i = unpadded; i < length; ++i) {
    out.ids_[i] = schedule_.sample_at(epoch, slice_.source_position(first + i));
  }
  for (std::uint64_t i = 0; i < length; ++i) {
    out.homes_[i] = placement_.home(out.ids_[i]);
    out.lengths_[i] = lengths_[out.ids_[i]];
  }
}

// The number of hosts stands for nobody.
std::uint16_t BalancedAssignment::host_slot(Home home) const {
  return static_cast<std::uint16_t>(std::min<std::size_t>(home.host(), roster_.hosts().size()));
}

void BalancedAssignment::weigh_samples(BalancedStep& out) const {
  Units& units = out.dealing_.units;
  for (std::size_t i = 0; i < units.homes.size(); ++i) {
    const Home home = out.homes_[i];
    const BlockCosts& costs = costs_[home.kind()];
    units.homes[i] = host_slot(home);
    units.own[i] = costs.own * blocks(out.lengths_[i]);
    units.away[i] = costs.away * blocks(out.lengths_[i]);
  }
}

// The home of a unit is the host that is home of most of its bytes, of equals the first. Elsewhere all its samples
// count as away.
void BalancedAssignment::weigh_unit(std::size_t unit, BalancedStep& out) const {
  const std::uint64_t size = slice_.shape().unit;
  const std::span<const Home> homes = std::span(out.homes_).subspan(unit * size, size);
  const std::span<const std::uint32_t> lengths = std::span(out.lengths_).subspan(unit * size, size);
  const auto bytes_at = [&](HostIndex host) {
    Bytes bytes = 0;
    for (std::size_t i = 0; i < size; ++i) bytes += homes[i].host() == host ? lengths[i] : 0;
    return bytes;
  };
  Home chosen;
  for (const Home& home : homes) {
    if (!home.exists() || home.host() == chosen.host()) continue;
    const Bytes more = bytes_at(home.host());
    const Bytes most = chosen.exists() ? bytes_at(chosen.host()) : 0;
    if (!chosen.exists() || more > most || (more == most && home.host() < chosen.host())) chosen = home;
  }
  Units& units = out.dealing_.units;
  units.homes[unit] = host_slot(chosen);
  units.own[unit] = units.away[unit] = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const BlockCosts& costs = costs_[homes[i].kind()];
    const bool is_own = homes[i].exists() && homes[i].host() == chosen.host();
    units.own[unit] = sum_of_costs(units.own[unit], (is_own ? costs.own : costs.away) * blocks(lengths[i]));
    units.away[unit] = sum_of_costs(units.away[unit], costs.away * blocks(lengths[i]));
  }
}

void BalancedAssignment::write(const Division& division, BalancedStep& out) const {
  const std::uint64_t unit = slice_.shape().unit;
  out.begins_ = division.begins;
  out.cursors_ = division.begins;
  out.offsets_.resize(division.length);
  out.loads_.assign(roster_.hosts().size(), {});
  const auto take = [&](std::uint64_t offset, std::uint32_t rank, HostIndex host) {
    out.offsets_[out.cursors_[rank]++] = static_cast<std::uint32_t>(offset);
    if (out.homes_[offset].host() == host) return;
    HostLoad& load = out.loads_[host];
    const bool missed = !out.homes_[offset].exists();
    (missed ? load.missed : load.received) += 1;
    (missed ? load.missed_bytes : load.received_bytes) += out.lengths_[offset];
  };
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < out.dealing_.hosts().size(); ++i) {
    const std::uint64_t end = offset + unit;
    for (; offset < end; ++offset) take(offset, out.dealing_.learners()[i], out.dealing_.hosts()[i]);
  }
  for (; offset < division.length; ++offset) {
    take(offset, division.rest_rank, roster_.host_of(division.rest_rank));
  }
}

}  // namespace foreload
