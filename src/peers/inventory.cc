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
  const auto found = arena_->lease(id, length);
  if (!found) return std::nullopt;
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
  const std::uint32_t version = member_->control().version();
  for (const ObjectInfo& object : member_->control().objects()) {
    const auto is_it = [&](const auto& known) { return known->id() == object.id; };
    const auto has_it = [&](const auto& known) { return known->memory->id() == object.id; };
    const bool is_stream = object.key.kind == ObjectKey::Kind::kRing;
    const bool is_arena = object.key.kind == ObjectKey::Kind::kArena;
    if (object.dropped || !(is_arena || (is_stream && object.users != 0))) continue;
    const auto arena = std::ranges::find_if(before->arenas, is_it);
    const auto stream = std::ranges::find_if(before->streams, has_it);
    if (arena != before->arenas.end()) after->arenas.push_back(*arena);
    if (stream != before->streams.end()) after->streams.push_back(*stream);
    if (arena != before->arenas.end() || stream != before->streams.end()) continue;
    if (const auto refused = refused_.find(object.id); refused != refused_.end() && refused->second == version)
      continue;
    bool opened = false;
    if (is_arena) {
      auto fresh = ShelvedArena::open(*member_, object);
      opened = fresh.ok();
      if (opened) after->arenas.push_back(std::move(*fresh));
    } else {
      auto fresh = AskingStream::open(*member_, object);
      opened = fresh.ok();
      if (opened) after->streams.push_back(std::move(*fresh));
    }
    if (!opened) refused_[object.id] = version;
  }
  if (refused_.size() > Control::kMostObjects) refused_.clear();
  MutexLock lock(mutex_);
  lists_ = std::move(after);
}

}  // namespace foreload
