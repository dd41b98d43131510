// Control: the block of shared memory that makes processes a host: who its members are, which arenas and rings there
// are, and what each takes of the budget. Every entry is complete in itself and moves by one store to its word, so a
// member may die anywhere. The lock only keeps two members from taking the same entry or the same bytes; it is taken
// from the dead. Other members are not trusted: what is read here is bounded before it is used. Any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/claim_word.h"
#include "base/shared_memory.h"
#include "foreload/result.h"
#include "foreload/types.h"
#include "host/name.h"
#include "pipeline/ring.h"

namespace foreload {

// What shared memory is for. The key says what it holds: equal keys, same content.
struct ObjectKey {
  enum class Kind : std::uint32_t { kArena = 1, kRing = 2, kRoster = 3, kPlans = 4, kDisks = 5 };
  Kind kind = Kind::kArena;
  std::uint64_t first = 0;
  std::uint64_t second = 0;

  bool operator==(const ObjectKey&) const = default;
};

using ObjectId = std::uint64_t;  // of one life of an entry

struct ObjectInfo {
  ObjectId id = 0;
  ObjectKey key{};
  Bytes bytes = 0;            // of its memory file
  Bytes reserved = 0;         // of the budget
  std::uint64_t holders = 0;  // members that can hand it out, one bit each
  std::uint64_t users = 0;    // members that need it
  Time last_used{};
  bool dropped = false;  // let go of it
};

struct MemberInfo {
  MemberId id{};
  std::uint32_t process = 0;  // for display
  Bytes reserved = 0;
  unsigned workers = 0;  // threads that prepare for all
  bool alive = false;
};

class Control {
 public:
  static constexpr unsigned kMostObjects = 256;
  static constexpr Duration kPatience = std::chrono::seconds(2);  // with a member that was stopped inside of the lock

  static Bytes region_bytes();
  static Result<Control> create(Bytes budget, unsigned cores);
  // kInvalid: it is none, or another version's.
  static Result<Control> adopt(Descriptor file);
  // For tests: for another member in this process, at the same addresses. Record locks do not tell such members apart.
  Control beside() const { return Control(memory_); }

  Bytes budget() const;
  const SharedMemory& memory() const { return *memory_; }

  // Members. -----------------------------------------------------------------------------------
  // Takes the place and holds it until leave() or death. Nothing: it is another's, or what the last holder left is not
  // cleared yet. REQUIRES: this process has no place.
  std::optional<MemberId> enter(unsigned index);
  void leave();
  std::optional<MemberId> self() const { return self_; }
  bool is_alive(MemberId member) const;
  std::vector<MemberInfo> members() const;
  // Members that died and have not been cleared. Whoever finds some takes back their claims, then clears them. Any
  // number may do that at the same time.
  std::vector<MemberId> dead() const;
  void clear(MemberId member);
  void add_workers(int count);    // to those of this member. REQUIRES: enter()
  bool anybody_prepares() const;  // some living member has workers

  // Budget and objects. REQUIRES: enter(). All need the lock, and fail when a stopped member has it. ----------------
  // What this member takes beside objects, instead of what it took before. kNoMemory says how much is left.
  Status reserve(Bytes bytes);
  // The object with this key, or a new one, which this member holds and uses. Nobody is given a new one before its
  // maker answers requests for it.
  struct Found {
    ObjectInfo object;
    bool is_new = false;
  };
  Result<Found> find_or_add(const ObjectKey& key, Bytes bytes, Bytes reserve);
  Status grow(ObjectId object, Bytes reserve);  // to so much, if it has less: others may have been quicker
  Status drop(ObjectId object);                 // all are to let go of it; nobody finds it any more
  // This member has its memory, and maybe uses it. kNotFound: the object has ended meanwhile.
  Status hold(ObjectId object, bool use);
  Status withdraw(ObjectId object);
  Status collect();  // ends objects that nobody holds any more

  // Rings with the same first half of their keys have the same batches. Who wants them reads one that is fed, or else
  // feeds its own: then all others must know of it. False: another one is fed that is not among `known`. end_lead(): it
  // is not fed any more.
  struct Lead {
    ObjectId object = 0;
    std::uint64_t serial = 0;  // of all leads of a host

    bool operator==(const Lead&) const = default;
  };
  std::vector<Lead> leads(std::uint64_t first) const;
  Result<bool> lead(ObjectId own, std::span<const Lead> known);
  void end_lead(ObjectId own);

  std::optional<ObjectInfo> object(ObjectId object) const;
  std::vector<ObjectInfo> objects() const;
  std::uint32_t version() const;  // grows when objects come, go or change hands
  void wait_for_version(std::uint32_t seen, Time deadline) const;
  void announce();  // ends the waits

  // Cores. --------------------------------------------------------------------------------------
  // Workers of all members run on so many cores together. Each takes one before it works and gives it back when it has
  // nothing to do; one that was taken by the dead, or by somebody who has not renewed it for a while, is free.
  static constexpr unsigned kMostCores = 256;
  unsigned cores() const;
  unsigned cores_in_use(Time now) const;
  WorkSignal& work_signal() const;  // raised when a sample is ready
  WorkSignal& core_signal() const;  // raised when a core is given back
  WorkSignal& peer_signal() const;  // raised when something is asked for that other hosts have
  struct Core {
    unsigned index = 0;
    std::uint64_t word = 0;
  };
  std::optional<Core> take_core(Time now);
  bool renew(Core& core, Time now);  // false: it was slow, and somebody else has it
  void give_back(const Core& core);

 private:
  struct Block;
  struct MemberEntry;
  struct ObjectEntry;
  struct CoreEntry;
  class Lock;

  explicit Control(std::shared_ptr<const SharedMemory> memory) : memory_(std::move(memory)) {}
  Block& block() const;
  ObjectEntry* entry(ObjectId object) const;  // null: that life is over
  ObjectInfo info(unsigned index) const;
  Status check_budget(Bytes before, Bytes wanted) const;

  std::shared_ptr<const SharedMemory> memory_;
  std::optional<MemberId> self_;  // of this process
};

}  // namespace foreload
