#include "pipeline/preparer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "policy/rewriting.h"

namespace foreload {

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
    } else if (!rewrite_one(tools, true) && !parts_.ring.wait_for_work(seen)) {
      return;
    }
  }
}

// True: time was spent on it.
bool Preparer::rewrite_one(Tools& tools, bool idle) {
  RewriteChance chance{.idle = idle};
  if (parts_.epochs != 0) chance.epochs_left = parts_.epochs - 1 - std::min(tools.epoch, parts_.epochs - 1);
  if (!should_rewrite(parts_.rewrite, chance) || !parts_.rewriter.has_offers()) return false;
  if (!tools.rewriter) tools.rewriter.emplace();
  if (!parts_.rewriter.step(*tools.rewriter)) return false;
  parts_.fetcher.settled();
  return true;
}

void Preparer::prepare(Tools& tools, RingItem item, std::uint16_t worker) {
  ChainRunner& runner = tools.runner;
  const RingWork work = parts_.ring.work(item);
  const Time started = now();
  tools.epoch = parts_.ring.plan_of(item.slot).epoch;
  record(EventKind::kPrepStarted, item, worker, work.id, work.length);
  const Status status = transform(runner, work, item);
  const Duration busy = now() - started;
  record(EventKind::kPrepDone, item, worker, work.id, static_cast<std::uint64_t>(busy.count()));
  if (!status.ok()) {
    parts_.ring.reject(item, status.error());
    return parts_.fetcher.rejected();
  }
  const Prepared prepared{busy, runner.damaged(), runner.length(), runner.dimensions()};
  if (parts_.ring.finish(item, prepared)) complete(item.slot, worker);
  parts_.fetcher.settled();
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

Status Preparer::transform(ChainRunner& runner, const RingWork& work, RingItem item) {
  const BatchPlan plan = parts_.ring.plan_of(item.slot);
  const PrepKey key{.seed = parts_.seed, .epoch = plan.epoch, .position = plan.first + item.index};
  const RowHint rows{.offsets = parts_.ring.rows(item), .first = work.first_row, .end = work.end_row};
  FORELOAD_ASSIGN(const Bytes needed, runner.begin(parts_.memory.subspan(work.offset, work.length), key, rows));
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
