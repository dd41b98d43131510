// bench/eviction: what each policy finds in memory, by driving the policy objects.   eviction [--json]
// No I/O: the figures are counts and do not depend on the machine.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "probe/eviction_rates.h"
#include "report.h"

namespace foreload {
namespace {

constexpr double kShares[] = {0.125, 0.25, 0.5};

void print_head(const char* title) {
  fmt::print("{}\n{:>6} {:>7} {:>7} {:>9} {:>10} {:>9} {:>9} {:>17}\n", title, "hosts", "cache", "epochs", "static",
             "frequency", "belady", "lru", "belady/frequency");
}

void print_line(const EvictionCase& subject, const EvictionRates& rates) {
  const auto hits = [&](double rate) { return rate * static_cast<double>(rates.uses); };
  fmt::print("{:>6} {:>6.1f}% {:>7} {:>9.0f} {:>10.0f} {:>9.0f} {:>9.0f} {:>17.2f}\n", subject.hosts,
             100 * subject.cached, subject.epochs, hits(rates.fixed), hits(rates.frequency), hits(rates.belady),
             hits(rates.lru), rates.belady / rates.frequency);
}

// Hosts that share no caches, every sample once per epoch: which samples a host gets changes from epoch to epoch.
void private_caches(bool table, BenchReport& report) {
  if (table) print_head("hits per epoch and host, private caches, every sample once per epoch (20,000 samples)");
  for (const std::uint32_t hosts : {2u, 4u, 8u}) {
    for (const double cached : kShares) {
      for (const Epoch epochs : {20u, 90u}) {
        const EvictionCase subject{.hosts = hosts, .cached = cached, .epochs = epochs};
        const EvictionRates rates = eviction_rates(subject);
        if (table) print_line(subject, rates);
        report.add(fmt::format("eviction/{}_hosts_{:g}%_{}_epochs", hosts, 100 * cached, epochs),
                   rates.belady / rates.frequency, "ratio", 1.1, true,
                   fmt::format("local hits of belady against frequency; of all uses: belady {:.3f}, frequency {:.3f}, "
                               "static {:.3f}, lru {:.3f}",
                               rates.belady, rates.frequency, rates.fixed, rates.lru));
      }
    }
  }
}

// One host: no policy can have more hits than its capacity, and never evicting has them.
void one_host(bool table, BenchReport& report) {
  if (table) print_head("one host, every sample once per epoch, without the first epoch");
  double worst_static = 0;
  double worst_lru = 0;
  for (const double cached : kShares) {
    const EvictionCase subject{.samples = 50'000, .cached = cached, .epochs = 8};
    const EvictionRates rates = eviction_rates(subject, true);
    if (table) print_line(subject, rates);
    const double lru = cached + (1 - cached) * std::log(1 - cached);
    worst_static = std::max({worst_static, std::abs(rates.fixed - cached), std::abs(rates.belady - cached)});
    worst_lru = std::max(worst_lru, std::abs(rates.lru - lru));
  }
  report.add("eviction/one_host_static_off_optimum", worst_static, "share", 0.01, false,
             "hit rate of static, and of belady, against the share c that is cached");
  report.add("eviction/one_host_lru_off_formula", worst_lru, "share", 0.01, false,
             "hit rate of lru against c + (1-c)·ln(1-c)");
}

void weighted_draws(bool table, BenchReport& report) {
  if (table) print_head("hits per epoch, weighted draws with replacement (weight of the i-th sample 1/i), one host");
  for (const double cached : {0.1, 0.25, 0.5}) {
    const EvictionCase subject{.cached = cached, .epochs = 20, .zipf = 1};
    const EvictionRates rates = eviction_rates(subject);
    if (table) print_line(subject, rates);
    const double best = std::max({rates.fixed, rates.frequency, rates.lru});
    report.add(fmt::format("eviction/weighted_{:g}%", 100 * cached), (1 - rates.belady) / (1 - best), "ratio", 1, false,
               fmt::format("misses of belady against the best of the others; hit rates: belady {:.3f}, frequency "
                           "{:.3f}, lru {:.3f}, static {:.3f}",
                           rates.belady, rates.frequency, rates.lru, rates.fixed));
  }
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    fmt::print(stderr, "eviction [--json]\n");
    return 2;
  }
  foreload::BenchReport report;
  foreload::private_caches(!json, report);
  foreload::one_host(!json, report);
  foreload::weighted_draws(!json, report);
  return report.print(json);
}
