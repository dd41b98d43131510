// Workshop: the worker threads of this process in a host. They prepare whatever sample is needed soonest by any learner
// of the host, on as many cores as the host has for all members together. A thread of it keeps the list of streams:
// each is mapped when it appears and let go of when nobody uses it any more. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "host/member.h"
#include "host/stream_card.h"
#include "pipeline/prep_board.h"
#include "pipeline/preparer.h"
#include "pipeline/scratch_pool.h"

namespace foreload {

struct WorkshopOptions {
  unsigned threads = 1;  // 0: others prepare
  Bytes scratch = 0;     // for their decoding
  bool standby = false;  // they begin when employ() says so
};

class Workshop : private PrepBoard {
 public:
  // This process's, made now if there is none. The first that does not stand by says how many threads there are.
  static Result<std::shared_ptr<Workshop>> open(std::shared_ptr<Member> member, const WorkshopOptions& options);
  ~Workshop();

  // Starts as many workers, unless there are some. kNoMemory: the system allows no more threads.
  Status employ(unsigned threads) FORELOAD_EXCLUDES(employing_);
  unsigned most() const { return static_cast<unsigned>(places_.size()); }
  unsigned workers() const { return workers_; }

 private:
  // A stream of any member, mapped here.
  struct Helped;
  using Streams = std::vector<std::shared_ptr<Helped>>;

  Workshop(std::shared_ptr<Member> member, const WorkshopOptions& options);

  std::optional<PrepTask> claim(unsigned worker) override;
  void settled(unsigned worker, const PrepTask& task, bool bad) override;
  std::uint32_t signal() const override;
  bool wait(unsigned worker, std::uint32_t seen, Time until) override;
  bool stopped() const override { return stopping_; }

  bool has_core(unsigned worker);
  void rest(unsigned worker);
  void keep_list();
  void update_list();
  Result<std::shared_ptr<Helped>> attach(const ObjectInfo& object);
  std::shared_ptr<const Streams> streams() const FORELOAD_EXCLUDES(mutex_);

  std::shared_ptr<Member> member_;
  ScratchPool scratch_;
  Preparer preparer_;
  std::atomic<bool> stopping_{false};
  struct Place {
    std::optional<Control::Core> core;
    bool lacks_core = false;         // there was something to do
    std::uint32_t core_seen = 0;     // of the signal, before it was found that there is none
    std::shared_ptr<Helped> stream;  // of the sample at hand
  };
  std::vector<Place> places_;  // by worker; each its own
  mutable Mutex mutex_;
  std::shared_ptr<const Streams> streams_ FORELOAD_GUARDED_BY(mutex_);
  std::uint64_t serial_ = 0;  // of the last stream
  // A stream that could not be had: not to be tried again before the list changes, or that time.
  struct Refused {
    std::uint32_t version = 0;
    Time until{};
  };
  std::map<ObjectId, Refused> refused_;
  std::atomic<unsigned> workers_{0};
  Mutex employing_;
  std::vector<Thread> threads_ FORELOAD_GUARDED_BY(employing_);
};

}  // namespace foreload
