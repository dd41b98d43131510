// A flight is one sample on its way. It goes to the engine, and comes back as done, as changed, or as failed;
// what may pass (EIO, a busy server, no descriptors) goes back to the engine after a pause, three times. Emulated
// storage holds a finished flight until its time: timers do that without a sleeping thread. Flights of objects go to
// their own reader, which retries by itself and wakes the engine when it has something.
#include "tier/source_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "base/jitter.h"
#include "base/text.h"
#include "policy/retrying.h"
#include "source/describe.h"

namespace foreload {
namespace {

constexpr std::size_t kOpenFiles = 256;

bool may_be_repeated(int error_number) {
  switch (error_number) {
    case EIO:
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
    case ESTALE:
    case ENOMEM:
    case ENFILE:
    case EMFILE:
    case ECONNRESET:
      return true;
    default:
      return false;
  }
}

}  // namespace

SourceTier::SourceTier(const Source& source, std::unique_ptr<ReadEngine> engine, std::optional<Throttle> throttle,
                       SourceTierOptions options)
    : source_(source),
      engine_(std::move(engine)),
      throttle_(std::move(throttle)),
      options_(options),
      jitter_(jitter_key()) {}

// A shard's open file, or nothing when it can not be kept open: then every read opens it by itself.
SourceTier::OpenFile* SourceTier::shared_file(const Extent& extent) {
  if (!extent.shared || options_.direct) return nullptr;
  if (auto found = files_.find(extent.file); found != files_.end()) return &found->second;
  if (files_.size() >= kOpenFiles) {
    auto idle = std::find_if(files_.begin(), files_.end(), [](const auto& entry) { return entry.second.users == 0; });
    if (idle == files_.end()) return nullptr;
    files_.erase(idle);
  }
  auto descriptor = open_below(extent.root, extent.path);
  if (!descriptor) return nullptr;
  return &files_.emplace(extent.file, OpenFile{std::move(*descriptor), 0}).first->second;
}

std::size_t SourceTier::free_flight() {
  FORELOAD_CHECK(in_flight() < max_depth(), "the pacer stays within the engine's depth");
  if (free_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
    return flights_.size() - 1;
  }
  const std::size_t index = free_.back();
  free_.pop_back();
  return index;
}

void SourceTier::start(SampleId id, std::span<std::byte> into, Time now) {
  (void)start_part(id, into, {0, into.size()}, now);
}

void SourceTier::start_parts(SampleId id, std::span<std::byte> into, const std::array<SamplePart, 2>& parts, Time now) {
  const std::size_t first = start_part(id, into, parts[0], now);
  const std::size_t second = start_part(id, into, parts[1], now);
  flights_[first]->twin = second;
  flights_[second]->twin = first;
}

std::size_t SourceTier::start_part(SampleId id, std::span<std::byte> into, const SamplePart& part, Time now) {
  const std::size_t index = free_flight();
  Flight& flight = *flights_[index];
  flight =
      Flight{.id = id, .extent = source_.locate(id), .into = into.subspan(part.offset, part.length), .started = now};
  FORELOAD_CHECK(flight.extent.length == into.size(), "the room is the sample's");
  flight.extent.offset += part.offset;
  flight.extent.length = part.length;
  if (throttle_) flight.not_before = throttle_->reserve(now, part.length);
  if (flight.extent.store == nullptr) flight.file = shared_file(flight.extent);
  if (flight.file != nullptr) ++flight.file->users;
  enqueue(index);
  return index;
}

void SourceTier::start_from(int fd, Bytes offset, SampleId id, std::span<std::byte> into, Time now) {
  const std::size_t index = free_flight();
  Extent extent{.offset = offset, .length = into.size()};
  *flights_[index] = Flight{.id = id, .extent = std::move(extent), .into = into, .started = now, .other_file = fd};
  enqueue(index);
}

void SourceTier::enqueue(std::size_t index) {
  const Flight& flight = *flights_[index];
  if (flight.extent.store != nullptr) {
    queued_objects_.push_back({.tag = index,
                               .store = flight.extent.store,
                               .key = flight.extent.path,
                               .object = flight.extent.file,
                               .offset = flight.extent.offset,
                               .into = flight.into,
                               .expect = flight.extent.stamp});
    return;
  }
  queued_.push_back({.tag = index,
                     .fd = flight.file != nullptr ? flight.file->descriptor.get() : flight.other_file,
                     .root = flight.extent.root,
                     .path = flight.extent.path.c_str(),
                     .offset = flight.extent.offset,
                     .into = flight.into,
                     .expect = flight.extent.stamp,
                     .stamped = flight.other_file < 0});
}

void SourceTier::wait(std::vector<SourceRead>& done, Time deadline) {
  const std::size_t before = done.size();
  run_timers(done);
  submit(done);
  if (done.size() > before) deadline = Time{0};
  if (!timers_.empty()) deadline = std::min(deadline, timers_.top().at);
  results_.clear();
  engine_->wait(results_, deadline);
  for (const ReadResult& result : results_) on_result(result, done);
  object_results_.clear();
  if (objects_) objects_->take(object_results_);
  for (const ObjectResult& result : object_results_) on_result(result, done);
  run_timers(done);
}

void SourceTier::submit(std::vector<SourceRead>& done) {
  if (!queued_.empty()) {
    engine_->submit(queued_);
    queued_.clear();
  }
  if (!queued_objects_.empty()) {
    submit_objects(done);
    queued_objects_.clear();
  }
}

void SourceTier::submit_objects(std::vector<SourceRead>& done) {
  if (!objects_) {
    auto started = ObjectReader::start(options_.objects, object_counters_, [this] { engine_->wake(); });
    if (!started) {
      for (const ObjectJob& job : queued_objects_) {
        flights_[job.tag]->status = started.error();
        finish(job.tag, done);
      }
      return;
    }
    objects_ = std::move(*started);
    objects_->hurry(hurry_);
  }
  objects_->submit(queued_objects_);
}

void SourceTier::hurry(bool on) {
  hurry_ = on;
  if (objects_) objects_->hurry(on);
}

void SourceTier::run_timers(std::vector<SourceRead>& done) {
  if (timers_.empty()) return;
  const Time current = now();
  while (!timers_.empty() && (hurry_ || timers_.top().at <= current)) {
    const Timer timer = timers_.top();
    timers_.pop();
    if (timer.retry) {
      enqueue(timer.flight);
    } else {
      finish(timer.flight, done);
    }
  }
}

void SourceTier::on_result(const ReadResult& result, std::vector<SourceRead>& done) {
  Flight& flight = *flights_[result.tag];
  if (result.outcome != ReadOutcome::kDone) {
    if (retry_later(flight, result.tag, result)) return;
    flight.status = describe(flight, result);
  }
  deliver(result.tag, done);
}

void SourceTier::on_result(const ObjectResult& result, std::vector<SourceRead>& done) {
  Flight& flight = *flights_[result.tag];
  flight.attempt = std::max(result.attempts, 1u) - 1;
  if (result.outcome != ReadOutcome::kDone) flight.status = describe(flight, result);
  deliver(result.tag, done);
}

// Now, or when the emulated storage would have.
void SourceTier::deliver(std::size_t index, std::vector<SourceRead>& done) {
  const Time at = flights_[index]->not_before;
  if (!hurry_ && at > now()) {
    timers_.push({.at = at, .flight = index, .retry = false});
  } else {
    finish(index, done);
  }
}

bool SourceTier::retry_later(Flight& flight, std::size_t index, const ReadResult& result) {
  if (result.outcome != ReadOutcome::kFailed || !may_be_repeated(result.error_number)) return false;
  if (flight.other_file >= 0) return false;
  if (hurry_) return false;
  const auto pause = pause_after(kFileRetry, flight.attempt + 1, {}, jitter_ ^ mix64(flight.id));
  if (!pause) return false;
  ++flight.attempt;
  timers_.push({.at = now() + *pause, .flight = index, .retry = true});
  return true;
}

void SourceTier::finish(std::size_t index, std::vector<SourceRead>& done) {
  Flight& flight = *flights_[index];
  if (flight.file != nullptr) --flight.file->users;
  flight.ended = true;
  unsigned retries = flight.attempt;
  if (flight.twin) {
    Flight& twin = *flights_[*flight.twin];
    if (!twin.ended) return;
    if (flight.status.ok()) flight.status = std::move(twin.status);
    retries = std::max(retries, twin.attempt);
    free_.push_back(*flight.twin);
  }
  done.push_back(
      {.id = flight.id, .status = std::move(flight.status), .took = now() - flight.started, .retries = retries});
  free_.push_back(index);
}

Error SourceTier::describe(const Flight& flight, const ReadResult& result) const {
  if (flight.other_file >= 0) return {Code::kIo, std::generic_category().message(result.error_number)};
  const std::string where = describe_sample(source_, flight.id);
  switch (result.outcome) {
    case ReadOutcome::kChanged:
      return data_changed(source_, flight.id, result.found);
    case ReadOutcome::kRefused:
      return {Code::kInvalid, fmt::format("{}: not opened, because it leaves the dataset's folder or is no regular "
                                          "file. Rebuild the index or remove it",
                                          where)};
    default:
      break;
  }
  const std::string reason = std::generic_category().message(result.error_number);
  if (result.error_number == ENOENT || result.error_number == ENOTDIR) {
    return {Code::kDataChanged, fmt::format("{}: the file is gone since it was indexed{}", where, kRebuildAdvice)};
  }
  return {Code::kIo,
          fmt::format("{}: can not be read after {}: {}", where, counted(flight.attempt + 1, "attempt"), reason)};
}

Error SourceTier::describe(const Flight& flight, const ObjectResult& result) const {
  if (result.outcome == ReadOutcome::kChanged) return data_changed(source_, flight.id, result.found);
  const bool is_gone = result.error.code == Code::kDataChanged;
  return {result.error.code, fmt::format("{}: {}{}", describe_sample(source_, flight.id), result.error.message,
                                         is_gone ? kRebuildAdvice : "")};
}

}  // namespace foreload
