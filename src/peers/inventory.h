// Inventory: what an agent sees of its host that matters to other hosts: the shared arenas and the disks of its
// learners, out of which they are served, and the streams that ask for what others have. A thread of it keeps the
// lists. Any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "host/member.h"
#include "host/stream_card.h"
#include "tier/disk_board.h"
#include "tier/peer_desk.h"
#include "tier/shared_arena.h"

namespace foreload {

// An arena of the host. Leases on its samples keep its memory.
class ShelvedArena : private LeaseBook, public std::enable_shared_from_this<ShelvedArena> {
 public:
  static Result<std::shared_ptr<ShelvedArena>> open(Member& member, const ObjectInfo& object);

  ObjectId id() const { return memory_->id(); }
  const ObjectKey& key() const { return key_; }
  std::uint64_t samples() const { return samples_; }
  SharedArena& arena() const { return *arena_; }
  // Nothing: it is not here. REQUIRES: id < samples().
  std::optional<Lease> lease(SampleId id, Bytes length) FORELOAD_EXCLUDES(mutex_);

 private:
  ShelvedArena() = default;
  void add(SampleId id) override FORELOAD_EXCLUDES(mutex_);
  void drop(SampleId id) override FORELOAD_EXCLUDES(mutex_);

  ObjectKey key_{};
  std::uint64_t samples_ = 0;
  std::shared_ptr<SharedObject> memory_;
  std::unique_ptr<SharedArena> arena_;
  Mutex mutex_;
  std::uint64_t leases_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<ShelvedArena> self_ FORELOAD_GUARDED_BY(mutex_);  // while there are leases
};

// The disks of the host's learners, by the board on which they say what they have.
class ShelvedDisks {
 public:
  static Result<std::shared_ptr<ShelvedDisks>> open(Member& member, const ObjectInfo& object);

  ObjectId id() const { return memory_->id(); }
  const ObjectKey& key() const { return key_; }
  DiskBoard& board() { return board_; }
  DiskBoardFiles& files() { return files_; }

 private:
  ShelvedDisks(const ObjectKey& key, std::shared_ptr<SharedObject> memory, DiskBoard board)
      : key_(key), memory_(std::move(memory)), board_(std::move(board)) {}

  ObjectKey key_;
  std::shared_ptr<SharedObject> memory_;
  DiskBoard board_;
  DiskBoardFiles files_;
};

// A stream that asks other hosts.
struct AskingStream {
  static Result<std::shared_ptr<AskingStream>> open(Member& member, const ObjectInfo& object);

  ObjectId id() const { return memory->id(); }

  std::shared_ptr<SharedObject> memory;
  StreamCard card;
  std::shared_ptr<Ring> ring;
  PeerDesk desk;
};

class Inventory {
 public:
  struct Lists {
    std::vector<std::shared_ptr<ShelvedArena>> arenas;
    std::vector<std::shared_ptr<ShelvedDisks>> disks;
    std::vector<std::shared_ptr<AskingStream>> streams;
  };

  static Result<std::unique_ptr<Inventory>> open(std::shared_ptr<Member> member);
  ~Inventory();

  std::shared_ptr<const Lists> lists() const FORELOAD_EXCLUDES(mutex_);
  Member& member() const { return *member_; }

 private:
  explicit Inventory(std::shared_ptr<Member> member) : member_(std::move(member)) {}
  void run();
  void update();
  // What was known stays; what is new is opened.
  template <typename T>
  void keep(const ObjectInfo& object, const std::vector<std::shared_ptr<T>>& before,
            std::vector<std::shared_ptr<T>>& after);

  std::shared_ptr<Member> member_;
  mutable Mutex mutex_;
  std::shared_ptr<const Lists> lists_ FORELOAD_GUARDED_BY(mutex_) = std::make_shared<const Lists>();
  std::map<ObjectId, Time> refused_;  // what could not be had, and when to try again
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;
};

}  // namespace foreload
