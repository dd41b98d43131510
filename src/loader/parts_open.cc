// Loader::open composes the parts, from the bottom up; closing takes them apart.
#include "base/clock.h"
#include "base/machine.h"
#include "loader/disk.h"
#include "loader/homes_plan.h"
#include "loader/parts.h"

namespace foreload {

Result<std::unique_ptr<Loader::Parts>> Loader::Parts::open(LoaderOptions options, const Seams& seams) {
  FORELOAD_TRY(check_options(options));
  FORELOAD_TRY(check_order(options));
  FORELOAD_TRY(check_disk(options));
  FORELOAD_TRY(check_host(options));
  FORELOAD_TRY(check_peers(options));
  std::unique_ptr<Parts> parts(new Parts(std::move(options)));
  const LoaderOptions& asked = parts->options_;
  SourceOptions from = asked.source;
  from.datasets = asked.dataset;
  if (!from.warn) from.warn = asked.warn;
  FORELOAD_ASSIGN(parts->source_, open_source(from));
  FORELOAD_TRY(check_against(asked, *parts->source_));
  FORELOAD_ASSIGN(const Schedule schedule, make_schedule(asked, parts->source_->size()));
  FORELOAD_ASSIGN(const ChainOptions chosen, choose_chain(asked, *parts->source_));
  FORELOAD_ASSIGN(Chain chain, Chain::compile(chosen));
  JobShape shape = job_shape(asked, *parts->source_);
  shape.unit = chain.unit();
  FORELOAD_TRY(check_pairs(shape));
  const SliceAssignment assignment(shape);
  FORELOAD_ASSIGN(parts->job_, plan_job(asked, *parts->source_, schedule, assignment, seams));
  parts->stream_.emplace(
      schedule, assignment,
      StreamOptions{.rank = asked.rank, .epochs = asked.epochs, .balanced = parts->job_.assignment()});
  parts->threads_ = asked.workers.value_or(0) != 0 ? *asked.workers : usable_cores();
  SizedPlan sized;
  if (asked.host.empty()) {
    FORELOAD_ASSIGN(sized, size_memory(asked, *parts->source_, chain, *parts->stream_, parts->threads_));
    limit_ahead(sized, seams, *parts->stream_);
  } else {
    FORELOAD_ASSIGN(parts->seat_, HostSeat::open({asked, *parts->source_, chain, chosen, *parts->stream_, parts->job_,
                                                  parts->threads_, seams}));
    sized = parts->seat_->sized();
  }
  parts->budget_ = parts->seat_ ? parts->seat_->budget() : sized.budget;
  std::vector<double>().swap(parts->options_.weights);  // the schedule has its table
  FORELOAD_TRY(parts->open_tiers(sized, seams));
  FORELOAD_TRY(parts->open_pipeline(sized, std::move(chain), seams));
  return parts;
}

Status Loader::Parts::open_tiers(const SizedPlan& sized, const Seams& seams) {
  const Source& source = *source_;
  const MemoryPlan& memory = sized.memory;
  placement_ = plan_homes(options_, source, sized, *stream_);
  capacity_ = evicts(options_.eviction) ? memory.home : placement_.bytes();
  if (seat_) {
    arena_ = seat_->take_arena();
    capacity_ = seat_->homes_capacity();
  } else {
    FORELOAD_ASSIGN(arena_, Arena::create(arena_options(source.size(), memory)));
  }
  FORELOAD_ASSIGN(dimensions_, DimensionTable::create(source.size()));
  std::optional<Throttle> throttle;
  if (!options_.storage.empty()) {
    FORELOAD_ASSIGN(throttle, Throttle::open(options_.storage));
  }
  FORELOAD_ASSIGN(auto engine, open_read_engine({.kind = options_.io,
                                                 .depth = memory.read_depth,
                                                 .direct = options_.direct_io,
                                                 .bounce_bytes = memory.bounce_each,
                                                 .fault = seams.read_fault}));
  auto bottom = std::make_unique<SourceTier>(source, std::move(engine), std::move(throttle),
                                             SourceTierOptions{.direct = options_.direct_io});
  FORELOAD_ASSIGN(auto disk, open_disk({options_, source, placement_, job_, seat_ ? seat_->disk_seat() : nullptr,
                                        sized.longest_sample, seams}));
  auto policy = make_eviction(options_.cache ? options_.eviction : Eviction::kStatic, placement_, *stream_);
  tiers_ = std::make_unique<TierStack>(source, std::move(policy), *arena_, std::move(bottom), std::move(disk));
  return {};
}

Status Loader::Parts::open_pipeline(const SizedPlan& sized, Chain chain, const Seams& seams) {
  chain_ = std::move(chain);
  const std::uint64_t batch = stream_->max_batch();
  std::shared_ptr<Ring> ring;
  if (seat_) {
    ring = seat_->take_ring();
    FORELOAD_TRY(seat_->serve(*tiers_, *ring));
  } else {
    FORELOAD_ASSIGN(ring, Ring::create(ring_options(*chain_, *stream_, *source_, sized.memory.slots)));
  }
  own_desk_ = std::make_shared<LeaseDesk>(std::move(ring), Ring::kOwnReader, chain_->output());
  if (!options_.record.empty()) {
    FORELOAD_ASSIGN(record_, EventRecord::create(options_.record));
    record_->append({.time = now(),
                     .kind = EventKind::kOpen,
                     .a = source_->size(),
                     .b = stream_->assignment().shape().global_batch,
                     .c = std::uint64_t{options_.world} << 32 | options_.rank});
    tiers_->record_to(record_.get());
  }
  pipeline_ = std::make_unique<Pipeline>(
      PipelineParts{*stream_, *source_, *arena_, *tiers_, own_desk_->ring(), *chain_, *dimensions_, record_.get()},
      PipelineOptions{.seed = options_.seed,
                      .on_error = options_.on_error,
                      .limits = options_.limits,
                      .longest_sample = sized.longest_sample,
                      .scratch = sized.memory.scratch,
                      .threads = seat_ ? 0 : threads_,
                      .rewrite = rewrite_mode(options_),
                      .batch = batch,
                      .hold = sized.memory.hold,
                      .partial_reads = options_.on_error == OnError::kFail && stream_->schedule().is_permutation(),
                      .only_fill = seams.only_fill});
  own_desk_->tell(pipeline_.get());
  return go_on_from(0, options_.follow ? With::kNextEpoch : With::kAnybody);
}

Loader::Parts::~Parts() {
  if (pipeline_ == nullptr) {
    if (seat_ && !forked()) seat_->stop();
    return;
  }
  if (forked()) {
    // The threads, the engine and the record's file belong to the parent: they are forgotten, not closed.
    (void)pipeline_.release();
    (void)tiers_.release();
    (void)record_.release();
    (void)seat_.release();
    return;
  }
  own_desk_->tell(nullptr);
  leave();
  if (seat_) seat_->stop();
  if (DiskTier* disk = tiers_->disk()) disk->close();  // it may fail now
  pass_on_warnings();
  if (options_.rank == 0) remember_dimensions(*source_, *dimensions_);  // one writer per job
  const Status recorded = record_ ? record_->close() : Status();
  if (!recorded.ok() && options_.warn) options_.warn(recorded.error().message);
}

}  // namespace foreload
