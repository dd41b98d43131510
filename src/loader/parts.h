// Loader::Parts: what a loader is made of, from the dataset to the desk where batches are lent. Opened in
// parts_open.cc, used in loader.cc.
#pragma once

#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>

#include "base/event_record.h"
#include "foreload/loader.h"
#include "loader/accounts.h"
#include "loader/host_seat.h"
#include "loader/job.h"
#include "loader/lease_desk.h"
#include "loader/order.h"
#include "loader/pace_keeper.h"
#include "loader/seams.h"
#include "loader/setup.h"
#include "pipeline/pipeline.h"
#include "plan/placement.h"
#include "plan/stream.h"
#include "tier/arena.h"
#include "tier/dimension_table.h"
#include "tier/tier_stack.h"

namespace foreload {

class Loader::Parts {
 public:
  static Result<std::unique_ptr<Parts>> open(LoaderOptions options, const Seams& seams);
  ~Parts();

  Result<std::optional<Batch>> next();
  void interrupt();
  State position() const;
  Status seek(const State& state);
  LoaderStats stats() const;

  const Stream& stream() const { return *stream_; }
  const Source& source() const { return *source_; }
  const TensorSpec& spec() const { return own_desk_->spec(); }
  // In a host batches come from the memory of several jobs.
  std::span<const std::byte> batch_memory() const {
    return seat_ ? std::span<const std::byte>() : own_desk_->ring().memory();
  }
  std::vector<Position> positions(Epoch epoch, std::uint64_t step) const;

 private:
  explicit Parts(LoaderOptions options) : options_(std::move(options)) {}
  Status open_tiers(const SizedPlan& sized, const Seams& seams);
  Status open_pipeline(const SizedPlan& sized, Chain chain, const Seams& seams);
  enum class With { kAnybody, kNobody, kNextEpoch };  // who has the same batches
  Status go_on_from(std::uint64_t number, With with = With::kAnybody);
  std::optional<With> look_at_company(std::uint64_t number);
  void leave();
  Result<std::uint32_t> wait_for(std::uint64_t number);
  BatchCost cost_of(std::uint32_t slot, const BatchPlan& plan);
  Result<Batch> deliver(std::uint32_t slot, Time asked);
  Time begin_wait(Time time) const;
  std::optional<Batch> end_epoch();
  void pass_on_warnings();
  std::uint32_t hosts() const {
    return job_.plans ? static_cast<std::uint32_t>(job_.plans->assignment().roster().hosts().size()) : 1;
  }
  bool forked() const { return ::getpid() != owner_; }
  std::uint64_t plan_hash_now() const {
    return plan_hash(stream_->schedule().options(), stream_->assignment().shape());
  }

  LoaderOptions options_;
  pid_t owner_ = ::getpid();
  Bytes budget_ = 0;
  unsigned threads_ = 1;
  std::unique_ptr<Source> source_;
  JobPlan job_;
  std::optional<Stream> stream_;
  std::optional<Chain> chain_;
  Placement placement_;
  Bytes capacity_ = 0;  // of the cache
  std::unique_ptr<EventRecord> record_;
  std::unique_ptr<HostSeat> seat_;  // null: this process is alone
  std::unique_ptr<Arena> arena_;
  std::optional<DimensionTable> dimensions_;
  std::unique_ptr<TierStack> tiers_;
  std::shared_ptr<LeaseDesk> own_desk_;
  std::shared_ptr<LeaseDesk> desk_;  // where batches are taken: the own one, or of a ring that another job feeds
  std::unique_ptr<Pipeline> pipeline_;
  Accounts accounts_;
  PaceKeeper pace_;

  Epoch epoch_ = 0;
  std::uint64_t step_ = 0;      // the next batch
  bool in_epoch_ = false;       // next() was called since the epoch began
  std::optional<Error> error_;  // ends the run
  std::atomic<bool> interrupted_{false};
  struct {
    std::uint64_t number = 0;
    std::uint64_t opened = 0;
    Time since{};
  } waited_;  // for a batch of another job, whose ring stood at `opened`
  struct {
    Time begin{};
    Time end{};
  } interrupted_wait_;
};

}  // namespace foreload
