// Lanes of a server: a queue of gRPC's events, the one thread that takes from it, and the calls that stay in it. For
// GrpcServer only.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/thread.h"
#include "foreload/result.h"
#include "peers/cutter.h"
#include "peers/peers_grpc.h"

namespace foreload {

// Counts something down to nothing. Any thread.
class Tally {
 public:
  void add() {
    MutexLock lock(mutex_);
    ++count_;
  }
  void drop() {
    MutexLock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    MutexLock lock(mutex_);
    while (count_ != 0) none_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar none_;
  std::size_t count_ FORELOAD_GUARDED_BY(mutex_) = 0;
};

// Any thread.
struct RefusalCounts {
  std::atomic<std::uint64_t> strangers{0};
  std::atomic<std::uint64_t> malformed{0};
  std::atomic<std::uint64_t> versions{0};
  std::atomic<std::uint64_t> unknown{0};
  std::atomic<std::uint64_t> hellos{0};
};

// What all calls use.
struct Shop {
  PeerShelf& shelf;
  GrpcServer::Greet greet;
  Duration patience;
  bool authenticated = false;
  RefusalCounts refused{};
  Cutter cutter{};
  grpc::AsyncGenericService methods{};
  Tally leases{};  // in the hands of gRPC
  Tally calls{};
};

class Lane {
 public:
  explicit Lane(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}

  // `shop` outlives the lane.
  Status start(Shop& shop);
  // REQUIRES: no call is left.
  void stop();

  // For calls, by the lane's thread.
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  void on_client(bool ok);  // the waiting call has got a client, or never will
  void on_end();

 private:
  void add_waiting();
  void take_events();

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Shop* shop_ = nullptr;
  std::size_t calls_ = 0;
  bool waiting_ = false;
  bool open_ = true;
  std::optional<Thread> thread_;
};

}  // namespace foreload
