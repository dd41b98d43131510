#include "peers/inventory.h"

#include <algorithm>

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(100);

}  // namespace

Result<std::shared_ptr<ShelvedArena>> ShelvedArena::open(Member& member, const ObjectInfo& object) {
  std::shared_ptr<ShelvedArena> shelved(new ShelvedArena);
  FORELOAD_ASSIGN(shelved->memory_, member.fetch(object.id));
  const std::span<std::byte> bytes = shelved->memory_->memory().bytes();
  FORELOAD_ASSIGN(const SharedArenaOptions options, SharedArena::options_of(bytes));
  const auto is_alive = [&member](MemberId id) { return member.control().is_alive(id); };
  FORELOAD_ASSIGN(shelved->arena_, SharedArena::open(bytes, options, member.id(), is_alive));
  shelved->key_ = object.key;
  shelved->samples_ = options.samples;
  return shelved;
}

std::optional<Lease> ShelvedArena::lease(SampleId id, Bytes length) {
  const auto found = length > 0 ? arena_->lease(id, length) : std::nullopt;
  if (!found) return std::nullopt;
  // Whoever asks says how long it is: nobody gets what is not reserved.
  const std::byte* const end = arena_->memory().data() + arena_->reserved();
  if (found->bytes().data() + length > end) return std::nullopt;
  add(id);
  return Lease(this, id, found->bytes());
}

void ShelvedArena::add(SampleId /*id*/) {
  MutexLock lock(mutex_);
  if (leases_++ == 0) self_ = shared_from_this();
}

void ShelvedArena::drop(SampleId /*id*/) {
  std::shared_ptr<ShelvedArena> last;  // goes after the lock
  MutexLock lock(mutex_);
  if (--leases_ == 0) last = std::move(self_);
}

Result<std::shared_ptr<ShelvedDisks>> ShelvedDisks::open(Member& member, const ObjectInfo& object) {
  FORELOAD_ASSIGN(auto memory, member.fetch(object.id));
  const auto is_alive = [&member](MemberId id) { return member.control().is_alive(id); };
  FORELOAD_ASSIGN(DiskBoard board, DiskBoard::open(memory->memory().bytes(), is_alive));
  return std::shared_ptr<ShelvedDisks>(new ShelvedDisks(object.key, std::move(memory), std::move(board)));
}

Result<std::shared_ptr<AskingStream>> AskingStream::open(Member& member, const ObjectInfo& object) {
  FORELOAD_ASSIGN(auto memory, member.fetch(object.id));
  const std::span<std::byte> bytes = memory->memory().bytes();
  FORELOAD_ASSIGN(StreamCard card, read_card(bytes, bytes.size()));
  if (card.desk < PeerDesk::region_bytes(1)) return Error{Code::kNotFound, "this stream does not ask other hosts"};
  FORELOAD_ASSIGN(Region region,
                  Region::map_file(memory->memory().file(), card.ring_offset(), card.ring_bytes(), "the batches"));
  auto ring = Ring::attach(card.ring, std::move(region));
  const PeerDesk desk(bytes.subspan(card.desk_offset(), card.desk));
  return std::make_shared<AskingStream>(AskingStream{std::move(memory), std::move(card), std::move(ring), desk});
}

Result<std::unique_ptr<Inventory>> Inventory::open(std::shared_ptr<Member> member) {
  std::unique_ptr<Inventory> inventory(new Inventory(std::move(member)));
  Inventory* running = inventory.get();
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-inventory", [running] { running->run(); }));
  inventory->threads_.push_back(std::move(thread));
  return inventory;
}

Inventory::~Inventory() {
  stopping_ = true;
  member_->control().announce();
  threads_.clear();
}

std::shared_ptr<const Inventory::Lists> Inventory::lists() const {
  MutexLock lock(mutex_);
  return lists_;
}

void Inventory::run() {
  while (!stopping_) {
    const std::uint32_t seen = member_->control().version();
    update();
    if (!stopping_) member_->control().wait_for_version(seen, now() + kLook);
  }
}

void Inventory::update() {
  const auto before = lists();
  auto after = std::make_shared<Lists>();
  const std::vector<ObjectInfo> objects = member_->control().objects();
  for (const ObjectInfo& object : objects) {
    const bool is_stream = object.key.kind == ObjectKey::Kind::kRing && object.users != 0;
    if (object.dropped) continue;
    if (object.key.kind == ObjectKey::Kind::kArena) {
      keep(object, before->arenas, after->arenas);
    } else if (is_stream) {
      keep(object, before->streams, after->streams);
    }
  }
  // As long as somebody uses them, or the cache in memory that belongs to them is kept.
  for (const ObjectInfo& object : objects) {
    if (object.key.kind != ObjectKey::Kind::kDisks || object.dropped) continue;
    const ObjectKey arena{ObjectKey::Kind::kArena, object.key.first, object.key.second};
    const bool kept = std::ranges::any_of(after->arenas, [&](const auto& of) { return of->key() == arena; });
    if (kept || object.users != 0) keep(object, before->disks, after->disks);
  }
  if (refused_.size() > Control::kMostObjects) refused_.clear();
  MutexLock lock(mutex_);
  lists_ = std::move(after);
}

template <typename T>
void Inventory::keep(const ObjectInfo& object, const std::vector<std::shared_ptr<T>>& before,
                     std::vector<std::shared_ptr<T>>& after) {
  const auto known = std::ranges::find(before, object.id, [](const auto& kept) { return kept->id(); });
  if (known != before.end()) return after.push_back(*known);
  const Time time = now();
  const auto refused = refused_.find(object.id);
  if (refused != refused_.end() && time < refused->second) return;
  auto opened = T::open(*member_, object);
  if (opened.ok()) return after.push_back(std::move(*opened));
  // Whoever has it may have been stopped; anything else stays as it is.
  refused_[object.id] = opened.error().code == Code::kIo ? time + kLook : Time::max();
}

}  // namespace foreload
