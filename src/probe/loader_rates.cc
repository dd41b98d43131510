#include "probe/loader_rates.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/thread.h"
#include "source/describe.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kIdleWindow = 40ms;
// Samples of output that a thread fills before it starts over, as it would a ring slot.
constexpr std::uint64_t kBatch = 64;

Status read_into(const Source& source, SampleId id, std::span<std::byte> into) {
  const Extent extent = source.locate(id);
  FORELOAD_ASSIGN(const Descriptor file, open_below(extent.root, extent.path));
  for (std::size_t done = 0; done < into.size();) {
    const ssize_t got =
        ::pread(file.get(), into.data() + done, into.size() - done, static_cast<off_t>(extent.offset + done));
    if (got <= 0) return errno_error(fmt::format("cannot read {}", describe_sample(source, id)), got < 0 ? errno : EIO);
    done += static_cast<std::size_t>(got);
  }
  return {};
}

// One thread of chain_rate: every thread begins at another sample. Returns how many it prepared.
std::uint64_t run_chain(const LoadedSamples& samples, const Chain& chain, std::uint64_t first, Time end) {
  ChainRunner runner(chain);
  const Bytes size = chain.output().bytes();
  std::vector<std::byte> out(size * kBatch);
  std::uint64_t prepared = 0;
  while (now() < end) {
    const auto sample = samples.samples[(first + prepared) % samples.samples.size()];
    if (runner.begin(sample, {.seed = 1, .epoch = 0, .position = first + prepared}).ok()) {
      (void)runner.finish(std::span(out).subspan(prepared % kBatch * size, size)).ok();
    }
    ++prepared;
  }
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
  for (double before = cpu_seconds();;) {
    std::this_thread::sleep_for(kIdleWindow);
    const double used = cpu_seconds() - before;
    if (used < 0.1 * seconds(kIdleWindow)) return;
    before += used;
  }
}

Result<double> chain_rate(const LoadedSamples& samples, const Chain& chain, unsigned threads, Duration duration) {
  std::atomic<std::uint64_t> prepared{0};
  const Time start = now();
  parallel_for(threads, threads, [&](std::uint64_t thread) {
    prepared += run_chain(samples, chain, thread * samples.samples.size() / threads, start + duration);
  });
  return static_cast<double>(prepared) / seconds(now() - start);
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
