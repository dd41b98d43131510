// ConvertPlan: which samples go to which shard, in which order, under which names. A pure function of the source's
// index and the options, made before anything is written.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "foreload/result.h"
#include "foreload/schedule.h"
#include "foreload/source.h"
#include "record/convert.h"

namespace foreload {

class ConvertPlan {
 public:
  // kInvalid: options that can not work, or more shards than names. `source` must outlive the plan.
  static Result<ConvertPlan> make(const Source& source, const ConvertOptions& options);

  const Source& source() const { return *source_; }
  std::uint64_t samples() const { return source_->size(); }
  std::uint64_t shards() const { return starts_.size() - 1; }
  // Places of the shard's samples in the order of the destination: first … end-1.
  std::uint64_t first(std::uint64_t shard) const { return starts_[shard]; }
  std::uint64_t end(std::uint64_t shard) const { return starts_[shard + 1]; }
  // The sample of the source that stands at `place`.
  SampleId sample_at(std::uint64_t place) const { return schedule_.sample_at(0, place); }
  // One line of JSON: everything that the bytes of the destination depend on. Two conversions with the same text can
  // continue each other.
  const std::string& text() const { return text_; }

 private:
  ConvertPlan(const Source& source, const ConvertOptions& options);

  const Source* source_;
  Schedule schedule_;
  std::vector<std::uint64_t> starts_{0};
  std::string text_;
};

// Names of the members of one shard. WebDataset takes neighbours whose paths agree up to the first dot of the basename
// for one sample, and whoever unpacks a tar keeps only the last of equal names. So no stem stands in a shard twice: the
// later one gets "~1", "~2", … behind it. The names follow from the keys in their order.
class RecordNames {
 public:
  struct Pair {
    std::string payload;
    std::string label;  // "stem.cls"
  };
  // `as_jpeg`: the sample became a JPEG, so its name has to say so. kInvalid: the name is too long.
  Result<Pair> next(const std::string& key, bool as_jpeg);

 private:
  std::unordered_set<std::string> written_;                 // stems of the names so far
  std::unordered_map<std::string, std::uint64_t> numbers_;  // by stem of the key: the last number behind it
};

}  // namespace foreload
