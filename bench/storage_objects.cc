#include "probe/storage_objects.h"

#include <fmt/format.h>

#include "policy/coalescing.h"
#include "probe/child.h"
#include "probe/loader_rates.h"
#include "probe/storage_epochs.h"
#include "storage_parts.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr const char* kStub = "tests/object_store_stub.py";
constexpr std::uint64_t kObjects = 1500;
constexpr double kObjectRate = 100e6;

LoaderOptions object_options(const StorageSet& set, const std::string& url) {
  LoaderOptions options = set.options();
  options.dataset = {url};
  options.memory = 256_MiB;
  options.cache = false;
  return options;
}

// Bytes per second of later epochs, against what the server gives.
Status object_rate(const StorageBench& bench, const LoaderOptions& options, const std::string& what) {
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  const auto all = static_cast<double>(loader.source().total_bytes());
  FORELOAD_TRY(run_epoch(loader, 0ms));
  std::vector<double> shares;
  for (unsigned round = 0; round < kRounds; ++round) {
    FORELOAD_ASSIGN(const EpochRun run, run_epoch(loader, 0ms));
    shares.push_back(all / run.seconds / kObjectRate);
  }
  bench.report.add(
      "storage/s3_bandwidth_" + what, median(shares), "ratio", 0.9, true,
      fmt::format("epochs of {} x 110 KB, nothing cached, against the 100 MB/s of a local server that takes "
                  "20 ms for every request; median of {}",
                  kObjects, kRounds));
  return {};
}

// Requests for a tar that is read in order, against one for as many samples as one request may bring.
Status object_requests(const StorageBench& bench, LoaderOptions options, const ObjectsServer& server) {
  constexpr Bytes kMember = 512 + (StorageSet::kLength + 511) / 512 * 512;
  constexpr std::uint64_t kGroup = 1 + (CoalesceOptions{}.longest - StorageSet::kLength) / kMember;
  options.shuffle = false;
  options.epochs = 3;
  FORELOAD_ASSIGN(const std::uint64_t before, server.gets());
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  while (loader.position().epoch < options.epochs) FORELOAD_TRY(loader.next());
  FORELOAD_ASSIGN(const std::uint64_t after, server.gets());
  const auto groups = static_cast<double>(options.epochs * ((kObjects + kGroup - 1) / kGroup));
  bench.report.add("storage/s3_requests_per_group", static_cast<double>(after - before) / groups, "ratio", 1.05, false,
                   fmt::format("{} epochs in order of a tar of {} samples; a group is the {} that fit into one request",
                               options.epochs, kObjects, kGroup));
  return {};
}

}  // namespace

Status bench_objects(const StorageBench& bench) {
  FORELOAD_ASSIGN(const StorageSet set, StorageSet::make(bench.set.folder(), kObjects));
  FORELOAD_TRY(output_of({"tar", "--sort=name", "-C", set.samples(), "-cf", set.folder() + "/set.tar", "."}));
  const auto server =
      ObjectsServer::start({.script = kStub, .folder = set.folder(), .latency = 0.02, .bandwidth = kObjectRate});
  if (!server.ok()) {
    for (const char* row : {"s3_bandwidth_objects", "s3_bandwidth_tar", "s3_requests_per_group"}) {
      bench.report.skip(fmt::format("storage/{}", row), server.error().message);
    }
    return {};
  }
  server->serve_s3();
  const std::string bucket = fmt::format("s3://{}/", ObjectsServer::kBucket);
  const LoaderOptions tar = object_options(set, bucket + "set.tar");
  FORELOAD_TRY(object_rate(bench, object_options(set, bucket + "set/"), "objects"));
  FORELOAD_TRY(object_rate(bench, tar, "tar"));
  return object_requests(bench, tar, *server);
}

}  // namespace foreload
