#include "probe/storage_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "policy/eviction.h"
#include "probe/child.h"
#include "probe/storage_set.h"

namespace foreload {
namespace {

Status flush(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid() || ::fdatasync(file.get()) != 0) return errno_error("cannot flush " + path, errno);
  return {};
}

DiskSamples samples_of(const Source& source) {
  return {.count = source.size(),
          .fingerprint = source.fingerprint(),
          .length = [&source](SampleId id) { return source.length(id); },
          .stamp = [&source](SampleId id) { return source.locate(id).stamp; }};
}

}  // namespace

Result<std::unique_ptr<DiskPath>> DiskPath::open(const Source& source, const DiskPathOptions& options) {
  FORELOAD_ASSIGN(auto store, DiskStore::open({.folder = options.folder,
                                               .samples = samples_of(source),
                                               .total_bytes = source.total_bytes(),
                                               .direct = options.direct}));
  std::unique_ptr<DiskPath> path(new DiskPath(source, options));
  // A sample is read once at a time.
  path->options_.depth = static_cast<unsigned>(std::min<std::uint64_t>(options.depth, source.size()));
  FORELOAD_TRY(path->fill(*store));
  // Room for what is read and for what the caller looks at.
  const Bytes transit = 2 * path->options_.depth * Arena::footprint(source.max_length());
  FORELOAD_ASSIGN(path->arena_, Arena::create({.samples = source.size(), .transit = transit}));
  FORELOAD_ASSIGN(
      auto engine,
      open_read_engine({.depth = options.depth, .direct = options.direct, .bounce_bytes = source.max_length()}));
  auto bottom = std::make_unique<SourceTier>(source, std::move(engine), std::nullopt,
                                             SourceTierOptions{.direct = options.direct});
  path->tiers_ = std::make_unique<TierStack>(source, std::make_unique<KeptHomes>(path->nowhere_), *path->arena_,
                                             std::move(bottom), std::make_unique<DiskTier>(std::move(store)));
  FORELOAD_TRY(flush(path->data_file()));
  if (options.direct) FORELOAD_TRY(forget_file(path->data_file()));
  return path;
}

Status DiskPath::fill(DiskStore& store) const {
  std::vector<std::byte> bytes;
  for (SampleId id = 0; id < source_.size(); ++id) {
    if (store.has(id)) continue;
    const Extent extent = source_.locate(id);
    FORELOAD_ASSIGN(const Descriptor file, open_below(extent.root, extent.path));
    bytes.resize(extent.length);
    FORELOAD_TRY(read_exactly(file.get(), extent.offset, bytes));
    FORELOAD_ASSIGN(const bool written, store.write(id, bytes));
    if (!written) return Error{Code::kIo, fmt::format("{} has no room for sample {}", store.path(), id)};
  }
  return {};
}

// False: it is there or on its way already.
bool DiskPath::ask_next() {
  const SampleId id = order_.sample_at(asked_ / order_.size(), asked_ % order_.size());
  ++asked_;
  if (tiers_->request({.id = id, .from = Origin::kDisk}, now()).kind != Ask::kQueued) return false;
  return tiers_->start_next(Origin::kDisk, now()).has_value();
}

Result<ReadWindow> DiskPath::window(Bytes bytes, Duration time) {
  std::vector<Arrival> arrivals;
  ReadWindow window;
  Time last = window_start_;
  while (window.bytes < bytes && last - window_start_ < time) {
    while (tiers_->in_flight() < options_.depth) (void)ask_next();
    tiers_->wait(arrivals, kNever);
    for (const Arrival& arrival : arrivals) {
      if (!arrival.status.ok()) return arrival.status.error();
      if (arrival.origin != Origin::kDisk) return Error{Code::kIo, "the disk cache has lost a sample"};
      window.bytes += arrival.length;
      ++window.samples;
    }
    arrivals.clear();
    last = now();
  }
  window.elapsed = last - window_start_;
  window_start_ = last;
  return window;
}

void DiskPath::rest() {
  tiers_->drain();
  window_start_ = now();
}

Result<double> DiskPath::rate(Duration duration) {
  rest();
  FORELOAD_ASSIGN(const ReadWindow read, window(std::numeric_limits<Bytes>::max(), duration));
  rest();
  return read.bytes_per_s();
}

Result<double> fio_rate(const FioJob& job) {
  FORELOAD_ASSIGN(
      const std::string text,
      output_of(
          {"fio", "--name=peer", "--filename=" + job.file, "--readonly", "--rw=randread", "--ioengine=io_uring",
           fmt::format("--direct={}", job.direct ? 1 : 0), "--invalidate=0", fmt::format("--bs={}", job.block),
           fmt::format("--iodepth={}", job.depth), "--norandommap", "--randrepeat=0", "--time_based",
           fmt::format("--runtime={}ms", std::chrono::duration_cast<std::chrono::milliseconds>(job.duration).count()),
           "--output-format=json"}));
  const auto report = nlohmann::json::parse(text, nullptr, false);
  const auto rate = nlohmann::json::json_pointer("/jobs/0/read/bw_bytes");
  if (report.is_discarded() || !report.contains(rate)) return Error{Code::kIo, "fio did not report a rate"};
  return report.at(rate).get<double>();
}

}  // namespace foreload
