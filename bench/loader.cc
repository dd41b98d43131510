// bench/loader: the loader against the limits of this machine.   loader [--json] [--photos DIR] [--rounds N]
// Works in build folders of its own; the dataset is generated once.
#include "foreload/loader.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "probe/child.h"
#include "probe/generated_dataset.h"
#include "probe/loader_rates.h"
#include "report.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kImages = 1000;
constexpr std::uint64_t kImageNetSamples = 1'281'167;
constexpr std::uint64_t kTinySample = 256;
constexpr Bytes kSlackMemory = 64'000'000;  // beside budget and index

struct Settings {
  std::string program;  // this one, to be started again
  std::string work;     // folder for generated data
  std::string photos;   // dataset; generated when empty
  unsigned rounds = 7;
  bool json = false;
};

LoaderOptions image_options(const std::string& folder, const std::string& work) {
  LoaderOptions options;
  options.dataset = {folder};
  options.batch = 64;
  options.seed = 1;
  options.memory = 2_GiB;
  options.chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)};
  options.source.index_folder = work + "/index";
  return options;
}

Result<std::string> image_folder(const Settings& settings) {
  if (!settings.photos.empty()) return settings.photos;
  const std::string folder = settings.work + "/images";
  FORELOAD_TRY(generate_dataset({.folder = folder, .images = kImages, .seed = 1}));
  return folder;
}

// next() over cached samples against the bare chain on the same threads, interleaved.
Status end_to_end(const Settings& settings, const std::string& folder, BenchReport& report) {
  const LoaderOptions options = image_options(folder, settings.work);
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  const unsigned threads = loader.stats().threads;
  FORELOAD_ASSIGN(const LoadedSamples samples, load_samples(loader.source(), 1_GiB));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile({.transforms = options.chain}));
  while (loader.position().epoch == 0) FORELOAD_TRY(loader.next());
  std::vector<double> ratios, rates;
  for (unsigned round = 0; round < settings.rounds; ++round) {
    wait_until_idle();
    FORELOAD_ASSIGN(const double before, chain_rate(samples, chain, threads, 750ms));
    FORELOAD_ASSIGN(const double ours, loader_rate(loader, 1500ms));
    wait_until_idle();
    FORELOAD_ASSIGN(const double after, chain_rate(samples, chain, threads, 750ms));
    rates.push_back(ours);
    ratios.push_back(ours / ((before + after) / 2));
  }
  const std::string how = fmt::format(
      "median of {} interleaved rounds, {} threads, batch 64, RandomResizedCrop(224) + flip + "
      "normalise to f32, {:.0f} samples/s",
      settings.rounds, threads, median(rates));
  report.add("loader/end_to_end_against_chain", median(ratios), "ratio", 0.93, true, how);
  return {};
}

// Busy share of an emulated accelerator that is slower than the pipeline, after the first 20 batches.
Status utilisation(const Settings& settings, const std::string& folder, BenchReport& report) {
  LoaderOptions options = image_options(folder, settings.work);
  options.batch = 16;
  std::vector<double> shares;
  for (unsigned round = 0; round < 5; ++round) {
    FORELOAD_ASSIGN(Loader loader, Loader::open(options));
    FORELOAD_ASSIGN(const double rate, loader_rate(loader, 1s));
    const Duration step(static_cast<std::int64_t>(1e9 * 16 / (0.6 * rate)));
    Duration busy{};
    Time start{};
    for (int batch = 0; batch < 80;) {
      FORELOAD_ASSIGN(const auto got, loader.next());
      if (!got) continue;
      if (batch == 20) {
        start = now();
        busy = Duration{};
      }
      std::this_thread::sleep_for(step);
      busy += step;
      ++batch;
    }
    shares.push_back(seconds(busy) / seconds(now() - start));
  }
  report.add("loader/utilisation", median(shares), "share", 0.97, true,
             "accelerator at 0.6 of the pipeline's rate, batches 20-80, median of 5");
  return {};
}

void put_octal(char* field, std::size_t size, std::uint64_t value) {
  fmt::format_to_n(field, size - 1, "{:0{}o}", value, size - 1);
}

void write_member(std::string& tar, std::uint64_t number) {
  char block[1024] = {};
  fmt::format_to_n(block, 99, "n{:08}/{:08}.bin", number / 1300, number);
  std::memcpy(block + 100, "0000644", 7);
  put_octal(block + 124, 12, kTinySample);
  block[156] = '0';
  std::memcpy(block + 257, "ustar\00000", 8);
  std::memset(block + 148, ' ', 8);
  unsigned sum = 0;
  for (int i = 0; i < 512; ++i) sum += static_cast<unsigned char>(block[i]);
  put_octal(block + 148, 7, sum);
  std::memcpy(block + 512, &number, sizeof number);
  tar.append(block, 512 + (kTinySample + 511) / 512 * 512);
}

// As many samples as ImageNet has, in ten tar shards; made once.
Status make_large(const std::string& folder) {
  const std::string marker = folder + "/complete";
  if (std::filesystem::exists(marker)) return {};
  std::filesystem::create_directories(folder);
  std::uint64_t number = 0;
  for (int shard = 0; shard < 10; ++shard) {
    std::ofstream file(fmt::format("{}/s-{:03}.tar", folder, shard), std::ios::binary);
    std::string tar;
    for (; number < kImageNetSamples * (shard + 1) / 10; ++number) {
      write_member(tar, number);
      if (tar.size() < (8 << 20)) continue;
      file << tar;
      tar.clear();
    }
    file << tar << std::string(1024, '\0');
    if (!file) return Error{Code::kIo, fmt::format("cannot write {}", folder)};
  }
  std::ofstream(marker) << "1\n";
  return {};
}

LoaderOptions large_options(const std::string& work) {
  LoaderOptions options;
  options.dataset = {work + "/large/s-{000..009}.tar"};
  options.batch = 64;
  options.memory = 256_MiB;
  options.chain = {array(DType::kU8, {kTinySample}, true)};
  return options;
}

// Source bytes of later epochs against dataset − cache, with a cache for about half of the data. Many small samples,
// because what is in transit at an epoch's end may serve the next one's beginning, and that must not hide an error.
Status source_bytes(const Settings& settings, BenchReport& report) {
  FORELOAD_TRY(make_large(settings.work + "/large"));
  LoaderOptions options = large_options(settings.work);
  options.dataset = {settings.work + "/large/s-000.tar"};
  options.epochs = 4;
  options.memory = 28_MiB;
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  while (loader.position().epoch < options.epochs) FORELOAD_TRY(loader.next());
  const LoaderStats stats = loader.stats();
  const auto total = static_cast<double>(loader.source().total_bytes());
  const double cached = static_cast<double>(stats.cached_bytes) * kTinySample / (kTinySample + 16);  // without headers
  double worst = 0;
  for (std::size_t e = 1; e < stats.epochs.size(); ++e) {
    worst = std::max(worst, std::abs(static_cast<double>(stats.epochs[e].source_bytes) / (total - cached) - 1));
  }
  report.add(
      "loader/source_bytes_off_plan", worst, "share", 0.01, false,
      fmt::format(
          "epochs 1-3 of 128,116 samples, cache holds {:.0f} % of the data; how far read / (dataset - cache) is from 1",
          100 * cached / total));
  return {};
}

// Starts this program again with `mode`; returns the line that it prints.
Result<std::string> run_again(const Settings& settings, const char* mode) {
  return output_of({settings.program, mode, settings.work, settings.photos});
}

// The started program's part: opens 1.28 M samples and takes a batch.
Status first_batch_child(const std::string& work) {
  FORELOAD_ASSIGN(Loader loader, Loader::open(large_options(work)));
  FORELOAD_TRY(loader.next());
  fmt::print("{}\n", now().count());
  return {};
}

// The started program's part: two epochs of images in a small budget.
Status memory_child(const std::string& work, const std::string& photos) {
  LoaderOptions options = image_options(photos.empty() ? work + "/images" : photos, work);
  options.memory = 256_MiB;
  options.batch = 32;
  FORELOAD_ASSIGN(Loader loader, Loader::open(options));
  while (loader.position().epoch < 2) FORELOAD_TRY(loader.next());
  fmt::print("{}\n", peak_resident_bytes());
  return {};
}

Status first_batch(const Settings& settings, BenchReport& report) {
  FORELOAD_TRY(make_large(settings.work + "/large"));
  FORELOAD_TRY(run_again(settings, "--first-batch"));  // builds the index
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    const Time start = now();
    FORELOAD_ASSIGN(const std::string line, run_again(settings, "--first-batch"));
    times.push_back(seconds(Time(std::stoll(line)) - start));
  }
  report.add("loader/first_batch_of_1.28M_samples", median(times), "s", 2.0, false,
             "from process start, index warm, ten tar shards, median of 5");
  return {};
}

Status memory(const Settings& settings, BenchReport& report) {
  FORELOAD_ASSIGN(const std::string line, run_again(settings, "--memory"));
  report.add("loader/peak_rss_beyond_budget", (std::stod(line) - 256.0 * (1 << 20)) / 1e6, "MB", kSlackMemory / 1e6,
             false, "two epochs of images in a process of its own, budget 256 MiB, batch 32, f32");
  return {};
}

Status run(const Settings& settings, BenchReport& report) {
  std::filesystem::create_directories(settings.work + "/index");
  FORELOAD_ASSIGN(const std::string folder, image_folder(settings));
  FORELOAD_TRY(end_to_end(settings, folder, report));
  FORELOAD_TRY(source_bytes(settings, report));
  FORELOAD_TRY(utilisation(settings, folder, report));
  FORELOAD_TRY(first_batch(settings, report));
  return memory(settings, report);
}

int main_with(int argc, char** argv) {
  Settings settings{.program = "/proc/self/exe", .work = "build/bench-data"};
  const std::string mode = argc > 1 ? argv[1] : "";
  Status status;
  BenchReport report;
  if (mode == "--first-batch" && argc > 2) {
    status = first_batch_child(argv[2]);
  } else if (mode == "--memory" && argc > 3) {
    status = memory_child(argv[2], argv[3]);
  } else {
    for (int i = 1; i < argc; ++i) {
      const std::string flag = argv[i];
      if (flag == "--json") settings.json = true;
      if (flag == "--photos" && i + 1 < argc) settings.photos = argv[++i];
      if (flag == "--rounds" && i + 1 < argc) settings.rounds = static_cast<unsigned>(std::stoul(argv[++i]));
    }
    settings.program = std::filesystem::read_symlink("/proc/self/exe").string();
    status = run(settings, report);
    if (status.ok()) return report.print(settings.json);
  }
  if (status.ok()) return 0;
  fmt::print(stderr, "bench/loader: {}\n", status.error().message);
  return 2;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with(argc, argv);
}
