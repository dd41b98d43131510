// Loader::open composes the parts; next() waits for the batch whose turn it is. Everything else happens in
// pipeline/ (how) and plan/, policy/ (what).
#include "foreload/loader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/event_record.h"
#include "base/machine.h"
#include "loader/accounts.h"
#include "loader/disk.h"
#include "loader/homes_plan.h"
#include "loader/host_seat.h"
#include "loader/lease_desk.h"
#include "loader/order.h"
#include "loader/pace_keeper.h"
#include "loader/seams.h"
#include "loader/setup.h"
#include "pipeline/pipeline.h"
#include "plan/placement.h"
#include "plan/stream.h"
#include "tier/arena.h"
#include "tier/dimension_table.h"
#include "tier/tier_stack.h"

namespace foreload {

class Loader::Parts {
 public:
  static Result<std::unique_ptr<Parts>> open(LoaderOptions options, const Seams& seams);
  ~Parts();

  Result<std::optional<Batch>> next();
  void interrupt();
  State position() const;
  Status seek(const State& state);
  LoaderStats stats() const;

  const Stream& stream() const { return *stream_; }
  const Source& source() const { return *source_; }
  const TensorSpec& spec() const { return desk_->spec(); }
  std::span<const std::byte> batch_memory() const { return desk_->ring().memory(); }
  Share share(std::uint64_t step) const { return stream_->assignment().share(step, options_.rank); }

 private:
  explicit Parts(LoaderOptions options) : options_(std::move(options)) {}
  Status open_tiers(const SizedPlan& sized, const Seams& seams);
  Status open_pipeline(const SizedPlan& sized, Chain chain, const Seams& seams);
  Result<std::uint32_t> wait_for(std::uint64_t number);
  Result<Batch> deliver(std::uint32_t slot, Time asked);
  Time begin_wait(Time time) const;
  std::optional<Batch> end_epoch();
  void pass_on_warnings();
  bool forked() const { return ::getpid() != owner_; }
  std::uint64_t plan_hash_now() const {
    return plan_hash(stream_->schedule().options(), stream_->assignment().shape());
  }

  LoaderOptions options_;
  pid_t owner_ = ::getpid();
  Bytes budget_ = 0;
  unsigned threads_ = 1;
  std::unique_ptr<Source> source_;
  std::optional<Stream> stream_;
  std::optional<Chain> chain_;
  Placement placement_;
  Bytes capacity_ = 0;  // of the cache
  std::unique_ptr<EventRecord> record_;
  std::unique_ptr<HostSeat> seat_;  // null: this process is alone
  std::unique_ptr<Arena> arena_;
  std::optional<DimensionTable> dimensions_;
  std::unique_ptr<TierStack> tiers_;
  std::shared_ptr<LeaseDesk> desk_;
  std::unique_ptr<Pipeline> pipeline_;
  Accounts accounts_;
  PaceKeeper pace_;

  Epoch epoch_ = 0;
  std::uint64_t step_ = 0;      // the next batch
  bool in_epoch_ = false;       // next() was called since the epoch began
  std::optional<Error> error_;  // ends the run
  std::atomic<bool> interrupted_{false};
  struct {
    Time begin{};
    Time end{};
  } interrupted_wait_;
};

Result<std::unique_ptr<Loader::Parts>> Loader::Parts::open(LoaderOptions options, const Seams& seams) {
  FORELOAD_TRY(check_options(options));
  FORELOAD_TRY(check_order(options));
  FORELOAD_TRY(check_disk(options));
  FORELOAD_TRY(check_host(options));
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
  parts->stream_.emplace(schedule, assignment, StreamOptions{.rank = asked.rank, .epochs = asked.epochs});
  parts->threads_ = asked.threads != 0 ? asked.threads : usable_cores();
  SizedPlan sized;
  if (asked.host.empty()) {
    FORELOAD_ASSIGN(sized, size_memory(asked, *parts->source_, chain, *parts->stream_, parts->threads_));
  } else {
    FORELOAD_ASSIGN(parts->seat_,
                    HostSeat::open({asked, *parts->source_, chain, chosen, *parts->stream_, parts->threads_}));
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
    arena_ = seat_->make_arena();
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
  FORELOAD_ASSIGN(auto disk, open_disk(options_, source, placement_, sized.longest_sample, seams));
  auto policy = make_eviction(options_.cache ? options_.eviction : Eviction::kStatic, placement_, *stream_);
  tiers_ = std::make_unique<TierStack>(source, std::move(policy), *arena_, std::move(bottom), std::move(disk));
  return {};
}

Status Loader::Parts::open_pipeline(const SizedPlan& sized, Chain chain, const Seams& seams) {
  chain_ = std::move(chain);
  const std::uint64_t batch = stream_->assignment().max_share();
  std::shared_ptr<Ring> ring;
  if (seat_) {
    ring = seat_->make_ring();
    FORELOAD_TRY(seat_->serve(*tiers_, *ring));
  } else {
    FORELOAD_ASSIGN(ring, Ring::create(ring_options(*chain_, stream_->assignment(), *source_, sized.memory.slots)));
  }
  desk_ = std::make_shared<LeaseDesk>(std::move(ring), chain_->output());
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
      PipelineParts{*stream_, *source_, *arena_, *tiers_, desk_->ring(), *chain_, *dimensions_, record_.get()},
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
  desk_->tell(pipeline_.get());
  return pipeline_->start(0);
}

Loader::Parts::~Parts() {
  if (pipeline_ == nullptr) return;
  if (forked()) {
    // The threads, the engine and the record's file belong to the parent: they are forgotten, not closed.
    (void)pipeline_.release();
    (void)tiers_.release();
    (void)record_.release();
    (void)seat_.release();
    return;
  }
  desk_->tell(nullptr);
  pipeline_->stop();
  if (seat_) seat_->stop();
  pass_on_warnings();
  if (options_.rank == 0) remember_dimensions(*source_, *dimensions_);  // one writer per job
  const Status recorded = record_ ? record_->close() : Status();
  if (!recorded.ok() && options_.warn) options_.warn(recorded.error().message);
}

Result<std::optional<Batch>> Loader::Parts::next() {
  if (forked()) {
    return Error{Code::kCancelled,
                 fmt::format("this loader was opened by process {} and can not be used in its forked child "
                             "{}: open a loader in the child, or start it with spawn",
                             owner_, ::getpid())};
  }
  if (error_) return *error_;
  if (options_.epochs != 0 && epoch_ >= options_.epochs) return std::optional<Batch>();
  pass_on_warnings();
  if (!in_epoch_) accounts_.begin_epoch(epoch_, now());
  in_epoch_ = true;
  if (step_ == stream_->assignment().batches_per_epoch()) return end_epoch();
  const Time asked = begin_wait(now());
  auto slot = wait_for(stream_->number_of(epoch_, step_));
  if (!slot) {
    interrupted_wait_ = {asked, now()};
    return std::move(slot).error();
  }
  interrupted_wait_ = {};
  auto batch = deliver(*slot, asked);
  if (!batch) return std::move(batch).error();
  return std::optional<Batch>(std::move(*batch));
}

// What other threads have to say is said on the caller's.
void Loader::Parts::pass_on_warnings() {
  DiskTier* disk = tiers_->disk();
  if (disk == nullptr || !options_.warn) return;
  while (const auto text = disk->take_warning()) options_.warn(*text);
}

// A wait that was interrupted and goes on at once is one wait: it began when the first call did.
Time Loader::Parts::begin_wait(Time time) const {
  constexpr Duration kAtOnce = std::chrono::milliseconds(10);
  return interrupted_wait_.end != Time{} && time - interrupted_wait_.end < kAtOnce ? interrupted_wait_.begin : time;
}

std::optional<Batch> Loader::Parts::end_epoch() {
  accounts_.end_epoch(now());
  if (record_)
    record_->append({.time = now(), .kind = EventKind::kEpochEnd, .epoch = static_cast<std::uint32_t>(epoch_)});
  ++epoch_;
  step_ = 0;
  in_epoch_ = false;
  return std::nullopt;
}

Result<std::uint32_t> Loader::Parts::wait_for(std::uint64_t number) {
  Ring& ring = desk_->ring();
  for (;;) {
    const std::uint32_t seen = ring.published_signal();
    if (interrupted_.exchange(false)) return Error{Code::kCancelled, "next() was interrupted"};
    if (const auto slot = ring.take(number)) return *slot;
    if (ring.leased() == ring.slots()) {
      return Error{Code::kInvalid,
                   fmt::format("all {} batches of the ring are held by the caller, so no further one can be "
                               "prepared: release some, or raise held_batches (now {})",
                               ring.slots(), options_.held_batches)};
    }
    if (!ring.wait_for_batch(seen)) return Error{Code::kCancelled, "the loader was closed"};
  }
}

void Loader::Parts::interrupt() {
  interrupted_ = true;
  desk_->ring().nudge_consumer();
}

Result<Batch> Loader::Parts::deliver(std::uint32_t slot, Time asked) {
  Ring& ring = desk_->ring();
  const Time delivered = now();
  Batch batch = desk_->lend(slot);
  pace_.taken(ring, ring.plan_of(slot).number, asked, delivered);
  if (auto error = ring.error_of(slot)) {
    error_ = std::move(error);
    return *error_;
  }
  const BatchPlan plan = ring.plan_of(slot);
  const Wait wait = split_wait(asked, delivered, ring.bytes_complete(slot).value_or(asked));
  const std::uint64_t positions = stream_->schedule().size();
  const std::uint64_t genuine = std::min(plan.count, positions - std::min(plan.first, positions));
  accounts_.add_batch(plan.count, batch.ids().subspan(genuine), ring.cost_of(slot), wait);
  if (record_) {
    const auto epoch = static_cast<std::uint32_t>(plan.epoch);
    record_->append({.time = delivered,
                     .kind = EventKind::kWaited,
                     .epoch = epoch,
                     .position = plan.first,
                     .a = plan.step,
                     .b = static_cast<std::uint64_t>(wait.fetch.count()),
                     .c = static_cast<std::uint64_t>(wait.prep.count())});
    record_->append({.time = delivered,
                     .kind = EventKind::kDelivered,
                     .epoch = epoch,
                     .position = plan.first,
                     .a = plan.step,
                     .b = slot});
  }
  ++step_;
  return batch;
}

State Loader::Parts::position() const {
  const SliceAssignment& assignment = stream_->assignment();
  return {.fingerprint = source_->fingerprint(),
          .seed = options_.seed,
          .epoch = epoch_,
          .position = std::min(step_ * assignment.shape().global_batch, assignment.positions_per_epoch()),
          .plan = plan_hash_now()};
}

Status Loader::Parts::seek(const State& state) {
  if (forked()) return Error{Code::kCancelled, "this loader belongs to the parent process"};
  const SliceAssignment& assignment = stream_->assignment();
  FORELOAD_TRY(check_state(state, position(), assignment, stream_->schedule().options()));
  const std::uint64_t per_epoch = assignment.batches_per_epoch();
  const std::uint64_t batch = assignment.shape().global_batch;
  pipeline_->stop();
  epoch_ = state.epoch;
  // A position that is no whole number of batches is an epoch's end, maybe that of a world that pads otherwise.
  const bool at_end = state.position >= assignment.positions_per_epoch() || state.position % batch != 0;
  step_ = at_end ? per_epoch : state.position / batch;
  accounts_.end_epoch(now());
  in_epoch_ = false;
  error_.reset();
  if (record_) {
    record_->append({.time = now(),
                     .kind = EventKind::kSeek,
                     .epoch = static_cast<std::uint32_t>(epoch_),
                     .position = state.position});
  }
  const Status started = pipeline_->start(stream_->number_of(epoch_, step_));
  if (!started.ok()) error_ = started.error();
  return started;
}

LoaderStats Loader::Parts::stats() const {
  // In a forked child the parent's threads may have left locks behind.
  if (forked()) return {.memory_budget = budget_, .cache_capacity = capacity_, .threads = threads_};
  const DiskTier* disk = tiers_->disk();
  return {.epochs = accounts_.list(now()),
          .quarantine = pipeline_->quarantine(),
          .memory_budget = budget_,
          .cache_capacity = capacity_,
          .cached_bytes = seat_ && seat_->homes() ? seat_->homes()->used() : arena_->home_used(),
          .disk_capacity = disk != nullptr ? disk->store().capacity() : 0,
          .disk_used = disk != nullptr ? disk->store().used_bytes() : 0,
          .disk_damaged = disk != nullptr ? disk->store().damaged() : 0,
          .disk_failure = disk != nullptr ? disk->store().failure() : std::nullopt,
          .filled = pipeline_->filling().done,
          .read_error = pipeline_->filling().error(),
          .rewritten = pipeline_->rewritten(),
          .objects = tiers_->object_stats(),
          .ring_slots = desk_->ring().slots(),
          .threads = threads_,
          .io = tiers_->engine_name()};
}

Loader::Loader(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;
Loader::~Loader() = default;

Result<Loader> open_with_seams(LoaderOptions options, const Seams& seams) {
  FORELOAD_ASSIGN(auto parts, Loader::Parts::open(std::move(options), seams));
  return Loader(std::move(parts));
}

Result<Loader> Loader::open(LoaderOptions options) {
  return open_with_seams(std::move(options), {});
}

Result<std::optional<Batch>> Loader::next() {
  return parts_->next();
}
void Loader::interrupt() {
  parts_->interrupt();
}
State Loader::position() const {
  return parts_->position();
}
Status Loader::seek(const State& state) {
  return parts_->seek(state);
}
Status Loader::seek_epoch(Epoch epoch) {
  State state = parts_->position();
  state.epoch = epoch;
  state.position = 0;
  return parts_->seek(state);
}
std::uint64_t Loader::batches_per_epoch() const {
  return parts_->stream().assignment().batches_per_epoch();
}
Share Loader::share(std::uint64_t step) const {
  return parts_->share(step);
}
const Source& Loader::source() const {
  return parts_->source();
}
const TensorSpec& Loader::sample_spec() const {
  return parts_->spec();
}
std::span<const std::byte> Loader::batch_memory() const {
  return parts_->batch_memory();
}
LoaderStats Loader::stats() const {
  return parts_->stats();
}

}  // namespace foreload
