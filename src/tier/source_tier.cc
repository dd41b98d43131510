// A flight is one sample on its way. It goes to the engine, and comes back as done, as changed, or as failed;
// what may pass (EIO, a busy server, no descriptors) goes back to the engine after a pause, three times. Emulated
// storage holds a finished flight until its time: timers do that without a sleeping thread.
#include "tier/source_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "source/describe.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kOpenFiles = 256;
constexpr unsigned kAttempts = 4;
constexpr Duration kFirstPause = 10ms;  // then four times as long each time

bool may_pass(int error_number) {
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
    : source_(source), engine_(std::move(engine)), throttle_(std::move(throttle)), options_(options) {}

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
  const std::size_t index = free_flight();
  Flight& flight = *flights_[index];
  flight = Flight{.id = id, .extent = source_.locate(id), .into = into, .started = now};
  FORELOAD_CHECK(flight.extent.length == into.size(), "a sample is read whole");
  if (throttle_) flight.not_before = throttle_->reserve(now, into.size());
  flight.file = shared_file(flight.extent);
  if (flight.file != nullptr) ++flight.file->users;
  enqueue(index);
}

void SourceTier::start_from(int fd, Bytes offset, SampleId id, std::span<std::byte> into, Time now) {
  const std::size_t index = free_flight();
  Extent extent{.offset = offset, .length = into.size()};
  *flights_[index] = Flight{.id = id, .extent = std::move(extent), .into = into, .started = now, .other_file = fd};
  enqueue(index);
}

void SourceTier::enqueue(std::size_t index) {
  Flight& flight = *flights_[index];
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
  if (!queued_.empty()) {
    engine_->submit(queued_);
    queued_.clear();
  }
  if (done.size() > before) deadline = Time{0};
  if (!timers_.empty()) deadline = std::min(deadline, timers_.top().at);
  results_.clear();
  engine_->wait(results_, deadline);
  for (const ReadResult& result : results_) on_result(result, done);
  run_timers(done);
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
  if (!hurry_ && flight.not_before > now()) {
    timers_.push({.at = flight.not_before, .flight = result.tag, .retry = false});
  } else {
    finish(result.tag, done);
  }
}

bool SourceTier::retry_later(Flight& flight, std::size_t index, const ReadResult& result) {
  if (result.outcome != ReadOutcome::kFailed || !may_pass(result.error_number)) return false;
  if (flight.other_file >= 0) return false;
  if (hurry_ || ++flight.attempt >= kAttempts) return false;
  const Duration pause = kFirstPause * (1 << (2 * (flight.attempt - 1)));
  timers_.push({.at = now() + pause, .flight = index, .retry = true});
  return true;
}

void SourceTier::finish(std::size_t index, std::vector<SourceRead>& done) {
  Flight& flight = *flights_[index];
  if (flight.file != nullptr) --flight.file->users;
  done.push_back(
      {.id = flight.id, .status = std::move(flight.status), .took = now() - flight.started, .retries = flight.attempt});
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

}  // namespace foreload
