// next() waits for the batch whose turn it is. Everything else happens in pipeline/ (how) and plan/, policy/ (what).
#include "foreload/loader.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "loader/parts.h"

namespace foreload {

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
  if (!options_.warn) return;
  DiskTier* disk = tiers_->disk();
  while (const auto text = disk != nullptr ? disk->take_warning() : std::nullopt) options_.warn(*text);
  while (const auto text = seat_ ? seat_->take_warning() : std::nullopt) options_.warn(*text);
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

// In a host another job may prepare the same batches; then they are read there.
Status Loader::Parts::go_on_from(std::uint64_t number, With with) {
  Ring& own = own_desk_->ring();
  const std::uint64_t per_epoch = stream_->assignment().batches_per_epoch();
  const std::uint64_t end = options_.epochs == 0 ? ~std::uint64_t{0} : options_.epochs * per_epoch;
  const Company::Wanted wanted{
      .number = number, .end = end, .epoch_batches = per_epoch, .follow = with == With::kNextEpoch};
  desk_ = own_desk_;
  waited_ = {};
  if (auto joined = seat_ && with != With::kNobody ? seat_->company().join(wanted, own, spec()) : std::nullopt) {
    desk_ = std::move(joined->desk);
    seat_->watch(desk_);
    if (joined->number == number) return {};
    epoch_ = joined->number / per_epoch;
    step_ = 0;
    return {};
  }
  if (!own.is_attached(Ring::kOwnReader)) own.begin(number, end);
  const Status started = pipeline_->start(number);
  if (started.ok()) return {};
  if (seat_) seat_->company().leave();
  own.end();
  error_ = started.error();
  return started;
}

void Loader::Parts::leave() {
  if (!desk_->is_own()) return desk_->ring().detach(desk_->reader());
  if (seat_) seat_->company().leave();
  pipeline_->stop();
}

// Whether the batch is to be had elsewhere, because the job that feeds will not bring it, or does not for long.
std::optional<Loader::Parts::With> Loader::Parts::look_at_company(std::uint64_t number) {
  constexpr Duration kPatience = std::chrono::seconds(30);
  const Ring& ring = desk_->ring();
  const Time time = now();
  if (!ring.is_attached(desk_->reader()) || !ring.is_fed(time) || number >= ring.last()) return With::kAnybody;
  if (waited_.number != number || waited_.opened != ring.opened()) waited_ = {number, ring.opened(), time};
  return time - waited_.since > kPatience ? std::optional(With::kNobody) : std::nullopt;
}

Result<std::uint32_t> Loader::Parts::wait_for(std::uint64_t number) {
  for (;;) {
    Ring& ring = desk_->ring();
    const unsigned reader = desk_->reader();
    const std::uint32_t seen = ring.published_signal();
    if (interrupted_.exchange(false)) {
      ring.end_wait(reader);
      return Error{Code::kCancelled, "next() was interrupted"};
    }
    if (const auto slot = ring.take(reader, number)) {
      if (desk_->is_own() || !ring.error_of(*slot)) return *slot;
      // What failed in another process, or for a longer list of bad samples, need not fail here.
      ring.release(reader, *slot);
      leave();
      FORELOAD_TRY(go_on_from(number, With::kNobody));
      continue;
    }
    if (!desk_->is_own()) {
      const std::optional<With> elsewhere = look_at_company(number);
      if (elsewhere) {
        leave();
        FORELOAD_TRY(go_on_from(number, *elsewhere));
        continue;
      }
    }
    if (ring.held(reader) == ring.slots()) {
      return Error{Code::kInvalid,
                   fmt::format("all {} batches of the ring are held by the caller, so no further one can be "
                               "prepared: release some, or raise held_batches (now {})",
                               ring.slots(), options_.held_batches)};
    }
    if (!ring.wait_for_batch(reader, seen) && desk_->is_own()) return Error{Code::kCancelled, "the loader was closed"};
  }
}

void Loader::Parts::interrupt() {
  interrupted_ = true;
  own_desk_->ring().nudge_consumer();  // at another's ring it looks again soon
}

Result<Batch> Loader::Parts::deliver(std::uint32_t slot, Time asked) {
  Ring& ring = desk_->ring();
  const Time delivered = now();
  Batch batch = desk_->lend(slot);
  pace_.taken(ring, desk_->reader(), asked, delivered);
  if (auto error = ring.error_of(slot)) {
    error_ = std::move(error);
    return *error_;
  }
  const BatchPlan plan = stream_->batch(stream_->number_of(epoch_, step_));
  const BatchCost cost = cost_of(slot, plan);
  const Wait wait = split_wait(asked, delivered, ring.bytes_complete(slot).value_or(asked));
  const std::uint64_t count = batch.ids().size();
  std::uint64_t genuine = count;
  while (genuine > 0 && plan.position(genuine - 1) >= stream_->schedule().size()) --genuine;
  accounts_.add_batch(count, batch.ids().subspan(genuine), cost, wait);
  pace_.cost(own_desk_->ring(), desk_->stream(), count, cost, wait);
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

// What another job read and prepared cost this one nothing; bad samples count for all.
BatchCost Loader::Parts::cost_of(std::uint32_t slot, const BatchPlan& plan) {
  const Ring& ring = desk_->ring();
  BatchCost cost = ring.cost_of(slot);
  if (desk_->is_own()) return cost;
  const std::span<const SampleId> ids = ring.ids(slot);
  for (std::uint64_t i = 0; cost.replaced > 0 && i < std::min<std::uint64_t>(plan.count, ids.size()); ++i) {
    const SampleId wanted = stream_->sample(plan, i);
    if (ids[i] == wanted) continue;
    pipeline_->note_replaced({plan.epoch, plan.position(i), wanted, source_->key(wanted), "bad, as another job found"});
  }
  const OriginBytes& from = cost.bytes;
  const Bytes read = from.disk + from.peer + from.source;
  cost.bytes = {.memory = from.memory + read - std::min(from.filled, read)};
  cost.prep_busy = {};
  cost.shared = true;
  return cost;
}

std::vector<Position> Loader::Parts::positions(Epoch epoch, std::uint64_t step) const {
  const BatchPlan plan = stream_->batch(stream_->number_of(epoch, step));
  std::vector<Position> positions(plan.count);
  for (std::uint64_t i = 0; i < plan.count; ++i) positions[i] = plan.position(i);
  return positions;
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
  leave();
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
  const Status started = go_on_from(stream_->number_of(epoch_, step_));
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
          .hosts = hosts(),
          .ring_slots = own_desk_->ring().slots(),
          .threads = seat_ ? seat_->workers() : threads_,
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
std::vector<Position> Loader::positions(Epoch epoch, std::uint64_t step) const {
  return parts_->positions(epoch, step);
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
