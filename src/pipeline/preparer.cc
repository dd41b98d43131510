#include "pipeline/preparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "source/describe.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookAgain = 5ms;  // whether there is time for a rewrite
constexpr int kCostMemory = 8;        // rewrites over which their cost is averaged

}  // namespace

void Preparer::run(std::uint16_t worker) {
  // Workers fill all cores; the consumer, which feeds an accelerator, must not wait for one of them to leave.
  yield_to_others();
  Tools tools{.runner = ChainRunner(parts_.chain)};
  for (;;) {
    const std::uint32_t seen = parts_.ring.work_signal();
    if (parts_.ring.stopped()) return;
    if (const auto item = parts_.ring.claim()) {
      prepare(tools, *item, worker);
      (void)rewrite_one(tools, false);
      continue;
    }
    const Spare spare = rewrite_one(tools, true);
    if (spare == Spare::kUsed) continue;
    const Time until = spare == Spare::kNoTime ? now() + kLookAgain : kNever;
    if (!parts_.ring.wait_for_work(seen, until)) return;
  }
}

RewriteChance Preparer::chance(const Tools& tools, bool idle) const {
  const unsigned ready = parts_.ring.published();
  RewriteChance chance{.idle = idle, .bytes_missing = ready == 0 && parts_.ring.sleeping_workers() > 0};
  if (parts_.epochs != 0) chance.epochs_left = parts_.epochs - 1 - std::min(tools.epoch, parts_.epochs - 1);
  chance.slack = parts_.fetcher.pace().slack(now(), ready + 1);
  chance.cost = Duration(rewrite_cost_.load()) * (rewriting_ + 1) / parts_.workers;  // the others work on
  return chance;
}

Preparer::Spare Preparer::rewrite_one(Tools& tools, bool idle) {
  if (parts_.rewrite == Rewrite::kOff || (parts_.rewrite == Rewrite::kAuto && !idle)) return Spare::kNothingToDo;
  if (!parts_.rewriter.has_offers()) return Spare::kNothingToDo;
  if (!should_rewrite(parts_.rewrite, chance(tools, idle))) return Spare::kNoTime;
  if (!tools.rewriter) tools.rewriter.emplace();
  const Time started = now();
  ++rewriting_;
  const bool worked = parts_.rewriter.step(*tools.rewriter);
  --rewriting_;
  if (!worked) return Spare::kNothingToDo;
  const Duration::rep took = (now() - started).count();
  const Duration::rep before = rewrite_cost_;
  rewrite_cost_ = before == 0 ? took : before + (took - before) / kCostMemory;
  parts_.fetcher.lease_dropped();
  return Spare::kUsed;
}

void Preparer::prepare(Tools& tools, RingItem item, std::uint16_t worker) {
  ChainRunner& runner = tools.runner;
  Work work = std::move(parts_.works.at(item));
  const Time started = now();
  tools.epoch = parts_.ring.plan_of(item.slot).epoch;
  record(EventKind::kPrepStarted, item, worker, work.id, work.lease.bytes().size());
  const Status status = work.error ? Status(*work.error) : transform(runner, work, item);
  if (!status.ok() && work.part && status.error().code == Code::kBadSample) {
    // That says nothing about the whole sample.
    parts_.ring.give_back(item);
    return parts_.fetcher.complete(item, std::move(work));
  }
  if (status.ok() && !runner.damaged() && !work.part && parts_.rewrite != Rewrite::kOff) {
    parts_.rewriter.offer(work.id, work.lease.bytes());
  }
  work.lease = Lease();
  parts_.fetcher.work_done();
  const Duration busy = now() - started;
  record(EventKind::kPrepDone, item, worker, work.id, static_cast<std::uint64_t>(busy.count()));
  if (status.ok()) {
    const Prepared prepared{work.id, parts_.source.label(work.id), busy, runner.damaged(), runner.length()};
    if (parts_.ring.finish(item, prepared)) complete(item.slot, worker);
  } else if (reject(item, work, status.error())) {
    complete(item.slot, worker);
  }
}

// All samples of the slot are done, so it is this thread's alone. A batch with a failed sample is delivered as the
// error.
void Preparer::complete(std::uint32_t slot, std::uint16_t worker) {
  Ring& ring = parts_.ring;
  const Time started = now();
  const BatchPlan plan = ring.plan_of(slot);  // before it is published: the slot may be another's then
  if (parts_.chain.has_batch_stage() && !ring.error_of(slot)) {
    parts_.chain.finish_batch({.seed = parts_.seed,
                               .epoch = plan.epoch,
                               .first = plan.first,
                               .samples = parts_.positions,
                               .count = plan.count,
                               .sample_bytes = parts_.chain.output().bytes(),
                               .tensors = ring.tensors(slot),
                               .offsets = ring.lengths(slot),
                               .labels = ring.labels(slot),
                               .mixes = ring.mixes(slot)});
  }
  ring.publish(slot, now() - started);
  record_published(plan, slot, worker);
}

Status Preparer::transform(ChainRunner& runner, const Work& work, RingItem item) {
  const BatchPlan plan = parts_.ring.plan_of(item.slot);
  const PrepKey key{.seed = parts_.seed, .epoch = plan.epoch, .position = plan.first + item.index};
  RowHint rows{.offsets = parts_.source.rows(work.id)};
  if (work.part) {
    rows.first = work.part->first_row;
    rows.end = work.part->end_row;
  }
  FORELOAD_ASSIGN(const Bytes needed, runner.begin(work.lease.bytes(), key, rows));
  parts_.dimensions.note(work.id, runner.dimensions());
  ScratchPool& scratch = parts_.scratch;
  if (runner.scratch_bytes() + needed > scratch.own_share()) runner.trim(0);  // what an earlier sample left
  if (needed <= scratch.own_share()) return runner.finish(parts_.ring.tensor(item));
  if (needed > scratch.largest()) {
    return Error{Code::kNoMemory,
                 fmt::format("preparing it needs {} of memory, and the budget leaves {} for one sample; raise "
                             "the memory budget or remove the sample",
                             format_bytes(needed), format_bytes(scratch.largest()))};
  }
  const Bytes extra = needed - scratch.own_share();
  if (!scratch.take(extra)) return Error{Code::kCancelled, "the loader is closing"};
  const Status status = runner.finish(parts_.ring.tensor(item));
  runner.trim(scratch.own_share());
  scratch.give(extra);
  return status;
}

// A bad sample ends the run or is replaced; whatever else is wrong always ends it. True: it was the slot's last.
bool Preparer::reject(RingItem item, const Work& work, const Error& error) {
  const bool is_named = error.code != Code::kBadSample && error.code != Code::kNoMemory;  // the source tier names it
  const std::string name = is_named ? "" : describe_sample(parts_.source, work.id) + ": ";
  const Error named{error.code, name + error.message};
  if (error.code != Code::kBadSample) return parts_.ring.fail(item, named);
  if (parts_.on_error == OnError::kFail) {
    return parts_.ring.fail(
        item, {named.code, named.message + ". Remove it, or let another sample take its place (on-error: replace)"});
  }
  const BatchPlan plan = parts_.ring.plan_of(item.slot);
  const Position position = plan.first + item.index;
  if (!parts_.quarantine.add({plan.epoch, position, work.id, parts_.source.key(work.id), error.message})) {
    return parts_.ring.fail(
        item, {error.code, fmt::format("{} samples were replaced already, which is the limit; the next bad one is {}",
                                       parts_.quarantine.cap(), named.message)});
  }
  if (parts_.record != nullptr) {
    parts_.record->append({.time = now(),
                           .kind = EventKind::kReplaced,
                           .epoch = static_cast<std::uint32_t>(plan.epoch),
                           .position = position,
                           .a = work.id,
                           .c = work.attempt + 1});
  }
  parts_.ring.give_back(item);
  parts_.fetcher.substitute(item, work.attempt + 1);
  return false;
}

void Preparer::record(EventKind kind, RingItem item, std::uint16_t worker, std::uint64_t a, std::uint64_t b) {
  if (parts_.record == nullptr) return;
  const BatchPlan plan = parts_.ring.plan_of(item.slot);
  parts_.record->append({.time = now(),
                         .kind = kind,
                         .thread = worker,
                         .epoch = static_cast<std::uint32_t>(plan.epoch),
                         .position = plan.first + item.index,
                         .a = a,
                         .b = b});
}

void Preparer::record_published(const BatchPlan& plan, std::uint32_t slot, std::uint16_t worker) {
  if (parts_.record == nullptr) return;
  parts_.record->append({.time = now(),
                         .kind = EventKind::kPublished,
                         .thread = worker,
                         .epoch = static_cast<std::uint32_t>(plan.epoch),
                         .position = plan.first,
                         .a = plan.step,
                         .b = slot});
}

}  // namespace foreload
