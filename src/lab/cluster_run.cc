// A batch's way: asked for when it is within reach of its learner → its bytes, by place: memory and disk of the host
// one after the other, storage and peers as flows in the order of need → prepared → computed → the barrier.
//
// Prep works on samples as they come, so a batch is ready when the cores have done its work since its first bytes, and
// not before its last sample has come and been prepared: max(free, begun) + work, fetched + one sample.
//
// What a host sends in a step goes over its link as one piece in the order of steps; who receives waits for the last of
// them. That is exact for hosts that send alike and else a bit late, by less than a step's bytes.
#include "lab/cluster_run.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace foreload {
namespace {

constexpr double kReadsAtOnce = 128;        // of a host, that loads ahead
constexpr std::uint64_t kStopEvery = 4096;  // events
constexpr std::uint32_t kStepOp = 0x57e9;
constexpr std::uint32_t kStragglerOp = 0x57a6;
constexpr ResourceId kStorageResource = 0;
constexpr ResourceId kRequestResource = 1;
constexpr ResourceId kBisectionResource = 2;
constexpr ResourceId kHostResources = 3;  // each host's storage client, then each host's link

Duration seconds(double value) {
  return Duration(static_cast<std::int64_t>(std::llround(value * 1e9)));
}

double as_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double standard_normal(KeyedRandom& random) {
  constexpr int kUniforms = 12;
  double sum = -kUniforms / 2.0;
  for (int i = 0; i < kUniforms; ++i) sum += random.unit32() / 0x1p32;
  return sum;
}

}  // namespace

std::vector<double> ClusterRun::capacities(const ClusterSetup& setup) {
  std::vector<double> made{setup.storage_rate, setup.storage_requests, setup.bisection};
  made.insert(made.end(), setup.hosts, setup.storage_host_rate);
  made.insert(made.end(), setup.hosts, setup.network_rate);
  return made;
}

ClusterRun::ClusterRun(const SystemScene& scene, LoadingSystem& system, RunOptions options)
    : scene_(scene),
      setup_(scene.setup),
      system_(system),
      options_(std::move(options)),
      traits_(system.traits()),
      per_epoch_(system.steps_per_epoch()),
      total_(per_epoch_ * setup_.epochs),
      ahead_(setup_.prefetch > 0 ? setup_.prefetch : traits_.ahead),
      flows_(capacities(setup_)),
      hosts_(setup_.hosts),
      straggling_(setup_.hosts, 1),
      tallies_(setup_.epochs) {
  make_feeders();
  report_.epochs.resize(setup_.epochs);
  for (Epoch epoch = 0; epoch < setup_.epochs; ++epoch) report_.epochs[epoch].epoch = epoch;
  for (HostIndex host = 0; host < setup_.hosts; ++host) {
    KeyedRandom random(setup_.seed, 0, host, kStragglerOp);
    if (random.unit32() / 0x1p32 < setup_.stragglers) straggling_[host] = setup_.straggler_factor;
  }
}

void ClusterRun::make_feeders() {
  const std::uint64_t per_host = setup_.learners / setup_.jobs;
  const std::uint64_t streams = traits_.prepares_once ? 1 : setup_.jobs;
  groups_.resize(traits_.pools_host ? 1 : streams);
  const std::uint64_t each = traits_.pools_host ? 1 : per_host * streams;
  const double cores = static_cast<double>(setup_.cores) / static_cast<double>(each);
  for (HostIndex host = 0; host < setup_.hosts; ++host) {
    for (std::uint64_t i = 0; i < each; ++i) {
      Feeder feeder{.host = host, .cores = cores};
      feeder.group = traits_.pools_host ? 0 : static_cast<std::uint32_t>(i / per_host);
      feeder.learners = traits_.pools_host ? per_host : 1;
      feeder.depth = traits_.blocks_workers ? std::max(1.0, cores) : kReadsAtOnce / static_cast<double>(each);
      ++groups_[feeder.group].feeders;
      feeders_.push_back(std::move(feeder));
    }
  }
}

Result<RunReport> ClusterRun::run() {
  for (std::uint32_t i = 0; i < options_.faults.size(); ++i) {
    events_.put(seconds(options_.faults[i].at), {.what = What::kFault, .who = i});
    events_.put(seconds(options_.faults[i].until), {.what = What::kMended, .who = i});
  }
  for (std::uint32_t feeder = 0; feeder < feeders_.size(); ++feeder) ask(feeder);
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    events_.put(Time{0}, {.what = What::kRelease, .who = group});
  std::uint64_t turns = 0;
  while (groups_done_ < groups_.size()) {
    if (++turns % kStopEvery == 0 && options_.stop && options_.stop()) return Error{Code::kCancelled, "stopped"};
    const std::optional<Time> end = flows_.next_end();
    if (end && (events_.is_empty() || *end <= events_.next())) {
      events_.advance(*end);
      const auto tags = flows_.ended(*end);
      for (const std::uint64_t tag : std::vector(tags.begin(), tags.end()))
        flow_ended(static_cast<std::uint32_t>(tag / 2), tag % 2 == 0 ? KeptAt::kStorage : KeptAt::kPeer);
      continue;
    }
    FORELOAD_CHECK(!events_.is_empty(), "every batch that is asked for comes, as no rate is 0 for ever");
    const Time at = events_.next();
    while (!events_.is_empty() && events_.next() == at && groups_done_ < groups_.size()) handle(events_.take());
  }
  report_.seconds = as_seconds(now());
  report_.events = events_.count();
  report_.record_hash = hash_.value();
  return std::move(report_);
}

void ClusterRun::record(const Happening& happening) {
  hash_.add(static_cast<std::uint64_t>(now().count()));
  hash_.add(static_cast<std::uint64_t>(happening.what) << 32 | happening.who).add(happening.number);
}

void ClusterRun::handle(const Happening& happening) {
  record(happening);
  const auto is_void = [&] { return feeders_[happening.who].turn != happening.turn; };
  switch (happening.what) {
    case What::kRelease:
      return release(happening.who);
    case What::kStartFlow:
      if (!is_void()) start_flow(happening.who, happening.place);
      return;
    case What::kPart:
      if (!is_void()) part_came(happening.who, happening.number);
      return;
    case What::kPrepared:
      if (is_void()) return;
      pending(feeders_[happening.who], happening.number).is_prepared = true;
      return feed(happening.who);
    case What::kStepped:
      if (!is_void()) stepped(happening.who, happening.number);
      return;
    case What::kFault:
      return fault(options_.faults[happening.who], true);
    case What::kMended:
      return fault(options_.faults[happening.who], false);
  }
}

// All learners of the group may begin with its step.
void ClusterRun::release(std::uint32_t index) {
  Group& group = groups_[index];
  group.is_released = true;
  for (std::uint32_t i = 0; i < feeders_.size(); ++i) {
    Feeder& feeder = feeders_[i];
    if (feeder.group != index || feeder.current != group.step || hosts_[feeder.host].is_dead) continue;
    feeder.is_hungry = true;
    feeder.hungry_since = now();
    if (!traits_.crosses_epochs) ask(i);
    feed(i);
  }
}

void ClusterRun::ask(std::uint32_t index) {
  Feeder& feeder = feeders_[index];
  if (hosts_[feeder.host].is_dead) return;
  std::uint64_t end = std::min(total_, feeder.current + 1 + ahead_);
  // Who does not look beyond an epoch begins with the next one when all have ended it.
  if (!traits_.crosses_epochs) end = std::min(end, (groups_[feeder.group].step / per_epoch_ + 1) * per_epoch_);
  while (feeder.asked < end) ask_step(index, feeder.asked++);
}

ClusterRun::Planned& ClusterRun::planned(std::uint64_t number) {
  while (number >= first_plan_ + plans_.size()) {
    const std::uint64_t next = first_plan_ + plans_.size();
    Planned& plan = plans_.emplace_back();
    plan.loads.clear(feeders_.size(), setup_.hosts);
    system_.plan(next / per_epoch_, next % per_epoch_, reach_, plan.loads);
    plan.left = feeders_.size();
    send(plan);
    EpochReport& epoch = report_.epochs[next / per_epoch_];
    for (const Amount& amount : plan.loads.sent) epoch.sent.add(amount);
  }
  return plans_[number - first_plan_];
}

Time ClusterRun::serve(Time& free, Bytes bytes, double rate) const {
  free = std::max(free, now()) + seconds(static_cast<double>(bytes) / rate);
  return free;
}

void ClusterRun::send(Planned& plan) {
  for (HostIndex host = 0; host < setup_.hosts; ++host) {
    const Amount& amount = plan.loads.sent[host];
    if (amount.bytes == 0) continue;
    HostState& state = hosts_[host];
    if (plan.loads.sent_from_disk[host].bytes > 0)
      plan.peers_ready =
          std::max(plan.peers_ready, serve(state.disk_free, plan.loads.sent_from_disk[host].bytes, setup_.disk_rate));
    plan.peers_ready =
        std::max(plan.peers_ready, serve(state.link_free, amount.bytes, setup_.network_rate / state.link_slow));
  }
}

const Load& ClusterRun::load_of(const Feeder& feeder, std::uint64_t number) {
  return planned(number).loads.feeders[static_cast<std::size_t>(&feeder - feeders_.data())];
}

void ClusterRun::ask_step(std::uint32_t index, std::uint64_t number) {
  Feeder& feeder = feeders_[index];
  const Load& load = load_of(feeder, number);
  feeder.pending.push_back({.begun = Time::max(), .fetched = now()});
  Pending& batch = feeder.pending.back();
  if (!traits_.loads) {
    batch.is_prepared = true;
    return;
  }
  EpochReport& epoch = report_.epochs[number / per_epoch_];
  for (std::size_t place = 0; place < kPlaces; ++place) epoch.from[place].add(load.from[place]);
  epoch.for_others.add(load.for_others);
  HostState& host = hosts_[feeder.host];
  const Bytes in_memory = load.at(KeptAt::kMemory).bytes;
  const Bytes on_disk = load.at(KeptAt::kDisk).bytes;
  if (in_memory + on_disk > 0) {
    ++batch.parts;
    batch.begun = now();
    const Time memory = in_memory > 0 ? serve(host.memory_free, in_memory, setup_.memory_rate) : now();
    const Time disk = on_disk > 0 ? serve(host.disk_free, on_disk, setup_.disk_rate) : now();
    events_.put(std::max(memory, disk), {.what = What::kPart, .turn = feeder.turn, .who = index, .number = number});
  }
  for (const KeptAt place : {KeptAt::kStorage, KeptAt::kPeer}) {
    if (load.at(place).bytes == 0) continue;
    ++batch.parts;
    Lane& queue = lane(feeder, place);
    queue.steps.push_back(number);
    if (queue.steps.size() > 1) continue;
    const double latency = place == KeptAt::kStorage ? setup_.storage_latency : setup_.network_latency;
    events_.put(now() + seconds(latency),
                {.what = What::kStartFlow, .place = place, .turn = feeder.turn, .who = index});
  }
  if (batch.parts == 0) prepare(index, number);
}

void ClusterRun::start_flow(std::uint32_t index, KeptAt place) {
  Feeder& feeder = feeders_[index];
  const std::uint64_t number = lane(feeder, place).steps.front();
  const Amount& amount = load_of(feeder, number).at(place);
  const auto bytes = static_cast<double>(amount.bytes);
  const double per_byte = static_cast<double>(amount.samples) / bytes;
  const auto hosts = static_cast<ResourceId>(setup_.hosts);
  Flows::Path path{.limit = std::numeric_limits<double>::infinity()};
  if (place == KeptAt::kStorage) {
    path.through(kStorageResource);
    if (std::isfinite(setup_.storage_requests)) path.through(kRequestResource, per_byte);
    path.through(kHostResources + feeder.host);
    if (setup_.storage_on_network != 0) path.through(kHostResources + hosts + feeder.host);
    if (setup_.storage_latency > 0) path.limit = feeder.depth / per_byte / setup_.storage_latency;
  } else {
    path.through(kBisectionResource);
    path.through(kHostResources + hosts + feeder.host);
  }
  Pending& batch = pending(feeder, number);
  batch.begun = std::min(batch.begun, now());
  flows_.start(now(), path, bytes, std::uint64_t{index} * 2 + (place == KeptAt::kStorage ? 0 : 1));
}

void ClusterRun::flow_ended(std::uint32_t index, KeptAt place) {
  Feeder& feeder = feeders_[index];
  Lane& queue = lane(feeder, place);
  const std::uint64_t number = queue.steps.front();
  queue.steps.pop_front();
  record({.what = What::kPart, .place = place, .who = index, .number = number});
  const Time sent = place == KeptAt::kPeer ? planned(number).peers_ready : Time{0};
  if (sent > now()) {
    events_.put(sent, {.what = What::kPart, .turn = feeder.turn, .who = index, .number = number});
  } else {
    part_came(index, number);
  }
  if (!queue.steps.empty()) start_flow(index, place);
}

void ClusterRun::part_came(std::uint32_t index, std::uint64_t number) {
  if (--pending(feeders_[index], number).parts == 0) prepare(index, number);
}

void ClusterRun::prepare(std::uint32_t index, std::uint64_t number) {
  Feeder& feeder = feeders_[index];
  Pending& batch = pending(feeder, number);
  const Load& load = load_of(feeder, number);
  const double slow = hosts_[feeder.host].slow;
  const double one = slow / setup_.prep;
  double work = static_cast<double>(load.samples) * one;
  if (traits_.blocks_workers) work += static_cast<double>(load.at(KeptAt::kStorage).samples) * setup_.storage_latency;
  batch.fetched = now();
  feeder.prep_free = std::max(feeder.prep_free, std::min(batch.begun, now())) + seconds(work / feeder.cores);
  const Time ready = std::max(feeder.prep_free, now() + seconds(load.samples > 0 ? one : 0));
  events_.put(ready, {.what = What::kPrepared, .turn = feeder.turn, .who = index, .number = number});
}

// The slowest learner of the feeder; `sum`: what all of them compute.
double ClusterRun::compute_seconds(const Feeder& feeder, std::uint64_t number, std::uint64_t samples,
                                   double& sum) const {
  const double each = std::ceil(static_cast<double>(samples) / static_cast<double>(feeder.learners));
  const double plain = each / setup_.accelerator * straggling_[feeder.host] * hosts_[feeder.host].slow;
  sum = plain * static_cast<double>(feeder.learners);
  if (setup_.jitter == 0) return plain;
  const auto first = static_cast<std::uint64_t>(&feeder - feeders_.data()) * feeder.learners;
  double longest = 0;
  sum = 0;
  for (std::uint64_t learner = 0; learner < feeder.learners; ++learner) {
    KeyedRandom random(setup_.seed, number, first + learner, kStepOp);
    const double one = plain * std::max(0.1, 1 + setup_.jitter * standard_normal(random));
    longest = std::max(longest, one);
    sum += one;
  }
  return longest;
}

void ClusterRun::feed(std::uint32_t index) {
  Feeder& feeder = feeders_[index];
  if (!feeder.is_hungry || feeder.pending.empty() || !feeder.pending.front().is_prepared) return;
  feeder.is_hungry = false;
  const Pending& batch = feeder.pending.front();
  const double waited = as_seconds(now() - feeder.hungry_since);
  const double fetching = std::clamp(as_seconds(batch.fetched - feeder.hungry_since), 0.0, waited);
  double sum = 0;
  const std::uint64_t number = feeder.current;
  const double compute = compute_seconds(feeder, number, load_of(feeder, number).samples, sum);
  Tally& tally = tallies_[number / per_epoch_];
  const auto learners = static_cast<double>(feeder.learners);
  tally.busy += sum;
  tally.fetch += fetching * learners;
  tally.prep += (waited - fetching) * learners;
  tally.waits.push_back(static_cast<float>(waited));
  events_.put(now() + seconds(compute), {.what = What::kStepped, .turn = feeder.turn, .who = index, .number = number});
}

void ClusterRun::stepped(std::uint32_t index, std::uint64_t number) {
  Feeder& feeder = feeders_[index];
  feeder.pending.pop_front();
  ++feeder.current;
  --planned(number).left;
  while (!plans_.empty() && plans_.front().left == 0) {
    EpochReport& epoch = report_.epochs[first_plan_ / per_epoch_];
    epoch.order_hash += plans_.front().loads.order_hash;
    epoch.positions += plans_.front().loads.positions;
    plans_.pop_front();
    ++first_plan_;
  }
  ask(index);
  Group& group = groups_[feeder.group];
  if (++group.arrived == group.feeders) step_done(group, feeder.group);
}

double ClusterRun::reduce_seconds() const {
  const auto world = static_cast<double>(setup_.job_world());
  if (setup_.gradient == 0 || world == 1) return 0;
  return 2 * (world - 1) / world * static_cast<double>(setup_.gradient) / setup_.network_rate +
         2 * std::ceil(std::log2(world)) * setup_.network_latency;
}

void ClusterRun::step_done(Group& group, std::uint32_t index) {
  const Time released = now() + seconds(reduce_seconds());
  group.arrived = 0;
  group.is_released = false;
  ++group.step;
  if (group.step % per_epoch_ == 0) {
    EpochReport& epoch = report_.epochs[group.step / per_epoch_ - 1];
    epoch.seconds = std::max(epoch.seconds, as_seconds(released - group.epoch_began));
    group.epoch_began = released;
  }
  if (group.step == total_) {
    if (++groups_done_ == groups_.size()) {
      events_.advance(released);
      for (Epoch epoch = 0; epoch < setup_.epochs; ++epoch) sum_up(epoch);
    }
    return;
  }
  events_.put(released, {.what = What::kRelease, .who = index});
}

}  // namespace foreload
