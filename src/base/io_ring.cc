// Reading through io_uring. Each job has a slot and at most one operation in the ring: OPENAT2, then READ until
// its range is complete. wait() goes round in turns: take completions, let their tasks queue the next
// operations, submit those in one system call, which also waits.
//
// fstat and close are plain calls: on an open file they do not wait for the storage, while IORING_OP_STATX is
// always handed to a kernel thread. wake() writes to an eventfd that the ring reads.
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/io_engines.h"
#include "base/open_below.h"
#include "base/read_task.h"

namespace foreload {

namespace {

constexpr std::uint64_t kWakeTag = std::uint64_t{1} << 63;  // above every slot; ~0 belongs to liburing
constexpr unsigned kMostWorkers = 64;  // kernel threads, for files that can only be read by blocking
constexpr Bytes kPortion = 64_KiB;
constexpr auto kKernelBusyPause = std::chrono::milliseconds(1);

open_how open_how_for(int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = kResolveBelow;
  return how;
}

bool supports_what_we_use(io_uring& ring) {
  if ((ring.features & IORING_FEAT_EXT_ARG) == 0) return false;  // waiting with a timeout
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring);
  if (probe == nullptr) return false;
  const bool supported =
      io_uring_opcode_supported(probe, IORING_OP_OPENAT2) != 0 && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  io_uring_free_probe(probe);
  return supported;
}

// IORING_SETUP_COOP_TASKRUN saves interrupting the thread at each completion; kernels before 5.19 refuse it.
int init_ring(io_uring& ring, unsigned entries) {
  const int result = io_uring_queue_init(entries, &ring, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_CLAMP);
  return result == -EINVAL ? io_uring_queue_init(entries, &ring, IORING_SETUP_CLAMP) : result;
}

class RingEngine : public ReadEngine {
 public:
  explicit RingEngine(const ReadEngineOptions& options) : options_(options), owner_(getpid()) {}
  RingEngine(const RingEngine&) = delete;
  RingEngine& operator=(const RingEngine&) = delete;
  ~RingEngine() override;

  int open();  // 0 or an errno

  const char* name() const override { return "uring"; }
  unsigned max_depth() const override { return options_.depth; }
  void submit(std::span<const ReadJob> jobs) override;
  void wait(std::vector<ReadResult>& results, Time deadline) override;
  void wake() override;

 private:
  io_uring_sqe& new_entry();
  void queue_wake_read();
  void queue_operation(std::uint32_t slot, ReadTask::Next next);
  void proceed(std::uint32_t slot, ReadTask::Next next);
  void submit_queued();
  void take_wake(int result);
  void reap();
  void sleep_until_completion(Time deadline);
  void turn();

  const ReadEngineOptions options_;
  const pid_t owner_;
  const open_how plain_ = open_how_for(kOpenBelowFlags);
  const open_how direct_ = open_how_for(kOpenBelowFlags | O_DIRECT);
  io_uring ring_{};
  bool ring_exists_ = false;
  Descriptor wake_event_;
  std::uint64_t wake_count_ = 0;  // where the ring reads the eventfd to
  bool wake_read_queued_ = false;
  bool woken_ = false;
  bool closing_ = false;
  std::atomic<bool> wake_pending_{false};
  std::vector<ReadTask> tasks_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<ReadResult> finished_;
};

int RingEngine::open() {
  // One operation per job and the eventfd's, so that neither queue can overflow.
  const int result = init_ring(ring_, options_.depth + 1);
  if (result < 0) return -result;
  ring_exists_ = true;
  if (!supports_what_we_use(ring_)) return EOPNOTSUPP;
  // Kernels before 5.15 do not know this limit and keep their own.
  unsigned workers[2] = {std::min(options_.depth, kMostWorkers), std::min(options_.depth, kMostWorkers)};
  static_cast<void>(io_uring_register_iowq_max_workers(&ring_, workers));
  wake_event_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!wake_event_.valid()) return errno;
  queue_wake_read();
  // Some sandboxes allow to set a ring up but not to use it.
  const int submitted = io_uring_submit(&ring_);
  if (submitted < 0) {
    wake_read_queued_ = false;
    return -submitted;
  }
  for (std::uint32_t slot = 0; slot < options_.depth; ++slot) {
    tasks_.emplace_back(options_);
    free_slots_.push_back(slot);
  }
  return 0;
}

RingEngine::~RingEngine() {
  if (!ring_exists_) return;
  if (getpid() != owner_) {
    // A forked child shares the ring with its parent: it may only let go of the descriptor.
    ::close(ring_.ring_fd);
    return;
  }
  closing_ = true;
  if (wake_event_.valid()) wake();
  while (wake_read_queued_ || free_slots_.size() < tasks_.size()) {
    sleep_until_completion(kNever);
    turn();
  }
  io_uring_queue_exit(&ring_);
}

io_uring_sqe& RingEngine::new_entry() {
  io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
  FORELOAD_CHECK(entry != nullptr, "the ring has an entry for every slot");
  return *entry;
}

void RingEngine::queue_wake_read() {
  io_uring_sqe& entry = new_entry();
  io_uring_prep_read(&entry, wake_event_.get(), &wake_count_, sizeof wake_count_, 0);
  io_uring_sqe_set_data64(&entry, kWakeTag);
  wake_read_queued_ = true;
}

void RingEngine::queue_operation(std::uint32_t slot, ReadTask::Next next) {
  ReadTask& task = tasks_[slot];
  io_uring_sqe& entry = new_entry();
  if (next == ReadTask::Next::kOpen) {
    // The kernel copies it when the entry is submitted, and does not write to it.
    auto* const how = const_cast<open_how*>(task.opens_direct() ? &direct_ : &plain_);
    io_uring_prep_openat2(&entry, task.job().root, task.job().path, how);
  } else {
    const ReadTask::Piece piece = task.piece();
    io_uring_prep_read(&entry, piece.fd, piece.into, piece.length, piece.offset);
  }
  io_uring_sqe_set_data64(&entry, slot);
}

void RingEngine::proceed(std::uint32_t slot, ReadTask::Next next) {
  if (next != ReadTask::Next::kFinished && !closing_) {
    queue_operation(slot, next);
    return;
  }
  finished_.push_back(tasks_[slot].result());
  tasks_[slot].drop();
  free_slots_.push_back(slot);
}

void RingEngine::submit(std::span<const ReadJob> jobs) {
  FORELOAD_CHECK(jobs.size() + finished_.size() <= free_slots_.size(), "no more jobs than the depth are submitted");
  for (const ReadJob& job : jobs) {
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    proceed(slot, tasks_[slot].start(job));
  }
  submit_queued();
}

void RingEngine::submit_queued() {
  while (io_uring_sq_ready(&ring_) > 0) {
    const int submitted = io_uring_submit(&ring_);
    if (submitted > 0 || submitted == -EINTR) continue;
    FORELOAD_CHECK(submitted == 0 || submitted == -EAGAIN || submitted == -EBUSY || submitted == -ENOMEM,
                   "the ring is ours and the entries are valid");
    std::this_thread::sleep_for(kKernelBusyPause);  // the kernel is short of memory
  }
}

void RingEngine::take_wake(int result) {
  wake_read_queued_ = false;
  if (result > 0) {
    woken_ = true;
    wake_pending_.exchange(false, std::memory_order_acq_rel);
  } else {
    // Cancelled: the thread that submitted it has ended, and another one goes on with the engine.
    FORELOAD_CHECK(result == -EINTR || result == -EAGAIN || result == -ECANCELED, "an eventfd of ours can be read");
  }
  if (!closing_) queue_wake_read();
}

// A portion at a time: the caller starts new reads before the rest is copied and looked at, so that storage does not
// idle meanwhile.
void RingEngine::reap() {
  io_uring_cqe* completion = nullptr;
  for (Bytes arrived = 0; arrived < kPortion && io_uring_peek_cqe(&ring_, &completion) == 0;) {
    const std::uint64_t tag = io_uring_cqe_get_data64(completion);
    const int result = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    if (tag == kWakeTag) {
      take_wake(result);
      continue;
    }
    ReadTask& task = tasks_[tag];
    const bool opening = task.opening();
    if (!opening) arrived += static_cast<Bytes>(std::max(result, 0));
    proceed(static_cast<std::uint32_t>(tag), opening ? task.opened(result) : task.read_returned(result));
  }
}

void RingEngine::sleep_until_completion(Time deadline) {
  io_uring_cqe* completion = nullptr;
  int result = 0;
  if (deadline == kNever) {
    result = io_uring_wait_cqe(&ring_, &completion);
  } else {
    const std::int64_t left = std::max<std::int64_t>((deadline - now()).count(), 0);
    __kernel_timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    result = io_uring_wait_cqe_timeout(&ring_, &completion, &timeout);
  }
  FORELOAD_CHECK(result == 0 || result == -EINTR || result == -ETIME || result == -EAGAIN || result == -EBUSY,
                 "waiting on a ring of ours can only be interrupted or time out");
}

// Submits and takes until nothing more can be done without waiting.
void RingEngine::turn() {
  do {
    submit_queued();
    reap();
  } while (io_uring_sq_ready(&ring_) > 0);
}

void RingEngine::wait(std::vector<ReadResult>& results, Time deadline) {
  turn();
  while (finished_.empty() && !woken_) {
    sleep_until_completion(deadline);
    turn();
    if (deadline != kNever && now() >= deadline) break;
  }
  woken_ = false;
  results.insert(results.end(), finished_.begin(), finished_.end());
  finished_.clear();
}

// Wakes that come before the last one was noticed are the same wake: only the first pays for a system call.
void RingEngine::wake() {
  if (wake_pending_.exchange(true, std::memory_order_acq_rel)) return;
  FORELOAD_CHECK(eventfd_write(wake_event_.get(), 1) == 0, "the eventfd is open and far from its limit");
}

}  // namespace

RingOpening open_ring_engine(const ReadEngineOptions& options) {
  auto engine = std::make_unique<RingEngine>(options);
  if (const int error_number = engine->open(); error_number != 0) return {nullptr, error_number};
  return {std::move(engine), 0};
}

}  // namespace foreload
