// Raw against record: the same samples in three forms, each through a loader that keeps nothing. How often storage was
// asked comes from the loader's event record.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/event_record.h"
#include "base/files.h"
#include "base/machine.h"
#include "probe/analysis.h"
#include "probe/loader_rates.h"
#include "probe/measure_sizes.h"
#include "probe/read_stream.h"
#include "probe/specimen.h"
#include "probe/stop_watch.h"
#include "probe/windows.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr double kFormTime = 0.25;       // of the whole, for each
constexpr double kWarmUp = 1.0 / 3;      // of it
constexpr std::uint64_t kLearned = 320;  // reads after which a loader knows whether parts of samples pay
constexpr std::uint64_t kPasses = 6;     // over the samples, at most
constexpr std::size_t kTimes = 16;       // that the samples stand in the dataset of a run
constexpr Duration kWindow = 250ms;

// What a loader has done by now.
struct Progress {
  Time time{};
  double cpu = 0;
  std::uint64_t samples = 0;
  Bytes bytes = 0;
};

Progress progress_of(const Loader& loader) {
  Progress progress{.time = now(), .cpu = cpu_seconds()};
  for (const EpochStats& epoch : loader.stats().epochs) {
    progress.samples += epoch.samples;
    progress.bytes += epoch.source_bytes;
  }
  return progress;
}

class FormMeasurement {
 public:
  FormMeasurement(const LoaderOptions& options, Specimen specimen, Allowance& allowance)
      : options_(options), specimen_(std::move(specimen)), allowance_(allowance) {}

  Result<Forms> run();

 private:
  Status make();
  Status flush() const;
  Result<FormRun> measure(const std::string& name);
  Status load(Loader& loader, FormRun& run, Time& since);
  Result<double> requests_per_sample(const std::string& record, const Source& source, Time since) const;

  const LoaderOptions& options_;
  Specimen specimen_;
  Allowance& allowance_;
  bool has_bad_ = false;
  Forms forms_;
};

Status FormMeasurement::flush() const {
  FORELOAD_ASSIGN(const Descriptor all, open_directory(specimen_.folder()));
  if (::syncfs(all.get()) != 0) return errno_error("cannot flush " + specimen_.folder(), errno);
  return {};
}

Status FormMeasurement::make() {
  allowance_.tell("converting a few samples", 0.1);
  FORELOAD_ASSIGN(const ConvertReport record, specimen_.convert("record", true, allowance_));
  FORELOAD_ASSIGN(const ConvertReport crop, specimen_.convert("crop", false, allowance_));
  has_bad_ = !record.bad.empty();
  forms_.raw.stored = specimen_.bytes();
  forms_.record.stored = record.bytes;
  forms_.crop_addressable.stored = crop.bytes;
  if (crop.rewritten == 0) {
    forms_.missing.push_back({"crop-addressable", "none of the samples is a JPEG that can be made so"});
    forms_.crop_addressable.stored = 0;
  }
  return flush();
}

// The first samples do not count: the loader learns what storage gives.
Status FormMeasurement::load(Loader& loader, FormRun& run, Time& since) {
  const Time end = allowance_.deadline(kFormTime);
  const Time learned =
      now() + Duration(static_cast<std::int64_t>(kWarmUp * static_cast<double>((end - now()).count())));
  Progress before = progress_of(loader);
  while (before.samples < kLearned && now() < learned) {
    FORELOAD_TRY(loader.next());
    before = progress_of(loader);
  }
  const Progress first = before;
  since = first.time;
  std::vector<double> rates;
  Progress last = first;
  const auto is_enough = [&] {
    return rates.size() >= kLeastWindows && last.samples >= first.samples + kPasses * specimen_.size();
  };
  while (now() < end && !is_enough()) {
    FORELOAD_TRY(allowance_.go_on());
    FORELOAD_TRY(loader.next());
    last = progress_of(loader);
    if (last.time - before.time < kWindow || last.samples == before.samples) continue;
    rates.push_back(static_cast<double>(last.samples - before.samples) / seconds(last.time - before.time));
    before = last;
  }
  if (rates.empty()) return no_time_left();
  const auto pass = static_cast<double>(specimen_.size()) / static_cast<double>(last.samples - first.samples);
  run.bytes = static_cast<Bytes>(pass * static_cast<double>(last.bytes - first.bytes));
  run.cpu_seconds = pass * (last.cpu - first.cpu);
  run.samples_per_s = median(std::move(rates));
  return {};
}

// Of a sample that is read in two parts, two. A file of its own has to be opened for it.
Result<double> FormMeasurement::requests_per_sample(const std::string& record, const Source& source, Time since) const {
  FORELOAD_ASSIGN(const std::vector<Event> events, read_event_record(record));
  double reads = 0;
  double parts = 0;
  for (const Event& event : events) {
    if (event.time < since || event.kind != EventKind::kReadStarted || event.a >= source.size()) continue;
    reads += 1;
    parts += event.b < source.length(event.a) ? 1 : 0;
  }
  if (reads == 0) return 0.0;
  return 1 + parts / reads + (source.locate(0).shared ? 0 : 1);
}

Result<FormRun> FormMeasurement::measure(const std::string& name) {
  LoaderOptions options = specimen_.options(options_, specimen_.folder() + "/" + name);
  // Many times over: of so few samples, many would still be on their way when they are needed again.
  options.dataset.assign(kTimes, options.dataset.front());
  options.cache = false;
  options.direct_io = forms_.cold;
  options.storage = options_.storage;
  options.workers = options_.workers;
  if (!has_bad_) options.on_error = OnError::kFail;  // only then are parts of samples read
  options.record = specimen_.folder() + "/" + name + ".events";
  FormRun run;
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  Time since{};
  {
    FORELOAD_ASSIGN(Loader loader, Loader::open(options));
    FORELOAD_ASSIGN(const auto watch, StopWatch::start(loader, allowance_.how().stop));
    FORELOAD_TRY(load(loader, run, since));
  }
  if (allowance_.how().storage > 0) {
    FORELOAD_ASSIGN(run.read_share, measure_read_shares(*source, options, allowance_.how().storage));
  }
  FORELOAD_ASSIGN(const double requests, requests_per_sample(options.record, *source, since));
  run.requests = static_cast<std::uint64_t>(requests * static_cast<double>(specimen_.size()) + 0.5);
  return run;
}

Result<Forms> FormMeasurement::run() {
  FORELOAD_TRY(make());
  FORELOAD_ASSIGN(const auto raw, open_source({.datasets = {specimen_.raw()}}));
  forms_.samples = specimen_.size();
  forms_.bytes = specimen_.bytes();
  forms_.cold = reads_direct(*raw, 0);
  if (!forms_.cold) {
    forms_.missing.push_back(
        {"raw against record, cold",
         fmt::format("{} can not be read past the page cache: the rates are those of warm files", specimen_.folder())});
  }
  const auto fill = [&](const char* name, FormRun& into, double share) -> Status {
    allowance_.tell(fmt::format("loading {}", name), share);
    FORELOAD_ASSIGN(FormRun run, measure(name));
    run.stored = into.stored;
    into = run;
    return {};
  };
  FORELOAD_TRY(fill("raw", forms_.raw, 0.25));
  FORELOAD_TRY(fill("record", forms_.record, 0.5));
  if (forms_.crop_addressable.stored > 0) FORELOAD_TRY(fill("crop", forms_.crop_addressable, 0.75));
  allowance_.tell("done", 1);
  return std::move(forms_);
}

}  // namespace

Result<Forms> compare_forms(const LoaderOptions& options, const MeasureOptions& how) {
  FORELOAD_ASSIGN(const std::unique_ptr<Source> source, open_dataset(options));
  if (how.opened) how.opened();
  Allowance allowance(how);
  FORELOAD_ASSIGN(Specimen specimen, Specimen::take(*source, options, allowance));
  return FormMeasurement(options, std::move(specimen), allowance).run();
}

}  // namespace foreload
