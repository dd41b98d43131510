// After every event the loader does all that it may at that moment, in the order in which the fetcher does it: open
// slots, ask in the order of need while there is room, start reads, fill; then the workers get what is ready.
#include "policy/flow_simulation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "policy/prep_order.h"
#include "policy/rewriting.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMostReads = 128;
constexpr Duration kLookAgain = 5ms;  // when it was no time for background work

// Half to one and a half of it, the same for the same sample in every run.
Duration varied(Duration mean, std::uint64_t step, std::uint64_t index) {
  const std::uint64_t mixed = (step * 1009 + index) * 0x9e3779b97f4a7c15ull;
  return mean / 2 + mean * static_cast<std::int64_t>(mixed >> 54) / 1024;
}

}  // namespace

Duration FlowReport::wait_quantile(double p) const {
  std::vector<Duration> sorted = waits;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1))];
}

Duration FlowReport::waited() const {
  return std::accumulate(waits.begin(), waits.end(), Duration{});
}

FlowSimulation::FlowSimulation(const FlowScene& scene)
    : scene_(scene),
      pacer_({.max_depth = kMostReads, .batch = scene.batch, .slots = scene.slots}),
      batches_(scene.steps) {
  report_.waits.resize(scene.steps);
  report_.bytes_complete.resize(scene.steps);
  report_.published.resize(scene.steps);
  report_.started.resize(scene.steps);
}

FlowReport FlowSimulation::run() {
  hungry_ = now_;
  turn();
  while (learner_ < scene_.steps && !events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    report_.prep_idle += (event.at - now_) * static_cast<std::int64_t>(scene_.workers - busy_);
    now_ = event.at;
    handle(event);
    turn();
  }
  report_.elapsed = now_;
  return report_;
}

void FlowSimulation::handle(const Event& event) {
  switch (event.what) {
    case What::kRead:
    case What::kFilled:
      --in_flight_;
      pacer_.on_read_done(now_, {.bytes = scene_.sample, .took = now_ - event.begun, .in_flight = in_flight_});
      if (event.what == What::kFilled) {
        ++report_.filled;
        --filling_;
      } else {
        ++batches_[event.batch].passing;
        ++batches_[event.batch].read;
        arrive(event.batch);
      }
      return;
    case What::kPrepared:
      --busy_;
      if (event.passing) --in_transit_;
      if (++batches_[event.batch].prepared == scene_.batch) report_.published[event.batch] = now_;
      return;
    case What::kRewritten:
      --rewriting_;
      ++report_.rewritten;
      return;
    case What::kStepped:
      hungry_ = now_;
      ++learner_;
      return;
    case What::kLook:
      look_planned_ = false;
      return;
  }
}

void FlowSimulation::turn() {
  feed_learner();
  open_slots();
  ask_ahead();
  start_reads();
  if (scene_.fills) fill();
  give_work();
  if (scene_.rewrite > Duration{}) rewrite();
}

void FlowSimulation::later(Duration in, Event event) {
  event.at = now_ + in;
  event.order = events_made_++;
  event.begun = now_;
  events_.push(event);
}

void FlowSimulation::feed_learner() {
  if (!hungry_ || learner_ == scene_.steps || batches_[learner_].prepared < scene_.batch) return;
  report_.waits[learner_] = now_ - *hungry_;
  hungry_.reset();
  later(scene_.step + (scene_.pause ? scene_.pause(learner_) : Duration{}), {.what = What::kStepped});
}

void FlowSimulation::open_slots() {
  for (; open_end_ < std::min(learner_ + scene_.slots, scene_.steps); ++open_end_) pacer_.on_slot_opened(now_);
}

void FlowSimulation::ask_ahead() {
  const std::uint64_t end = std::min(open_end_ + pacer_.lookahead_batches(), scene_.steps);
  while (ask_step_ < end) {
    if (scene_.cached(ask_step_, ask_index_)) {
      arrive(ask_step_);
    } else {
      if (in_transit_ == scene_.transit) return;
      ++in_transit_;
      pacer_.on_asked(Origin::kSource, scene_.sample);
      waiting_.push(ask_step_);
    }
    if (++ask_index_ < scene_.batch) continue;
    ++ask_step_;
    ask_index_ = 0;
  }
}

void FlowSimulation::start_reads() {
  for (; !waiting_.empty() && pacer_.may_start(Origin::kSource, in_flight_); waiting_.pop()) {
    read({.what = What::kRead, .batch = waiting_.front()});
    ++report_.started[std::min(learner_, scene_.steps - 1)];
    ++report_.stream_reads;
  }
}

void FlowSimulation::read(const Event& event) {
  const auto transfer = 1e9 * static_cast<double>(scene_.sample) / scene_.bytes_per_second;
  link_free_ = std::max(now_, link_free_) + Duration(static_cast<std::int64_t>(transfer));
  later(link_free_ - now_ + varied(scene_.latency, event.batch, batches_[event.batch].arrived), event);
  ++in_flight_;
}

void FlowSimulation::arrive(std::uint64_t batch) {
  ++batches_[batch].ready;
  if (++batches_[batch].arrived == scene_.batch) report_.bytes_complete[batch] = now_;
}

// What the learner's batch and those behind it still need from storage, as far as it looks ahead.
std::vector<Bytes> FlowSimulation::lacking() const {
  std::vector<Bytes> bytes;
  for (std::uint64_t step = learner_; step < open_end_ + pacer_.lookahead_batches(); ++step) {
    std::uint64_t samples = 0;
    if (step >= scene_.steps) {
      bytes.push_back(0);
      continue;
    }
    for (std::uint64_t i = 0; i < scene_.batch; ++i) samples += scene_.cached(step, i) ? 0 : 1;
    bytes.push_back((samples - batches_[step].read) * scene_.sample);
  }
  return bytes;
}

void FlowSimulation::fill() {
  const std::vector<Bytes> coming = scene_.unasked ? std::vector<Bytes>() : lacking();
  for (;;) {
    if (!pacer_.may_fill(Origin::kSource, in_flight_, waiting_.size())) return;
    const Need need = pacer_.tightest(now_, Origin::kSource, coming, filling_ * scene_.sample);
    if (!scene_.unasked && !pacer_.has_time(now_, Origin::kSource, scene_.sample, need)) return look_again();
    pacer_.on_asked(Origin::kSource, scene_.sample);
    ++filling_;
    read({.what = What::kFilled});
  }
}

void FlowSimulation::give_work() {
  while (busy_ + rewriting_ < scene_.workers) {
    std::vector<PrepCandidate> open;
    for (std::uint64_t number = learner_; number < open_end_; ++number) {
      open.push_back({static_cast<std::uint32_t>(number - learner_), number, batches_[number].ready});
    }
    // Backwards, so that the order of the candidates says nothing.
    std::reverse(open.begin(), open.end());
    const auto chosen = soonest_needed(open);
    if (!chosen) return;
    Batch& batch = batches_[learner_ + *chosen];
    --batch.ready;
    const bool passing = batch.passing > 0;
    if (passing) --batch.passing;
    ++busy_;
    later(varied(scene_.prep, learner_ + *chosen, batch.prepared),
          {.what = What::kPrepared, .batch = learner_ + *chosen, .passing = passing});
  }
}

void FlowSimulation::rewrite() {
  std::uint64_t first = learner_ + (hungry_ ? 0 : 1);
  std::uint64_t published = 0;
  for (; first < open_end_ && batches_[first].prepared == scene_.batch; ++first) ++published;
  while (busy_ + rewriting_ < scene_.workers) {
    const RewriteChance chance{.idle = true,
                               .bytes_missing = published == 0 && busy_ + rewriting_ + 1 < scene_.workers,
                               .slack = pacer_.pace().slack(now_, published + 1),
                               .cost = scene_.rewrite * (rewriting_ + 1) / scene_.workers};
    if (!scene_.unasked && !should_rewrite(Rewrite::kAuto, chance)) return look_again();
    ++rewriting_;
    later(scene_.rewrite, {.what = What::kRewritten});
  }
}

void FlowSimulation::look_again() {
  if (std::exchange(look_planned_, true)) return;
  later(kLookAgain, {.what = What::kLook});
}

}  // namespace foreload
