#include "loader/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "loader/setup.h"

namespace foreload {
namespace {

DiskSamples samples_of(const Source& source) {
  return {.count = source.size(),
          .fingerprint = source.fingerprint(),
          .length = [&source](SampleId id) { return source.length(id); },
          .stamp = [&source](SampleId id) { return source.locate(id).stamp; }};
}

// A server names them for all of its objects or for none: some are looked at.
bool has_objects_without_validators(const Source& source) {
  constexpr std::uint64_t kLooks = 1024;
  const std::uint64_t step = std::max<std::uint64_t>(source.size() / kLooks, 1);
  for (SampleId id = 0; id < source.size(); id += step) {
    const Extent extent = source.locate(id);
    if (extent.store != nullptr && extent.stamp.mtime_ns == 0) return true;
  }
  return false;
}

void tell(const LoaderOptions& options, const std::string& text) {
  if (options.warn) options.warn(text);
}

// Less is kept than could be: what else lies in the folder may be the reason.
void tell_if_short(const LoaderOptions& options, const DiskStore& store) {
  if (!store.is_short()) return;
  const std::string others = store.neighbours();
  tell(options,
       fmt::format("the disk cache {} is limited to {}, because its file system has no more free space{}", store.path(),
                   format_bytes(store.capacity()), others.empty() ? "" : "; other caches lie beside it: " + others));
}

// How much a learner's disk is for the sample, among the disks that hosts share: first for what is at home there; then
// for what has no home; then for copies of this host's memory, for the next start. Nothing else: others keep it.
std::uint16_t disk_rank(const DiskNeeds& needs, SampleId id) {
  if (needs.seat->is_home(id)) return 3;
  if (!needs.job.home(id).exists()) return 2;
  return needs.job.is_in_memory_here(id) ? 1 : 0;
}

Placement plan_disk(const DiskNeeds& needs, Bytes capacity) {
  const Source& source = needs.source;
  const auto footprint = [&](SampleId id) {
    const Bytes length = source.length(id);
    return length > needs.longest ? Bytes{0} : length;
  };
  if (needs.seat == nullptr) {
    return Placement::plan_below(needs.memory, source.size(), capacity, needs.options.seed, footprint);
  }
  std::vector<std::uint16_t> rank(source.size());
  for (SampleId id = 0; id < source.size(); ++id) rank[id] = disk_rank(needs, id);
  const Bytes slack = capacity / 33;  // copies must not keep homes out by the holes between them
  return Placement::plan_most_used(rank, capacity - slack, needs.options.seed,
                                   [&](SampleId id) { return rank[id] > 0 ? footprint(id) : 0; });
}

}  // namespace

Status check_disk(const LoaderOptions& options) {
  if (options.disk.empty()) {
    if (options.disk_bytes == 0) return {};
    return Error{Code::kInvalid, "disk_size (--disk-size) was given, but no folder for the disk cache (disk, --disk)"};
  }
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path disk = fs::weakly_canonical(options.disk, failed);
  if (failed) return {};
  for (const std::string& dataset : options.dataset) {
    const fs::path root = fs::canonical(dataset, failed);
    if (failed || !fs::is_directory(root, failed)) continue;
    const auto [end, unused] = std::mismatch(root.begin(), root.end(), disk.begin(), disk.end());
    if (end != root.end()) continue;
    return Error{Code::kInvalid,
                 fmt::format("the disk cache {} lies inside of the dataset {}, which would change by it: "
                             "choose another folder",
                             options.disk, dataset)};
  }
  return {};
}

Result<std::unique_ptr<DiskTier>> open_disk(const DiskNeeds& needs) {
  const LoaderOptions& options = needs.options;
  const Source& source = needs.source;
  if (options.disk.empty()) return std::unique_ptr<DiskTier>();
  if (has_objects_without_validators(source)) {
    tell(options, fmt::format("{} names neither ETag nor Last-Modified for its objects, so nobody could tell whether a "
                              "kept copy is still right. The run goes on without the disk cache",
                              source.uri()));
    return std::unique_ptr<DiskTier>();
  }
  auto store = DiskStore::open({.folder = options.disk,
                                .rank = options.world > 1 ? std::optional(options.rank) : std::nullopt,
                                .sharers = learners_here(options),
                                .samples = samples_of(source),
                                .total_bytes = source.total_bytes(),
                                .limit = options.disk_bytes != 0 ? options.disk_bytes : needs.job.disk_each,
                                .direct = options.direct_io,
                                .fault = needs.seams.write_fault});
  if (!store) {
    const Error& error = store.error();
    const std::string text = "the disk cache (disk, --disk) can not be used: " + error.message;
    if (error.code == Code::kNotFound || error.code == Code::kInvalid) {
      return Error{Code::kInvalid, text + "; name a folder of which at most the last part is missing"};
    }
    tell(options, text + ". The run goes on without it");
    return std::unique_ptr<DiskTier>();
  }
  tell_if_short(options, **store);
  (*store)->keep(plan_disk(needs, (*store)->capacity()));
  return std::make_unique<DiskTier>(std::move(*store));
}

}  // namespace foreload
