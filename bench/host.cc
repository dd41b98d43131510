// bench/host: processes that share a host against processes that do not.   host [--json] [--rounds N]
// Works in a build folder of its own; the dataset is generated once.
#include <unistd.h>

#include <filesystem>

#include "base/clock.h"
#include "foreload/loader.h"
#include "pipeline/ring.h"
#include "probe/generated_dataset.h"
#include "probe/loader_rates.h"
#include "report.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

struct Settings {
  std::string work;  // folder for generated data
  unsigned rounds = 7;
  bool json = false;
};

LoaderOptions image_options(const Settings& settings) {
  LoaderOptions options;
  options.dataset = {settings.work + "/images"};
  options.batch = 64;
  options.seed = 1;
  options.memory = 2_GiB;
  options.rewrite = Rewrite::kOff;  // a host does not rewrite
  options.chain = {random_resized_crop(224), random_flip(), normalize(kImageNet)};
  options.source.index_folder = settings.work + "/index";
  return options;
}

// A loader alone in a host against one without.
Status one_process(const Settings& settings, BenchReport& report) {
  std::vector<double> ratios;
  LoaderOptions with = image_options(settings);
  with.host = fmt::format("bench-{}", ::getpid());
  FORELOAD_ASSIGN(Loader alone, Loader::open(image_options(settings)));
  FORELOAD_ASSIGN(Loader in_host, Loader::open(with));
  for (Loader* loader : {&alone, &in_host}) {
    while (loader->position().epoch == 0) FORELOAD_TRY(loader->next());
  }
  for (unsigned round = 0; round < settings.rounds; ++round) {
    wait_until_idle();
    FORELOAD_ASSIGN(const double before, loader_rate(alone, 1s));
    wait_until_idle();
    FORELOAD_ASSIGN(const double ours, loader_rate(in_host, 2s));
    wait_until_idle();
    FORELOAD_ASSIGN(const double after, loader_rate(alone, 1s));
    ratios.push_back(ours / ((before + after) / 2));
  }
  report.add("host/one_process_against_private", median(ratios), "ratio", 0.97, true,
             fmt::format("next() over cached samples, median of {} interleaved rounds, batch 64, "
                         "RandomResizedCrop(224) + flip + normalise to f32",
                         settings.rounds));
  return {};
}

// What one sample costs beside its preparation: ready, claimed, done, its batch published, taken and released.
Status slot_cost(const Settings& settings, BenchReport& report) {
  constexpr std::uint64_t kTurns = 200'000;
  FORELOAD_ASSIGN(auto ring, Ring::create({.slots = 2, .batch = 1, .sample_bytes = 64}));
  ring->begin(0);
  std::vector<double> costs;
  for (unsigned round = 0; round < settings.rounds; ++round) {
    const Time start = now();
    for (std::uint64_t n = round * kTurns; n < (round + 1) * kTurns; ++n) {
      const auto slot = ring->free_slot();
      ring->open(*slot, {.number = n, .step = n, .first = n, .count = 1});
      ring->mark_ready({*slot, 0}, {.id = n}, {}, start);
      const auto item = ring->claim();
      if (ring->finish(*item, {})) ring->publish(item->slot);
      ring->release(Ring::kOwnReader, *ring->take(Ring::kOwnReader, n));
    }
    costs.push_back(1e6 * seconds(now() - start) / kTurns);
  }
  report.add("host/slot_cost", median(costs), "us", 2, false,
             "open, ready, claim, finish, publish, take and release of a slot with one sample, one thread");
  return {};
}

Status run(const Settings& settings, BenchReport& report) {
  FORELOAD_TRY(generate_dataset({.folder = settings.work + "/images", .images = 1000, .seed = 1}));
  FORELOAD_TRY(slot_cost(settings, report));
  return one_process(settings, report);
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  foreload::Settings settings;
  settings.work = (std::filesystem::path(argv[0]).parent_path() / "host-work").string();
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      settings.json = true;
    } else if (word == "--rounds" && i + 1 < argc) {
      settings.rounds = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    } else {
      fmt::print(stderr, "usage: host [--json] [--rounds N]\n");
      return 2;
    }
  }
  foreload::BenchReport report;
  const foreload::Status done = foreload::run(settings, report);
  if (!done.ok()) {
    fmt::print(stderr, "host: {}\n", done.error().message);
    return 1;
  }
  return report.print(settings.json);
}
