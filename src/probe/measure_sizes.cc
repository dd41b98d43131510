#include "probe/measure_sizes.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "foreload/schedule.h"
#include "loader/setup.h"
#include "policy/pacing.h"
#include "prep/chain.h"
#include "prep/row_hint.h"
#include "probe/windows.h"

namespace foreload {
namespace {

constexpr std::uint64_t kWindows = 9;
constexpr std::uint64_t kSamplesOfWindow = 64;
constexpr int kOctaves = 6;  // to both sides of a rate

// What the fetcher would read, if the part is worth a request more.
Bytes bytes_of_miss(const Source& source, SampleId id, CropForesight& foresight, const PrepKey& key,
                    const Pacer& pacer) {
  const Bytes length = source.length(id);
  const auto offsets = source.rows(id);
  const auto size = source.dimensions(id);
  if (offsets.empty() || !size) return length;
  const auto box = foresight.box(*size, key);
  if (!box) return length;
  const auto rows = rows_around(offsets, *size, {box->y, std::int64_t{box->y} + box->height});
  if (!rows || !rows->is_partial() || offsets.back() + Bytes{2} > length) return length;
  const Bytes part = offsets[0] + std::min(Bytes{offsets[rows->end]} + 2, length) - offsets[rows->first];
  return pacer.part_pays(Origin::kSource, length, part) ? part : length;
}

// One that has seen storage of this rate: it decides as that of a loader would.
Pacer experienced_pacer(double bytes_per_s) {
  constexpr Bytes kRead = 64_KiB;
  constexpr unsigned kReads = 512;
  constexpr Duration kLong = std::chrono::milliseconds(400);
  Pacer pacer({});
  const auto took = Duration(static_cast<std::int64_t>(1e9 * static_cast<double>(kRead) / bytes_per_s) + 1);
  Time time{1};
  for (unsigned reads = 0; reads < kReads || time < kLong; ++reads) {
    time += took;
    (void)pacer.on_read_done(time, {.bytes = kRead, .took = took});
  }
  return pacer;
}

}  // namespace

SizeShape measure_sizes(const Source& source, std::uint64_t seed) {
  const Schedule order({.samples = source.size(), .seed = seed});
  std::vector<Bytes> lengths(std::min(source.size(), kMostLengths));
  for (Position i = 0; i < lengths.size(); ++i) lengths[i] = source.length(order.sample_at(0, i));
  if (lengths.empty()) return {};
  std::sort(lengths.begin(), lengths.end());
  const auto at = [&](double share) {
    return lengths[static_cast<std::size_t>(share * static_cast<double>(lengths.size() - 1))];
  };
  return {.smallest = lengths.front(),
          .p10 = at(0.1),
          .median = at(0.5),
          .p90 = at(0.9),
          .p99 = at(0.99),
          .largest = source.max_length()};
}

Result<Figure> measure_read_share(const Source& source, const LoaderOptions& options, double bytes_per_s) {
  FORELOAD_ASSIGN(const ChainOptions chosen, choose_chain(options, source));
  FORELOAD_ASSIGN(const Chain chain, Chain::compile(chosen));
  const Schedule order({.samples = source.size(), .seed = options.seed});
  const Pacer pacer = experienced_pacer(bytes_per_s);
  CropForesight foresight(chain);
  const bool reads_parts = options.on_error == OnError::kFail && options.weights.empty() && options.echo == 1;
  std::vector<double> windows;
  for (std::uint64_t window = 0; window < kWindows; ++window) {
    Bytes whole = 0;
    Bytes read = 0;
    for (std::uint64_t i = 0; i < kSamplesOfWindow; ++i) {
      const std::uint64_t at = window * kSamplesOfWindow + i;
      const SampleId id = order.sample_at(at / order.size(), at % order.size());
      const PrepKey key{.seed = options.seed, .epoch = at / order.size(), .position = at % order.size()};
      whole += source.length(id);
      read += reads_parts ? bytes_of_miss(source, id, foresight, key, pacer) : source.length(id);
    }
    windows.push_back(whole > 0 ? static_cast<double>(read) / static_cast<double>(whole) : 1);
  }
  return figure_of(std::move(windows));
}

Result<std::vector<ReadAt>> measure_read_shares(const Source& source, const LoaderOptions& options,
                                                double bytes_per_s) {
  std::vector<ReadAt> shares;
  for (int octave = -kOctaves; octave <= kOctaves; ++octave) {
    const double rate = std::ldexp(bytes_per_s, octave);
    FORELOAD_ASSIGN(const Figure share, measure_read_share(source, options, rate));
    shares.push_back({rate, share});
  }
  return shares;
}

}  // namespace foreload
