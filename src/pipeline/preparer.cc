#include "pipeline/preparer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostRunners = 4;  // streams whose tools a worker keeps
constexpr Duration kLookAgain = 5ms;     // whether there is time for a rewrite
constexpr int kCostMemory = 8;           // rewrites over which their cost is averaged

void record(const PrepTask& task, const BatchPlan& plan, std::uint16_t worker, Event event) {
  if (task.stream->record == nullptr) return;
  event.time = now();
  event.thread = worker;
  event.epoch = static_cast<std::uint32_t>(plan.epoch);
  task.stream->record->append(event);
}

// Otherwise it is of this process: it is closing, or has less memory than the one that needs the sample.
bool is_of_sample(const PrepTask& task, const Error& error) {
  if (error.code == Code::kCancelled) return false;
  if (error.code != Code::kNoMemory || task.stream->too_large == nullptr) return true;
  *task.stream->too_large = true;
  return false;
}

}  // namespace

void Preparer::run(std::uint16_t worker) {
  // Workers fill all cores; the consumer, which feeds an accelerator, must not wait for one of them to leave.
  yield_to_others();
  Tools tools;
  for (;;) {
    const std::uint32_t seen = board_.signal();
    if (board_.stopped()) return;
    if (const auto task = board_.claim(worker)) {
      prepare(tools, *task, worker);
      (void)rewrite_one(tools, false);
      continue;
    }
    const Spare spare = rewrite_one(tools, true);
    if (spare == Spare::kUsed) continue;
    const Time until = spare == Spare::kNoTime ? now() + kLookAgain : kNever;
    if (!board_.wait(worker, seen, until)) return;
  }
}

ChainRunner& Preparer::runner_of(Tools& tools, const PrepStream& stream) {
  auto& runners = tools.runners;
  const auto found = std::ranges::find(runners, stream.serial, &Tools::Runner::stream);
  if (found == runners.begin() && found != runners.end()) return found->runner;
  for (Tools::Runner& other : runners) other.runner.trim(0);
  if (found == runners.end()) {
    if (runners.size() == kMostRunners) runners.pop_back();
    runners.push_front({stream.serial, ChainRunner(stream.chain)});
  } else {
    runners.splice(runners.begin(), runners, found);
  }
  return runners.front().runner;
}

RewriteChance Preparer::chance(const Tools& tools, bool idle) const {
  const unsigned ready = idle_->ring.published();
  RewriteChance chance{.idle = idle, .bytes_missing = ready == 0 && idle_->ring.sleeping_workers() > 0};
  if (idle_->epochs != 0) chance.epochs_left = idle_->epochs - 1 - std::min(tools.epoch, idle_->epochs - 1);
  chance.slack = idle_->pace().slack(now(), ready + 1);
  chance.cost = Duration(rewrite_cost_.load()) * (rewriting_ + 1) / idle_->workers;  // the others work on
  return chance;
}

Preparer::Spare Preparer::rewrite_one(Tools& tools, bool idle) {
  if (idle_ == nullptr || idle_->mode == Rewrite::kOff) return Spare::kNothingToDo;
  if (idle_->mode == Rewrite::kAuto && !idle) return Spare::kNothingToDo;
  if (!idle_->rewriter.has_offers()) return Spare::kNothingToDo;
  if (!should_rewrite(idle_->mode, chance(tools, idle))) return Spare::kNoTime;
  if (!tools.rewriter) tools.rewriter.emplace();
  const Time started = now();
  ++rewriting_;
  const bool worked = idle_->rewriter.step(*tools.rewriter);
  --rewriting_;
  if (!worked) return Spare::kNothingToDo;
  const Duration::rep took = (now() - started).count();
  const Duration::rep before = rewrite_cost_;
  rewrite_cost_ = before == 0 ? took : before + (took - before) / kCostMemory;
  board_.settled(0, {}, false);
  return Spare::kUsed;
}

void Preparer::prepare(Tools& tools, const PrepTask& task, std::uint16_t worker) {
  Ring& ring = task.stream->ring;
  ChainRunner& runner = runner_of(tools, *task.stream);
  const RingWork work = ring.work(task.item);
  const BatchPlan plan = ring.plan_of(task.item.slot);
  const Position position = ring.position(task.item);
  const Time started = now();
  tools.epoch = plan.epoch;
  record(task, plan, worker, {.kind = EventKind::kPrepStarted, .position = position, .a = work.id, .b = work.length});
  const Status status = transform(runner, task, work);
  const Duration busy = now() - started;
  const auto spent = static_cast<std::uint64_t>(busy.count());
  record(task, plan, worker, {.kind = EventKind::kPrepDone, .position = position, .a = work.id, .b = spent});
  if (!status.ok() && !is_of_sample(task, status.error())) {
    ring.give_back(task.item);
  } else if (!status.ok()) {
    ring.reject(task.item, status.error());
  } else if (ring.finish(task.item, {busy, runner.damaged(), runner.length(), runner.dimensions()})) {
    complete(task, worker);
  }
  board_.settled(worker, task, !status.ok());
}

// All samples of the slot are done, so it is this thread's alone. A batch with a failed sample is delivered as the
// error.
void Preparer::complete(const PrepTask& task, std::uint16_t worker) {
  const PrepStream& stream = *task.stream;
  Ring& ring = stream.ring;
  const std::uint32_t slot = task.item.slot;
  const Time started = now();
  const BatchPlan plan = ring.plan_of(slot);  // before it is published: the slot may be another's then
  if (stream.chain.has_batch_stage() && !ring.error_of(slot)) {
    stream.chain.finish_batch({.seed = stream.seed,
                               .epoch = plan.epoch,
                               .positions = ring.positions(slot),
                               .samples = stream.positions,
                               .count = plan.count,
                               .sample_bytes = stream.chain.output().bytes(),
                               .tensors = ring.tensors(slot),
                               .offsets = ring.lengths(slot),
                               .labels = ring.labels(slot),
                               .mixes = ring.mixes(slot)});
  }
  ring.publish(slot, now() - started);
  record(task, plan, worker, {.kind = EventKind::kPublished, .position = plan.first, .a = plan.step, .b = slot});
}

Status Preparer::transform(ChainRunner& runner, const PrepTask& task, const RingWork& work) {
  const PrepStream& stream = *task.stream;
  const BatchPlan plan = stream.ring.plan_of(task.item.slot);
  const PrepKey key{.seed = stream.seed, .epoch = plan.epoch, .position = stream.ring.position(task.item)};
  RowHint rows{.offsets = stream.ring.rows(task.item), .first = work.first_row, .end = work.end_row};
  if (work.crop.is_wanted()) {
    rows.cut = CutHint{work.crop.picture(), {work.crop.x, work.crop.y, work.crop.width, work.crop.height}};
  }
  const std::span<const std::byte> memory = stream.memory[work.memory % stream.memory.size()];
  if (work.offset > memory.size() || work.length > memory.size() - work.offset) {
    return Error{Code::kIo, "what the ring says of the sample's place can not be"};
  }
  FORELOAD_ASSIGN(const Bytes needed, runner.begin(memory.subspan(work.offset, work.length), key, rows));
  if (runner.scratch_bytes() + needed > scratch_.own_share()) runner.trim(0);  // what an earlier sample left
  if (needed <= scratch_.own_share()) return runner.finish(stream.ring.tensor(task.item));
  if (needed > scratch_.largest()) {
    return Error{Code::kNoMemory,
                 fmt::format("preparing it needs {} of memory, and the budget leaves {} for one sample; raise "
                             "the memory budget or remove the sample",
                             format_bytes(needed), format_bytes(scratch_.largest()))};
  }
  const Bytes extra = needed - scratch_.own_share();
  if (!scratch_.take(extra)) return Error{Code::kCancelled, "the loader is closing"};
  const Status status = runner.finish(stream.ring.tensor(task.item));
  runner.trim(scratch_.own_share());
  scratch_.give(extra);
  return status;
}

}  // namespace foreload
