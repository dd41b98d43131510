// ConvertRun: converts the samples of the shards that are still missing. Some threads read samples in order of need,
// one per core converts them, and the calling thread writes them in that order, shard after shard. Bytes on their way
// are bounded.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "pipeline/scratch_pool.h"
#include "record/convert.h"
#include "record/convert_plan.h"
#include "record/destination.h"
#include "record/sample_converter.h"
#include "record/shard_account.h"

namespace foreload {

inline constexpr const char* kNoMemoryToConvert =
    "there is not enough memory to convert: use fewer threads, or raise the limit (ulimit -v, memory.max of the "
    "cgroup); the same command continues";

class ConvertRun {
 public:
  // All must outlive this. `missing`: shards, rising.
  ConvertRun(const ConvertOptions& options, const ConvertPlan& plan, const Destination& destination,
             std::vector<std::uint64_t> missing);

  // One account per missing shard. The error is that of the first sample that failed, whichever thread had it.
  Result<std::vector<ShardAccount>> run();

 private:
  struct Claim {
    std::uint64_t number = 0;  // in order of need
    SampleId id = 0;
    Bytes taken = 0;
  };
  struct Read {
    Claim claim;
    Result<std::vector<std::byte>> bytes;
  };
  struct Finished {
    Result<ConvertedSample> sample;
    Bytes taken = 0;
  };

  Status start(std::vector<Thread>& threads);
  void work(bool reads) FORELOAD_EXCLUDES(mutex_);
  void read_samples() FORELOAD_EXCLUDES(mutex_);
  void convert_samples() FORELOAD_EXCLUDES(mutex_);
  std::optional<Claim> claim() FORELOAD_EXCLUDES(mutex_);
  std::optional<Read> next_read() FORELOAD_EXCLUDES(mutex_);
  bool has_next() const FORELOAD_REQUIRES(mutex_) { return shard_ < missing_.size(); }
  void deliver(const Claim& claim, Result<ConvertedSample> sample) FORELOAD_EXCLUDES(mutex_);
  Result<ConvertedSample> take(std::uint64_t number) FORELOAD_EXCLUDES(mutex_);
  Result<ConvertedSample> convert(Read read, SampleConverter& converter) const;
  Result<std::vector<ShardAccount>> write_all_shards();
  Result<ShardAccount> write_shard(std::uint64_t shard);
  Status ask_to_stop() const;
  void stop() FORELOAD_EXCLUDES(mutex_);
  bool is_stopped() FORELOAD_EXCLUDES(mutex_);

  const ConvertOptions& options_;
  const ConvertPlan& plan_;
  const Destination& destination_;
  const std::vector<std::uint64_t> missing_;
  const unsigned threads_;
  const Bytes budget_;  // for samples between reading and writing
  ScratchPool pool_;
  std::uint64_t written_ = 0;  // numbers below are
  std::uint64_t to_do_ = 0;

  std::atomic<bool> ends_{false};  // nothing that is converted now is used

  Mutex mutex_;
  CondVar room_;     // a sample was written
  CondVar read_;     // a sample was read
  CondVar arrived_;  // a sample was converted
  bool stopped_ FORELOAD_GUARDED_BY(mutex_) = false;
  bool out_of_memory_ FORELOAD_GUARDED_BY(mutex_) = false;
  std::size_t shard_ FORELOAD_GUARDED_BY(mutex_) = 0;    // of missing_: the next claim is there
  std::uint64_t place_ FORELOAD_GUARDED_BY(mutex_) = 0;  // the next claim
  std::uint64_t claimed_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::uint64_t converting_ FORELOAD_GUARDED_BY(mutex_) = 0;  // how many were given to converters
  Bytes taken_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Read> reads_ FORELOAD_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Finished> finished_ FORELOAD_GUARDED_BY(mutex_);
};

}  // namespace foreload
