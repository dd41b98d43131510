// Looking into samples: whether they can be decoded, wholly but to a small picture, and which are copies of each other.
// Only samples of equal length can be copies, and the index has all lengths, so that few have to be read.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/thread.h"
#include "prep/chain.h"
#include "probe/doctor_dataset.h"
#include "source/extent_reader.h"
#include "source/warnings.h"
#include "store/http_client.h"

namespace foreload {

namespace {

constexpr std::uint64_t kExtremes = 50;  // the smallest and the largest, always
constexpr Bytes kLongest = 64_MiB;       // longer ones are not read
constexpr Bytes kMostScratch = 512_MiB;  // pictures that need more are not decoded
constexpr unsigned kSide = 64;
constexpr std::uint64_t kMostRemote = 200;

std::uint64_t rank_of(std::uint64_t value, std::uint64_t seed) {
  return mix64(value + mix64(seed));
}

// The extremes, then others by the seed.
std::vector<SampleId> choose(const Source& source, std::uint64_t most, std::uint64_t seed) {
  std::vector<SampleId> all(source.size());
  for (SampleId id = 0; id < all.size(); ++id) all[id] = id;
  if (all.size() <= most) return all;
  const auto by_length = [&](SampleId x, SampleId y) {
    return std::pair(source.length(x), x) < std::pair(source.length(y), y);
  };
  const std::uint64_t extremes = std::min(kExtremes, most / 4);
  const auto end = static_cast<std::ptrdiff_t>(extremes);
  std::partial_sort(all.begin(), all.begin() + end, all.end(), by_length);
  std::partial_sort(all.begin() + end, all.begin() + 2 * end, all.end(),
                    [&](SampleId x, SampleId y) { return by_length(y, x); });
  std::partial_sort(all.begin() + 2 * end, all.begin() + static_cast<std::ptrdiff_t>(most), all.end(),
                    [&](SampleId x, SampleId y) { return rank_of(x, seed) < rank_of(y, seed); });
  all.resize(most);
  return all;
}

// Samples that share their length with another one: whole groups, chosen by the seed, as far as they go.
std::vector<SampleId> choose_alike(const Source& source, const SampleCheckOptions& options, std::uint64_t most) {
  std::vector<std::pair<std::uint64_t, SampleId>>
      by_length;  // a hash of the length instead: groups in the seed's order
  for (SampleId id = 0; id < source.size(); ++id) {
    const Bytes length = source.length(id);
    if (length > 0 && length <= kLongest) by_length.emplace_back(rank_of(length, options.seed), id);
  }
  std::sort(by_length.begin(), by_length.end());
  std::vector<SampleId> chosen;
  Bytes bytes = 0;
  for (std::size_t i = 0; i < by_length.size() && chosen.size() < most; ++i) {
    const bool as_before = i > 0 && by_length[i - 1].first == by_length[i].first;
    const bool as_next = i + 1 < by_length.size() && by_length[i + 1].first == by_length[i].first;
    if (!as_before && !as_next) continue;
    const SampleId id = by_length[i].second;
    if (bytes + source.length(id) > options.most_bytes) break;
    bytes += source.length(id);
    chosen.push_back(id);
  }
  return chosen;
}

class Checker {
 public:
  Checker(const Source& source, const SampleCheckOptions& options) : source_(source), options_(options) {}

  Result<SampleChecks> run() {
    if (source_.size() == 0) return SampleChecks{};
    const bool is_remote = source_.locate(0).store != nullptr;
    const std::uint64_t most = is_remote ? std::min(options_.most, kMostRemote) : options_.most;
    const std::vector<SampleId> chosen = choose(source_, most, options_.seed);
    chain_ = chain_for(chosen);
    checks_.knows_format = chain_.has_value();
    if (chain_) each(chosen, [this](SampleId id) { decode(id); });
    each(choose_alike(source_, options_, most), [this](SampleId id) { compare(id); });
    if (stopped()) return Error{Code::kCancelled, "stopped by a signal"};
    for (const auto& [content, ids] : contents_) count_copies(ids);
    return std::move(checks_);
  }

 private:
  bool stopped() const { return options_.stop && options_.stop(); }

  template <typename Work>
  void each(const std::vector<SampleId>& ids, const Work& work) {
    const Time deadline = now() + options_.most_time;
    bytes_ = 0;
    parallel_for(options_.threads, ids.size(), [&](std::uint64_t i) {
      if (stopped() || now() > deadline || bytes_ > options_.most_bytes) return;
      work(ids[i]);
      if (options_.progress) options_.progress(++done_);
    });
  }

  // Nothing: it can not be read, which is noted, or is too long for here.
  std::optional<std::vector<std::byte>> bytes_of(SampleId id) {
    const Extent extent = source_.locate(id);
    if (extent.length == 0 || extent.length > kLongest) return std::nullopt;
    std::vector<std::byte> bytes(extent.length);
    bytes_ += bytes.size();
    const auto found = ExtentReader(client_).read(extent, bytes);
    if (found && *found == extent.stamp) return bytes;
    note(checks_.unreadable, id, found ? "has changed since it was indexed" : found.error().message);
    return std::nullopt;
  }

  // Pictures are decoded to a small size, with all of their data; arrays as they are.
  std::optional<Chain> chain_for(const std::vector<SampleId>& chosen) {
    for (std::size_t i = 0; i < std::min<std::size_t>(chosen.size(), 100); ++i) {
      const Extent extent = source_.locate(chosen[chosen.size() - 1 - i]);
      std::vector<std::byte> bytes(std::min<Bytes>(extent.length, 64_KiB));
      if (bytes.empty() || !ExtentReader(client_).read(extent, bytes)) continue;
      std::vector<Transform> transforms = default_chain(bytes);
      if (transforms.empty()) continue;
      if (transforms[0].name != "array") transforms = {resize(kSide, kSide)};
      auto chain = Chain::compile({.transforms = transforms, .dtype = DType::kU8, .decode = Decode::kFast});
      if (chain) return std::move(*chain);
    }
    return std::nullopt;
  }

  void decode(SampleId id) {
    const auto bytes = bytes_of(id);
    if (!bytes) return;
    ChainRunner runner(*chain_);
    const auto needed = runner.begin(*bytes, {});
    if (needed && *needed > kMostScratch) return;
    std::vector<std::byte> out(chain_->output().bytes());
    const Status status = needed ? runner.finish(out) : Status(needed.error());
    if (!status.ok()) {
      note(checks_.broken, id, status.error().message);
    } else if (runner.damaged()) {
      note(checks_.damaged, id, "its decoder complains");
    }
    const MutexLock lock(mutex_);
    ++checks_.looked;
  }

  void compare(SampleId id) {
    const auto bytes = bytes_of(id);
    if (!bytes) return;
    const std::uint64_t content = hash_bytes(*bytes);
    const MutexLock lock(mutex_);
    ++checks_.compared;
    contents_[{bytes->size(), content}].push_back(id);
  }

  void count_copies(std::vector<SampleId> ids) {
    std::sort(ids.begin(), ids.end());
    for (std::size_t i = 1; i < ids.size(); ++i) {
      note(checks_.copies, ids[i], fmt::format("the same bytes as {}", printable(source_.key(ids[0]))));
      if (source_.label(ids[i]) != source_.label(ids[0])) ++checks_.contradictions;
    }
  }

  // The lowest id is the example, whichever thread comes first.
  void note(Cases& cases, SampleId id, const std::string& why) {
    const MutexLock lock(mutex_);
    if (&cases == &checks_.unreadable && !unreadable_.insert(id).second) return;  // both looks found it
    const auto [found, is_first] = examples_.emplace(&cases, id);
    ++cases.count;
    if (!is_first && found->second < id) return;
    found->second = id;
    cases.example = fmt::format("{}: {}", printable(source_.key(id)), printable(why));
  }

  const Source& source_;
  const SampleCheckOptions& options_;
  HttpClient client_;
  std::optional<Chain> chain_;
  std::atomic<Bytes> bytes_{0};
  std::atomic<std::uint64_t> done_{0};
  Mutex mutex_;
  SampleChecks checks_;  // written under mutex_ while threads are about
  std::map<const Cases*, SampleId> examples_ FORELOAD_GUARDED_BY(mutex_);
  std::unordered_set<SampleId> unreadable_ FORELOAD_GUARDED_BY(mutex_);
  std::map<std::pair<Bytes, std::uint64_t>, std::vector<SampleId>> contents_;  // as checks_
};

}  // namespace

Result<SampleChecks> check_samples(const Source& source, const SampleCheckOptions& options) {
  return Checker(source, options).run();
}

}  // namespace foreload
