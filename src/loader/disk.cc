#include "loader/disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"

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

Result<std::unique_ptr<DiskTier>> open_disk(const LoaderOptions& options, const Source& source, const Placement& memory,
                                            Bytes longest, const Seams& seams) {
  if (options.disk.empty()) return std::unique_ptr<DiskTier>();
  if (has_objects_without_validators(source)) {
    tell(options, fmt::format("{} names neither ETag nor Last-Modified for its objects, so nobody could tell whether a "
                              "kept copy is still right. The run goes on without the disk cache",
                              source.uri()));
    return std::unique_ptr<DiskTier>();
  }
  auto store = DiskStore::open({.folder = options.disk,
                                .rank = options.world > 1 ? std::optional(options.rank) : std::nullopt,
                                .sharers = options.world,
                                .samples = samples_of(source),
                                .total_bytes = source.total_bytes(),
                                .limit = options.disk_bytes,
                                .direct = options.direct_io,
                                .fault = seams.write_fault});
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
  (*store)->keep(Placement::plan_below(memory, source.size(), (*store)->capacity(), options.seed, [&](SampleId id) {
    const Bytes length = source.length(id);
    return length > longest ? Bytes{0} : length;
  }));
  return std::make_unique<DiskTier>(std::move(*store));
}

}  // namespace foreload
