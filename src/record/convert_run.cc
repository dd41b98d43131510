// Samples are claimed in order, so the one that the writer waits for is always claimed before any that could take its
// room: nothing waits in a circle. A claim takes twice the sample's length (before and after) until it is converted,
// and what it became until it is written.
#include "record/convert_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/machine.h"
#include "prep/jpeg_library.h"
#include "record/sample_reader.h"
#include "record/shard_writer.h"
#include "source/describe.h"

namespace foreload {

namespace {

using namespace std::chrono_literals;

constexpr Duration kPoll = 50ms;  // how often a waiting thread asks whether to stop
constexpr Bytes kOverhead = 16_KiB;
constexpr Bytes kBudgetPerThread = 32_MiB;
constexpr Bytes kLeastScratch = 64_MiB;
// Storage that answers late is asked for several samples at once.
constexpr unsigned kReadersPerThread = 4;
constexpr unsigned kMostReaders = 16;

unsigned threads_of(const ConvertOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

// What is converted by now belongs to the source as it was. Only the index of a folder does not see that a file was
// changed in place.
Error with_advice(const Error& error, bool is_tar) {
  if (error.code != Code::kDataChanged) return error;
  const std::size_t end = error.message.rfind(kRebuildAdvice);
  return {error.code, fmt::format("{}. Convert again into a new folder when the source does not change any more{}",
                                  error.message.substr(0, end),
                                  is_tar ? "" : "; if it has an index, run `foreload index --rebuild` before")};
}

}  // namespace

ConvertRun::ConvertRun(const ConvertOptions& options, const ConvertPlan& plan, const Destination& destination,
                       std::vector<std::uint64_t> missing)
    : options_(options),
      plan_(plan),
      destination_(destination),
      missing_(std::move(missing)),
      threads_(threads_of(options)),
      budget_(std::min(available_memory() / 4, threads_ * kBudgetPerThread)),
      pool_(std::max(available_memory() / 2, kLeastScratch), threads_) {
  for (const std::uint64_t shard : missing_) to_do_ += plan_.end(shard) - plan_.first(shard);
  const MutexLock lock(mutex_);
  if (has_next()) place_ = plan_.first(missing_[0]);
}

Status ConvertRun::ask_to_stop() const {
  if (!options_.stop || !options_.stop()) return {};
  return Error{Code::kCancelled, "stopped; the same command continues"};
}

void ConvertRun::stop() {
  ends_ = true;
  pool_.stop();
  const MutexLock lock(mutex_);
  stopped_ = true;
  room_.notify_all();
  read_.notify_all();
}

bool ConvertRun::is_stopped() {
  const MutexLock lock(mutex_);
  return stopped_;
}

std::optional<ConvertRun::Claim> ConvertRun::claim() {
  const MutexLock lock(mutex_);
  for (;;) {
    if (stopped_ || !has_next()) return std::nullopt;
    const SampleId id = plan_.sample_at(place_);
    const Bytes needed = 2 * plan_.source().length(id) + kOverhead;
    if (taken_ > 0 && taken_ + needed > budget_) {
      room_.wait(mutex_);
      continue;
    }
    taken_ += needed;
    if (++place_ == plan_.end(missing_[shard_]) && ++shard_ < missing_.size()) place_ = plan_.first(missing_[shard_]);
    return Claim{claimed_++, id, needed};
  }
}

void ConvertRun::deliver(const Claim& claim, Result<ConvertedSample> sample) {
  const Bytes left = sample ? sample->bytes.size() + kOverhead : kOverhead;
  const MutexLock lock(mutex_);
  taken_ = taken_ - claim.taken + left;
  finished_.emplace(claim.number, Finished{std::move(sample), left});
  if (left < claim.taken) room_.notify_all();
  arrived_.notify_one();
}

void ConvertRun::read_samples() {
  SampleReader reader(plan_.source(), [this] { return !ask_to_stop().ok() || is_stopped(); });
  while (const std::optional<Claim> mine = claim()) {
    const Status go_on = ask_to_stop();
    Read read{*mine, go_on ? reader.read(mine->id) : Result<std::vector<std::byte>>(go_on.error())};
    const MutexLock lock(mutex_);
    reads_.emplace(mine->number, std::move(read));
    read_.notify_one();
  }
}

// The one that is needed first.
std::optional<ConvertRun::Read> ConvertRun::next_read() {
  const MutexLock lock(mutex_);
  while (!stopped_ && converting_ < to_do_ && reads_.empty()) read_.wait(mutex_);
  if (stopped_ || converting_ == to_do_) return std::nullopt;
  if (++converting_ == to_do_) read_.notify_all();  // nobody else gets one
  return std::move(reads_.extract(reads_.begin()).mapped());
}

Result<ConvertedSample> ConvertRun::convert(Read read, SampleConverter& converter) const {
  FORELOAD_TRY(ask_to_stop());
  const SampleId id = read.claim.id;
  if (!read.bytes) return with_advice(read.bytes.error(), plan_.source().locate(id).shared);
  auto sample = converter.convert(plan_.source().key(id), *std::move(read.bytes));
  if (sample || sample.error().code == Code::kCancelled) return sample;
  const Error& error = sample.error();
  const char* advice =
      error.code == Code::kBadSample ? ". Remove it, or copy such samples as they are (--on-error keep)" : "";
  return Error{error.code, fmt::format("{}: {}{}", describe_sample(plan_.source(), id), error.message, advice)};
}

void ConvertRun::convert_samples() {
  give_up_jpegs_when(ends_);
  SampleConverter converter(options_, pool_);
  while (std::optional<Read> read = next_read()) {
    const Claim mine = read->claim;
    deliver(mine, convert(*std::move(read), converter));
  }
}

Result<ConvertedSample> ConvertRun::take(std::uint64_t number) {
  for (;;) {
    FORELOAD_TRY(ask_to_stop());
    const MutexLock lock(mutex_);
    if (out_of_memory_) return Error{Code::kNoMemory, kNoMemoryToConvert};
    if (finished_.find(number) == finished_.end()) arrived_.wait_until(mutex_, now() + kPoll);
    const auto found = finished_.find(number);
    if (found == finished_.end()) continue;
    Finished finished = std::move(found->second);
    finished_.erase(found);
    taken_ -= finished.taken;
    room_.notify_all();
    return std::move(finished.sample);
  }
}

Result<ShardAccount> ConvertRun::write_shard(std::uint64_t shard) {
  FORELOAD_ASSIGN(ShardWriter writer, ShardWriter::create(destination_, shard));
  for (std::uint64_t place = plan_.first(shard); place < plan_.end(shard); ++place) {
    FORELOAD_ASSIGN(const ConvertedSample sample, take(written_++));
    FORELOAD_TRY(writer.add(plan_.source(), plan_.sample_at(place), sample));
    if (options_.progress) options_.progress(plan_.samples() - to_do_ + written_);
  }
  return std::move(writer).publish();
}

Result<std::vector<ShardAccount>> ConvertRun::write_all_shards() {
  std::vector<ShardAccount> accounts;
  for (const std::uint64_t shard : missing_) {
    FORELOAD_ASSIGN(ShardAccount account, write_shard(shard));
    accounts.push_back(std::move(account));
  }
  return accounts;
}

// The sample of a thread that got no memory is never delivered, so the run ends. No message is made here: that takes
// memory, too.
void ConvertRun::work(bool reads) {
  try {
    if (reads) {
      read_samples();
    } else {
      convert_samples();
    }
  } catch (const std::bad_alloc&) {
    const MutexLock lock(mutex_);
    out_of_memory_ = true;
    arrived_.notify_one();
  }
}

// Fewer threads than asked for: slower, not wrong. But one of each kind is needed.
Status ConvertRun::start(std::vector<Thread>& threads) {
  const unsigned readers = std::min(kReadersPerThread * threads_, kMostReaders);
  for (unsigned i = 0; i < readers + threads_; ++i) {
    const bool reads = i >= threads_;
    auto thread = Thread::start(reads ? "convert-read" : "convert", [this, reads] { work(reads); });
    if (thread) {
      threads.push_back(*std::move(thread));
    } else if (i == 0 || i == threads_) {
      return thread.error();
    }
  }
  return {};
}

Result<std::vector<ShardAccount>> ConvertRun::run() {
  // Whatever happens, the threads are told to stop before they are waited for.
  struct Stopper {
    ConvertRun& run;
    ~Stopper() { run.stop(); }
  };
  std::vector<Thread> threads;
  const Stopper stopper{*this};
  threads.reserve(threads_ + kMostReaders);
  FORELOAD_TRY(start(threads));
  return write_all_shards();
}

}  // namespace foreload
