// The order of the measurements: storage first, while nothing of the dataset has been touched; then the page cache,
// which is warm by then; then a specimen is copied, and memory tier, prep and disk tier are measured with it: what
// takes little time comes first, so that there is some left for it.
#include "probe/analysis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/text.h"
#include "probe/measure_prep.h"
#include "probe/measure_sizes.h"
#include "probe/measure_storage.h"
#include "probe/read_stream.h"
#include "probe/specimen.h"
#include "probe/storage_disk.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kMuch = 16'000'000;  // few samples will do when they are long
constexpr double kDiskTime = 0.05;
constexpr double kDiskBytes = 0.1;
constexpr unsigned kDiskWindows = 9;
constexpr Duration kDiskWindow = 100ms;
constexpr Duration kNetworkWindow = 200ms;
constexpr Duration kNetworkTime = 3s;  // beside the rest: the dataset is not read for it
constexpr unsigned kNetworkWindows = 11;

class Measurement {
 public:
  Measurement(const LoaderOptions& options, const Source& source, Allowance& allowance)
      : options_(options), source_(source), allowance_(allowance) {}

  Result<Measured> run();

 private:
  Status take_specimen();
  Status measure_prep();
  Status measure_disk();
  Status measure_network();
  void measure_share();
  // What fails is missing, with the reason; only a stop ends everything.
  Status keep(const char* what, Status done);
  void lack(const char* what, std::string why) { measured_.missing.push_back({what, std::move(why)}); }

  const LoaderOptions& options_;
  const Source& source_;
  Allowance& allowance_;

  std::optional<Specimen> specimen_;
  Measured measured_;
};

Status Measurement::keep(const char* what, Status done) {
  if (done.ok()) return {};
  if (done.error().code == Code::kCancelled) return done;
  lack(what, done.error().message);
  return {};
}

Status Measurement::take_specimen() {
  allowance_.tell("copying a few samples", 0.52);
  FORELOAD_ASSIGN(Specimen taken, Specimen::take(source_, options_, allowance_));
  if (taken.size() < kLeastSamples && taken.bytes() < kMuch) {
    return Error{Code::kInvalid, fmt::format("{} could be had for it: fewer than {} say nothing",
                                             counted(taken.size(), "sample"), kLeastSamples)};
  }
  specimen_.emplace(std::move(taken));
  return {};
}

// In the form of the dataset: with row offsets where its index has them.
Status Measurement::measure_prep() {
  std::string dataset = specimen_->raw();
  if (!source_.rows(0).empty()) {
    dataset = specimen_->folder() + "/record";
    FORELOAD_TRY(specimen_->convert("record", true, allowance_));
  }
  const LoaderOptions small = specimen_->options(options_, dataset);
  FORELOAD_TRY(keep("memory tier", measure_memory(small, allowance_, measured_)));
  FORELOAD_TRY(keep("prep, by stage", measure_stages(small, allowance_, measured_)));
  return keep("prep", measure_threads(small, options_.workers, allowance_, measured_));
}

Status Measurement::measure_disk() {
  allowance_.tell("disk tier", 0.92);
  FORELOAD_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make(options_.disk));
  FORELOAD_ASSIGN(const auto source, open_source({.datasets = {specimen_->raw()}}));
  FORELOAD_ASSIGN(const auto path, DiskPath::open(*source, {.folder = folder.path(), .direct = true}));
  const Bytes most = allowance_.bytes(kDiskBytes);
  const auto window = [&]() -> Result<std::optional<double>> {
    FORELOAD_ASSIGN(const ReadWindow read, path->window(most / kDiskWindows, kDiskWindow));
    allowance_.spend(read.bytes);
    return std::optional(read.bytes_per_s());
  };
  FORELOAD_TRY(path->rate(kDiskWindow / 10));
  FORELOAD_TRY(window());  // fills the queue
  const WindowRule rule{.most = kDiskWindows - 1};
  FORELOAD_ASSIGN(measured_.disk, repeat_windows(allowance_, allowance_.deadline(kDiskTime), window, rule));
  if (!measured_.disk.known()) return no_time_left();
  return {};
}

// In samples as long as those of the dataset are on average.
Status Measurement::measure_network() {
  allowance_.tell("network", 0.97);
  const Bytes length = source_.total_bytes() / std::max<std::uint64_t>(source_.size(), 1);
  const auto& fetch = allowance_.how().peers;
  const auto window = [&]() -> Result<std::optional<double>> {
    FORELOAD_TRY(allowance_.go_on());
    FORELOAD_ASSIGN(const double rate, fetch(length, kNetworkWindow));
    return std::optional(rate);
  };
  FORELOAD_TRY(window());  // connects
  const WindowRule rule{.most = kNetworkWindows};
  FORELOAD_ASSIGN(measured_.network, repeat_windows(allowance_, now() + kNetworkTime, window, rule));
  return {};
}

void Measurement::measure_share() {
  const Figure storage = best_storage(measured_.storage);
  if (!storage.known()) return;
  if (auto shares = measure_read_shares(source_, options_, storage.value)) measured_.read_share = std::move(*shares);
}

Result<Measured> Measurement::run() {
  measured_.samples = source_.size();
  measured_.bytes = source_.total_bytes();
  measured_.sizes = measure_sizes(source_, options_.seed);
  FORELOAD_TRY(measure_storage(source_, options_, allowance_, measured_));
  measure_share();
  const Status taken = take_specimen();
  if (!taken.ok() && taken.error().code == Code::kCancelled) return taken.error();
  if (specimen_) {
    FORELOAD_TRY(keep("prep", measure_prep()));
  } else {
    for (const char* what : {"prep", "memory tier"}) lack(what, taken.error().message);
  }
  if (options_.disk.empty()) {
    lack("disk tier", "no folder was given for one: --disk FOLDER");
  } else if (!specimen_) {
    lack("disk tier", taken.error().message);
  } else {
    FORELOAD_TRY(keep("disk tier", measure_disk()));
  }
  const double network = allowance_.how().network;
  if (network > 0) {
    measured_.network = {.value = network, .low = network, .high = network, .windows = 1};
  } else if (allowance_.how().peers) {
    FORELOAD_TRY(keep("network", measure_network()));
  } else {
    lack(
        "network",
        "nothing is predicted of hosts that share their caches: name them with --peers while their agents run, or give "
        "the rate with --network, such as 1GB/s");
  }
  const double rate = allowance_.how().accelerator;
  if (rate > 0) measured_.accelerator = {.value = rate, .low = rate, .high = rate, .windows = 1};
  measured_.bytes_read = allowance_.spent();
  allowance_.tell("done", 1);
  return std::move(measured_);
}

}  // namespace

Result<Measured> measure(const LoaderOptions& options, const MeasureOptions& how) {
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  if (how.opened) how.opened();
  Allowance allowance(how);
  return Measurement(options, *source, allowance).run();
}

}  // namespace foreload
