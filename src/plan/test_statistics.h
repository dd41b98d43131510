// For the tests of this folder: how probable a result is if every outcome is equally likely, whether
// the long versions of the tests were asked for (FORELOAD_SOAK=1), and the seed of random tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foreload {

inline bool soak() {
  const char* value = std::getenv("FORELOAD_SOAK");
  return value != nullptr && std::string_view(value) == "1";
}

// The seed of a test that differs from run to run: printed, and given back with FORELOAD_SEED.
inline std::uint64_t fresh_seed() {
  const char* given = std::getenv("FORELOAD_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "FORELOAD_SEED=" << seed << '\n';
  return seed;
}

// P(χ² ≥ statistic): the regularised incomplete gamma function Q(freedom/2, statistic/2), by its series below
// the mean and its continued fraction (Lentz) above.
inline double chi_square_tail(double statistic, double freedom) {
  const double a = freedom / 2;
  const double x = statistic / 2;
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-15; ++n) sum += term *= x / n;
    return 1 - scale * sum;
  }
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double h = d;
  for (int n = 1; n < 100'000; ++n) {
    b += 2;
    d = 1 / (b - n * (n - a) * d);
    c = b - n * (n - a) / c;
    h *= c * d;
    if (std::fabs(c * d - 1) < 1e-14) break;
  }
  return scale * h;
}

// Σ (seen - expected)² / expected.
inline double deviation(std::span<const std::uint64_t> seen, std::span<const double> expected) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double difference = static_cast<double>(seen[i]) - expected[i];
    sum += difference * difference / expected[i];
  }
  return sum;
}

// Counts outcomes 0 … n-1 in at most `most_buckets` buckets.
class Tally {
 public:
  explicit Tally(std::uint64_t outcomes, std::uint64_t most_buckets = 4096)
      : outcomes_(outcomes), counts_(std::min(outcomes, most_buckets)) {}

  void add(std::uint64_t outcome) { ++counts_[outcome * counts_.size() / outcomes_]; }

  // The probability of counts at least this unequal if every outcome is equally likely. `drawn`: the share of
  // all outcomes that was drawn without putting any back, which makes counts more equal.
  double chance(double drawn = 0) const {
    double total = 0;
    for (const std::uint64_t count : counts_) total += static_cast<double>(count);
    std::vector<double> expected(counts_.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = total * static_cast<double>(begin(i + 1) - begin(i)) / static_cast<double>(outcomes_);
    }
    return chi_square_tail(deviation(counts_, expected) / (1 - drawn), static_cast<double>(counts_.size() - 1));
  }

 private:
  std::uint64_t begin(std::uint64_t bucket) const { return (bucket * outcomes_ + counts_.size() - 1) / counts_.size(); }

  std::uint64_t outcomes_;
  std::vector<std::uint64_t> counts_;
};

// The probability of a table at least this uneven if b has nothing to do with a. Both hold numbers 0 … n-1;
// each in 16 buckets, whose totals are taken as given.
inline double chance_unrelated(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b, std::uint64_t n) {
  constexpr std::uint64_t kBuckets = 16;
  std::vector<std::uint64_t> table(kBuckets * kBuckets);
  std::vector<double> rows(kBuckets);
  std::vector<double> columns(kBuckets);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::uint64_t row = a[i] * kBuckets / n;
    const std::uint64_t column = b[i] * kBuckets / n;
    ++table[row * kBuckets + column];
    ++rows[row];
    ++columns[column];
  }
  std::vector<double> expected(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    expected[i] = rows[i / kBuckets] * columns[i % kBuckets] / static_cast<double>(a.size());
  }
  return chi_square_tail(deviation(table, expected), (kBuckets - 1) * (kBuckets - 1));
}

// The seeds of the statistical tests are fixed, so a rare result is a defect and not bad luck. Near 1 is as
// wrong as near 0: counts more equal than chance would make them.
inline void expect_plausible(double p, const std::string& what) {
  EXPECT_GT(p, 1e-4) << what;
  EXPECT_LT(p, 1 - 1e-4) << what;
  if (soak()) std::cout << "p = " << p << "  " << what << '\n';
}

}  // namespace foreload
