#include "probe/loader_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "base/thread.h"
#include "source/describe.h"
#include "source/extent_reader.h"
#include "store/http_client.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kIdleWindow = 40ms;
constexpr Duration kLongestIdleWait = 3s;
// Samples of output that a thread fills before it starts over, as it would a ring slot.
constexpr std::uint64_t kBatch = 64;

Status read_into(const Source& source, SampleId id, std::span<std::byte> into) {
  HttpClient client;
  const auto found = ExtentReader(client).read(source.locate(id), into);
  if (found) return {};
  return Error{found.error().code, fmt::format("{}: {}", describe_sample(source, id), found.error().message)};
}

// What one thread of chain_rate did.
struct Prepared {
  std::uint64_t good = 0;
  Status last_bad;
  Duration elapsed{};
};

Status prepare(ChainRunner& runner, std::span<const std::byte> sample, Position position, std::span<std::byte> out) {
  FORELOAD_TRY(runner.begin(sample, {.seed = 1, .epoch = 0, .position = position}));
  return runner.finish(out);
}

// Every thread begins at another sample. Bad ones cost time and do not count. Time runs once its memory is there.
Prepared run_chain(const LoadedSamples& samples, const Chain& chain, std::uint64_t first, Duration duration) {
  ChainRunner runner(chain);
  const Bytes size = chain.output().bytes();
  std::vector<std::byte> out(size * kBatch);
  Prepared prepared;
  const Time start = now();
  for (Position position = first; now() < start + duration; ++position) {
    const auto sample = samples.samples[position % samples.samples.size()];
    const auto into = std::span(out).subspan(position % kBatch * size, size);
    if (Status status = prepare(runner, sample, position, into); status.ok()) {
      ++prepared.good;
    } else {
      prepared.last_bad = std::move(status);
    }
  }
  prepared.elapsed = now() - start;
  return prepared;
}

}  // namespace

Result<LoadedSamples> load_samples(const Source& source, Bytes most) {
  Bytes total = 0;
  SampleId count = 0;
  while (count < source.size() && total + source.length(count) <= most) total += source.length(count++);
  if (count == 0)
    return Error{Code::kInvalid, fmt::format("the first sample of {} is too large to measure", source.uri())};
  LoadedSamples loaded;
  loaded.bytes.resize(total);
  Bytes at = 0;
  for (SampleId id = 0; id < count; ++id) {
    const auto into = std::span(loaded.bytes).subspan(at, source.length(id));
    FORELOAD_TRY(read_into(source, id, into));
    loaded.samples.push_back(into);
    at += into.size();
  }
  return loaded;
}

void wait_until_idle() {
  const Time deadline = now() + kLongestIdleWait;
  for (double before = cpu_seconds(); now() < deadline;) {
    std::this_thread::sleep_for(kIdleWindow);
    const double used = cpu_seconds() - before;
    if (used < 0.1 * seconds(kIdleWindow)) return;
    before += used;
  }
}

Result<double> chain_rate(const LoadedSamples& samples, const Chain& chain, unsigned threads, Duration duration) {
  std::vector<Prepared> parts(threads);
  parallel_for(threads, threads, [&](std::uint64_t thread) {
    parts[thread] = run_chain(samples, chain, thread * samples.samples.size() / threads, duration);
  });
  double rate = 0;
  for (const Prepared& part : parts) rate += static_cast<double>(part.good) / seconds(part.elapsed);
  if (rate > 0) return rate;
  for (Prepared& part : parts) {
    if (!part.last_bad.ok()) return std::move(part.last_bad).error();
  }
  return Error{Code::kInvalid, fmt::format("no sample was prepared within {:.1f} s", seconds(duration))};
}

Result<double> loader_rate(Loader& loader, Duration duration) {
  // What was prepared while nobody asked is no rate: it is used up first.
  for (unsigned stock = loader.stats().ring_slots; stock > 0; --stock) FORELOAD_TRY(loader.next());
  std::uint64_t samples = 0;
  const Time start = now();
  Time last = start;
  while (last - start < duration) {
    FORELOAD_ASSIGN(const auto batch, loader.next());
    if (batch) samples += batch->size();
    last = now();
  }
  return static_cast<double>(samples) / seconds(last - start);
}

Result<double> read_rate(const Source& source, Duration duration) {
  std::vector<std::byte> buffer(source.max_length());
  Bytes bytes = 0;
  const Time start = now();
  for (SampleId id = 0; now() - start < duration; id = (id + 1) % source.size()) {
    const Bytes length = source.length(id);
    FORELOAD_TRY(read_into(source, id, std::span(buffer).first(length)));
    bytes += length;
  }
  return static_cast<double>(bytes) / seconds(now() - start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace foreload
