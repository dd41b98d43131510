#include "probe/storage_disk.h"

#include <fmt/format.h>

#include <filesystem>

#include "probe/loader_rates.h"
#include "storage_parts.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

// The tier's read path against fio, in turns.
Status disk_against_fio(const StorageBench& bench, const Source& source, const DiskPathOptions& options) {
  FORELOAD_ASSIGN(const auto path, DiskPath::open(source, options));
  const FioJob job{.file = path->data_file(),
                   .block = (StorageSet::kLength + 4095) / 4096 * 4096,
                   .depth = options.depth,
                   .direct = options.direct,
                   .duration = 1500ms};
  const std::string name = options.direct ? "storage/disk_against_fio" : "storage/disk_buffered_against_fio";
  std::vector<double> ratios, rates;
  (void)path->rate(300ms);
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const double ours, path->rate(1500ms));
    const auto fio = fio_rate(job);
    if (!fio.ok() && fio.error().code == Code::kNotFound) {
      bench.report.skip(name, fio.error().message);
      return {};
    }
    if (!fio.ok()) return fio.error();
    ratios.push_back(ours / *fio);
    rates.push_back(ours);
  }
  const std::string how = fmt::format(
      "random 110-KB samples, {} at once, hashes checked, {:.2f} GB/s; fio: blocks of {} bytes, "
      "io_uring, same file; median of {} turns",
      options.depth, median(rates) / 1e9, job.block, kRounds);
  if (options.direct) {
    bench.report.add(name, median(ratios), "ratio", 0.85, true, how);
  } else {
    bench.report.note(name, median(ratios), "ratio",
                      how + "; all in the page cache: fio never looks at what it has copied");
  }
  return {};
}

}  // namespace

Status bench_disk(const StorageBench& bench) {
  FORELOAD_ASSIGN(const auto source,
                  open_source({.datasets = {bench.set.samples()}, .index_folder = bench.set.folder()}));
  FORELOAD_ASSIGN(const std::string folder, make_fresh_folder(bench.set.folder(), "disk"));
  FORELOAD_TRY(disk_against_fio(bench, *source, {.folder = folder, .direct = true}));
  FORELOAD_TRY(disk_against_fio(bench, *source, {.folder = folder, .direct = false}));
  std::filesystem::remove_all(folder);
  return {};
}

}  // namespace foreload
