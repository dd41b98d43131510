#include "lab/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace foreload {
namespace {

// CoorDL's servers: 8 V100, 24 cores, 500 GB, a SATA SSD of 530 MB/s. OpenImages is 645 GB, of which 65 % fit; fewer
// and larger samples keep the bytes, on which the page cache's behaviour depends.
constexpr auto kCoordlMisses = std::to_array<PresetRow>({
    {.what = "misses, MinIO",
     .published = 0.35,
     .measure = Measure::kMisses,
     .system = "minio",
     .basis = Basis::kComplete},
    {.what = "misses, page cache, shuffled",
     .published = 0.53,
     .measure = Measure::kMisses,
     .system = "page-cache",
     .basis = Basis::kComplete},
    {.what = "misses, page cache, in order of files",
     .published = 0.66,
     .measure = Measure::kMisses,
     .system = "page-cache-in-order",
     .basis = Basis::kComplete},
});
constexpr auto kCoordlServer = std::to_array<PresetRow>({
    {.what = "training, one server, SSD",
     .published = 1.5,
     .published_to = 2.1,
     .system = "minio",
     .baseline = "page-cache",
     .basis = Basis::kAssumed},
    {.what = "training, one server, HDD",
     .published = 1.5,
     .published_to = 2.1,
     .system = "minio",
     .baseline = "page-cache",
     .changes = "storage-rate=50MB/s"},
});
constexpr auto kCoordlTwo = std::to_array<PresetRow>({
    {.what = "training, two HDD servers, up to",
     .published = 15,
     .system = "partitioned",
     .baseline = "page-cache",
     .basis = Basis::kFitted},
});
constexpr auto kCoordlSearch = std::to_array<PresetRow>({
    {.what = "8 jobs, AlexNet, ImageNet in memory",
     .published = 3,
     .system = "coordinated",
     .baseline = "page-cache",
     .basis = Basis::kAssumed},
});
constexpr auto kCoordlOpenImages = std::to_array<PresetRow>({
    {.what = "8 jobs, OpenImages, 65 % fits",
     .published = 5.3,
     .published_to = 5.7,
     .system = "coordinated",
     .baseline = "page-cache"},
    {.what = "reads of 8 jobs over those of one",
     .published = 7,
     .measure = Measure::kReads,
     .system = "page-cache",
     .baseline = "page-cache",
     .changes = "jobs=1 learners=1",
     .baseline_also = "jobs=8 learners=8"},
});
constexpr auto kCores = std::to_array<PresetRow>({
    {.what = "AlexNet, 3 cores for a V100",
     .published = 853,
     .measure = Measure::kRate,
     .system = "minio",
     .changes = "accelerator=2509",
     .basis = Basis::kFitted},
    {.what = "ShuffleNet",
     .published = 832,
     .measure = Measure::kRate,
     .system = "minio",
     .changes = "accelerator=2406"},
    {.what = "ResNet18", .published = 800, .measure = Measure::kRate, .system = "minio", .changes = "accelerator=1920"},
    {.what = "MobileNetV2",
     .published = 721,
     .measure = Measure::kRate,
     .system = "minio",
     .changes = "accelerator=1118"},
    {.what = "ResNet50", .published = 656, .measure = Measure::kRate, .system = "minio", .changes = "accelerator=755"},
});
constexpr auto kMummi = std::to_array<PresetRow>({
    {.what = "loading, 16 nodes",
     .published = 18,
     .system = "locality",
     .changes = "hosts=16",
     .basis = Basis::kFitted},
    {.what = "loading, 32 nodes", .published = 35, .system = "locality", .changes = "hosts=32"},
    {.what = "loading, 64 nodes", .published = 70, .system = "locality", .changes = "hosts=64"},
    {.what = "loading, 128 nodes", .published = 120, .system = "locality", .changes = "hosts=128"},
});
constexpr auto kYangImagenet = std::to_array<PresetRow>({
    {.what = "loading, 256 nodes, 1,024 learners", .published = 34, .system = "locality", .basis = Basis::kFitted},
    {.what = "training, 64 nodes",
     .published = 1.9,
     .system = "locality",
     .changes = "hosts=64 accelerator=158",
     .basis = Basis::kFitted},
});
constexpr auto kUcf101 = std::to_array<PresetRow>({
    {.what = "loading, RGB, least",
     .published = 2.8,
     .system = "locality",
     .changes = "hosts=4",
     .basis = Basis::kFitted},
    {.what = "loading, RGB, most",
     .published = 55.5,
     .system = "locality",
     .changes = "hosts=80",
     .basis = Basis::kFitted},
    {.what = "loading, FLOW, least",
     .published = 2.2,
     .system = "locality",
     .changes = "hosts=4 sample-bytes=4600 prep=180 storage-requests=13100",
     .basis = Basis::kFitted},
});
constexpr auto kNopfsLassen = std::to_array<PresetRow>({
    {.what = "ImageNet, ResNet-50, 1,024 GPUs", .published = 5.4, .system = "nopfs", .basis = Basis::kFitted},
});
constexpr auto kNopfsDaint = std::to_array<PresetRow>({
    {.what = "ImageNet, ResNet-50, 256 GPUs", .published = 2.2, .system = "nopfs", .basis = Basis::kFitted},
});
constexpr auto kLobster = std::to_array<PresetRow>({
    {.what = "training, 8 nodes, up to", .published = 1.5, .system = "lobster", .basis = Basis::kFitted},
});
constexpr auto kReshuffle = std::to_array<PresetRow>({
    {.what = "epoch, partial over global shuffle, up to", .published = 5, .system = "partial", .basis = Basis::kFitted},
});
constexpr auto kEcho = std::to_array<PresetRow>({
    {.what = "5 uses of a sample: time to a target",
     .published = 3.25,
     .measure = Measure::kSpeedUp,
     .system = "echo",
     .basis = Basis::kAssumed},
});

constexpr const char* kCoordl =
    "Mohan et al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB 2021 (CoorDL)";
constexpr const char* kYang = "Yang and Cong, Accelerating Data Loading in Deep Neural Network Training, HiPC 2019";
constexpr const char* kNopfs =
    "Dryden et al., Clairvoyant Prefetching for Distributed Machine Learning I/O, SC 2021 (NoPFS)";

constexpr auto kPresets = std::to_array<Preset>({
    {"coordl-misses", kCoordl, "What a cache of 65 % of OpenImages misses on one server",
     "hosts=1 learners=1 cores=24 memory=500GB cache=419.25GB samples=20000 sample-bytes=32.25MB batch=8 epochs=5 "
     "storage-rate=530MB/s",
     "20,000 samples of 32 MB stand for 2.2 million of 0.29 MB: the same bytes, and so the same behaviour of the page "
     "cache",
     kCoordlMisses},
    {"coordl-server", kCoordl, "Training on one server whose cache holds 65 % of OpenImages, bound by storage",
     "hosts=1 learners=8 cores=24 memory=500GB cache=419.25GB samples=20000 sample-bytes=32.25MB batch=8 epochs=4 "
     "storage-rate=530MB/s storage-latency=0",
     "the server is bound by storage in both cases; HDD: 50 MB/s for random reads", kCoordlServer},
    {"coordl-two-servers", kCoordl,
     "Two servers with hard disks, 40 Gb/s between them, whose memories hold OpenImages together",
     "hosts=2 learners=8 cores=24 memory=500GB cache=419.25GB samples=40000 sample-bytes=16.125MB batch=8 epochs=3 "
     "storage-rate=30MB/s storage-host-rate=15MB/s storage-on-network=0 storage-latency=0 network-rate=5GB/s "
     "accelerator=3.6",
     "which model reached 15x, its rate on 1080Ti, and the disk's rate for random reads (15 MB/s here): the "
     "accelerator was chosen so that the figure comes out",
     kCoordlTwo},
    {"coordl-search", kCoordl, "8 jobs on the same data on one server: 8 V100, 24 cores; ImageNet-1k in memory",
     "hosts=1 learners=8 jobs=8 cores=24 memory=500GB cache=200GB samples=64000 sample-bytes=2.28MB batch=64 epochs=3 "
     "storage-rate=530MB/s accelerator=2509 prep=284.3 memory-rate=none",
     "which model the 3x are of: AlexNet here, with rates of the CPU-core study on the same kind of server; 64,000 "
     "samples stand for "
     "1.28 million",
     kCoordlSearch},
    {"coordl-search-openimages", kCoordl, "The same with OpenImages, of which 65 % fit",
     "hosts=1 learners=8 jobs=8 cores=24 memory=500GB cache=419.25GB samples=20000 sample-bytes=32.25MB batch=8 "
     "epochs=4 storage-rate=530MB/s storage-latency=0 accelerator=22.85 prep=2.589 memory-rate=none",
     "AlexNet; one sample of 32 MB stands for 110 of 0.29 MB, so rates are divided by as many; how far the 8 jobs "
     "drift apart",
     kCoordlOpenImages},
    {"cpu-cores", "CPU-core study of image models on V100 (samples/s with 3 cores, and with enough)",
     "One V100 with few cores, data in memory",
     "hosts=1 learners=1 cores=3 memory=500GB cache=200GB samples=20000 sample-bytes=110000 batch=128 epochs=2 "
     "prep=284.3 memory-rate=none",
     "prep of 284.3 samples/s per core for all models, from AlexNet's figure: models with larger steps have less of "
     "the cores, which is not modelled",
     kCores},
    {"yang-mummi", kYang, "MuMMI on Lassen: numpy files, loading only, 4 learners per node",
     "hosts=16 learners=4 cores=40 memory=256GB cache=200GB samples=700000 sample-bytes=131000 batch=64 epochs=3 "
     "storage-rate=2.33GB/s storage-latency=0 prep=500 network-rate=25GB/s memory-rate=none",
     "rates of storage (2.33 GB/s for random reads of all nodes) and of loading a sample from memory (500/s and core) "
     "are chosen by the first row; 0.7 of 7 million samples",
     kMummi},
    {"yang-imagenet", kYang, "ImageNet-1k on Lassen, 4 learners per node",
     "hosts=256 learners=4 cores=40 memory=256GB cache=200GB samples=1281167 sample-bytes=114000 batch=32 epochs=3 "
     "storage-rate=2.33GB/s storage-latency=0 prep=69 network-rate=25GB/s memory-rate=none",
     "storage as in yang-mummi; prep per core, and the step of the model in the second row, are chosen by their rows",
     kYangImagenet},
    {"yang-ucf101", kYang, "UCF101 on Lassen, loading only",
     "hosts=4 learners=4 cores=40 memory=256GB cache=200GB samples=250000 sample-bytes=24200 batch=64 epochs=3 "
     "storage-rate=0.55GB/s storage-latency=0 prep=400 network-rate=25GB/s memory-rate=none",
     "which numbers of nodes the least and most gains belong to; rates of storage for files of 5 to 24 KB: chosen by "
     "the rows",
     kUcf101},
    {"nopfs-lassen", kNopfs, "ImageNet-1k, ResNet-50, 256 nodes with 4 V100 on Lassen, over PyTorch",
     "hosts=256 learners=4 cores=40 memory=256GB cache=120GB samples=1281167 sample-bytes=114000 batch=64 epochs=3 "
     "storage-rate=16.3GB/s storage-latency=0 accelerator=755 network-rate=25GB/s memory-rate=none",
     "what GPFS gives 256 nodes in random reads: chosen by the row", kNopfsLassen},
    {"nopfs-daint", kNopfs, "ImageNet-1k, ResNet-50, 256 nodes with one P100 on Piz Daint, over PyTorch",
     "hosts=256 learners=1 cores=12 memory=64GB cache=40GB samples=1281167 sample-bytes=114000 batch=64 epochs=3 "
     "storage-rate=3.3GB/s storage-latency=0 accelerator=250 network-rate=10GB/s memory-rate=none",
     "what Lustre gives 256 nodes in random reads: chosen by the row", kNopfsDaint},
    {"lobster", "Liu et al., Lobster: Load Balance-Aware I/O for Distributed DNN Training, ICPP 2022",
     "8 nodes with 8 A100 on ThetaGPU, ImageNet, over PyTorch",
     "hosts=8 learners=8 cores=128 memory=1TB cache=40GB samples=256000 sample-bytes=570000 batch=32 epochs=3 "
     "storage-rate=4.47GB/s storage-latency=0 accelerator=184 network-rate=25GB/s memory-rate=none jitter=0.02",
     "memory that was left for caching, and what Lustre gives: chosen by the row; samples stand for five each",
     kLobster},
    {"reshuffle", "Nguyen et al., Why Globally Re-shuffle?, IPDPS 2022",
     "Partial instead of global re-shuffle on ABCI, 128 nodes with 4 V100",
     "hosts=128 learners=4 cores=40 memory=384GB cache=4GB samples=1281167 sample-bytes=114000 batch=32 epochs=3 "
     "storage-rate=8.8GB/s storage-latency=0 accelerator=755 network-rate=12.5GB/s memory-rate=none reshuffle=0.1",
     "what the file system gives when all nodes read at random: chosen by the row", kReshuffle},
    {"echo", "Choi et al., Faster Neural Network Training with Data Echoing, 2019",
     "Every sample is used 5 times while storage is 5 times too slow",
     "hosts=1 learners=1 cores=16 memory=64GB cache=0 samples=60000 sample-bytes=110000 batch=64 epochs=2 "
     "storage-rate=20MB/s storage-latency=0 accelerator=909 echo=5 prefetch=12",
     "published are 3.25x in time to a target accuracy: repeated samples teach less than fresh ones, which a "
     "simulation of loading can not know. It gives batches per second, at most 5",
     kEcho},
});

Status apply(ClusterSetup& setup, std::string_view words) {
  while (!words.empty()) {
    const std::size_t blank = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, blank);
    words.remove_prefix(std::min(blank + 1, words.size()));
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return Error{Code::kInvalid, fmt::format("\"{}\" is no name=value", word)};
    FORELOAD_TRY(set_parameter(setup, word.substr(0, equals), word.substr(equals + 1)));
  }
  return {};
}

Result<RunReport> run_one(const Preset& preset, const std::string& changes, const char* system,
                          const RunOptions& options) {
  FORELOAD_ASSIGN(const ClusterSetup setup, preset_setup(preset, changes));
  FORELOAD_ASSIGN(const SystemScene scene, make_scene(setup));
  FORELOAD_ASSIGN(const SystemKind* const kind, find_system(system));
  return simulate(scene, *kind, options);
}

// Positions, so that an order that repeats samples counts all of them.
double rate(const RunReport& report) {
  return report.steady().samples_per_s;
}

double misses(const RunReport& report) {
  return static_cast<double>(report.steady().at(KeptAt::kStorage).samples) /
         static_cast<double>(std::max<std::uint64_t>(report.steady().positions, 1));
}

double figure_of(Measure measure, const RunReport& system, const RunReport* baseline) {
  const auto read = [](const RunReport& report) {
    return static_cast<double>(report.steady().at(KeptAt::kStorage).bytes);
  };
  switch (measure) {
    case Measure::kSpeedUp:
      return rate(system) / rate(*baseline);
    case Measure::kMisses:
      return misses(system);
    case Measure::kReads:
      return read(*baseline) / std::max(1.0, read(system));
    case Measure::kRate:
      return rate(system);
  }
  return 0;
}

}  // namespace

const char* measure_name(Measure measure) {
  switch (measure) {
    case Measure::kSpeedUp:
      return "speed-up";
    case Measure::kMisses:
      return "misses";
    case Measure::kReads:
      return "reads";
    case Measure::kRate:
      return "samples/s";
  }
  return "";
}

const char* basis_name(Basis basis) {
  switch (basis) {
    case Basis::kComplete:
      return "complete";
    case Basis::kAssumed:
      return "assumed";
    case Basis::kFitted:
      return "fitted";
  }
  return "";
}

std::span<const Preset> presets() {
  return kPresets;
}

Result<const Preset*> find_preset(std::string_view name) {
  const auto found = std::ranges::find_if(kPresets, [&](const Preset& preset) { return preset.name == name; });
  if (found != kPresets.end()) return &*found;
  std::vector<std::string_view> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return Error{Code::kNotFound,
               fmt::format("there is no preset \"{}\": {}", name.substr(0, 40), fmt::join(names, ", "))};
}

Result<ClusterSetup> preset_setup(const Preset& preset, std::string_view changes) {
  ClusterSetup setup;
  FORELOAD_TRY(apply(setup, preset.setup));
  FORELOAD_TRY(apply(setup, changes));
  return setup;
}

double ratio_to_published(const PresetRow& row, double simulated) {
  const double most = row.published_to > 0 ? row.published_to : row.published;
  if (simulated >= row.published && simulated <= most) return 1;
  const double nearer = simulated < row.published ? row.published : most;
  if (nearer == 0) return 1 + simulated;
  return simulated / nearer;
}

Result<Reproduced> reproduce(const Preset& preset, const PresetRow& row, const RunOptions& options) {
  FORELOAD_ASSIGN(const RunReport system, run_one(preset, row.changes, row.system, options));
  FORELOAD_ASSIGN(const RunReport ours, run_one(preset, row.changes, "foreload", options));
  std::optional<RunReport> baseline;
  if (row.measure == Measure::kSpeedUp || row.measure == Measure::kReads) {
    const std::string changes =
        fmt::format("{}{}{}", row.changes, *row.changes && *row.baseline_also ? " " : "", row.baseline_also);
    FORELOAD_ASSIGN(baseline, run_one(preset, changes, row.baseline, options));
  }
  const RunReport* const before = baseline ? &*baseline : nullptr;
  Reproduced made{.simulated = figure_of(row.measure, system, before),
                  .foreload = figure_of(row.measure, ours, before)};
  made.seconds = system.steady().seconds;
  made.foreload_seconds = ours.steady().seconds;
  made.ahead = rate(ours) >= rate(system) * 0.995;
  return made;
}

}  // namespace foreload
