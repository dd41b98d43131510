// How the host's budget is divided: a stream may take a share of it, chosen so that the streams of all ranks of this
// machine, or of four jobs, take half at most. What is left is for homes, which grow into it as they are needed.
#include "loader/host_seat.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/clock.h"
#include "base/machine.h"
#include "base/text.h"
#include "loader/homes_order.h"
#include "policy/eviction.h"

namespace foreload {
namespace {

constexpr Bytes kExtent = 256_MiB;  // of homes, reserved at once
constexpr Bytes kPage = 4096;
constexpr Duration kLookForAgent = std::chrono::milliseconds(50);
constexpr Duration kLookAtDesks = std::chrono::milliseconds(100);
constexpr Duration kLookAtDisks = std::chrono::milliseconds(10);
// Beside those of the batches that the caller holds: a job that reads this stream may be stopped while it holds as
// many.
constexpr unsigned kSpareSlots = 2;
constexpr Bytes kStreams = 4;  // that a host has room for in any case

Bytes whole_pages(Bytes bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// For what is on its way from other hosts, of a stream's share: enough to keep a fast network busy. Samples that do not
// fit half of it are read from the source.
Bytes desk_room(Bytes share) {
  constexpr Bytes kEnough = 32_MiB;
  return std::min(kEnough, share / 8);
}

}  // namespace

Status check_host(const LoaderOptions& options) {
  if (options.host.empty()) {
    if (!options.follow) return {};
    return Error{Code::kInvalid,
                 "follow is for jobs that share a host (--host, host): give its name, or leave out follow"};
  }
  if (evicts(options.eviction)) {
    return Error{Code::kInvalid,
                 "eviction belady and lru are for processes that can not share a cache; members of a host share one: "
                 "leave out eviction, or host"};
  }
  if (options.rewrite == Rewrite::kOn) {
    return Error{Code::kInvalid,
                 "rewrite on does not go with host: other members may be reading what would be rewritten. Convert the "
                 "dataset instead (foreload convert), or leave out one of them"};
  }
  return {};
}

Result<std::unique_ptr<HostSeat>> HostSeat::open(const Needs& needs) {
  FORELOAD_ASSIGN(auto member, Member::join(needs.options.host, join_options(needs.options, needs.seams)));
  std::unique_ptr<HostSeat> seat(new HostSeat(std::move(member), needs.job));
  seat->host_ = needs.options.host;
  FORELOAD_TRY(seat->plan(needs));
  if (needs.options.cache) FORELOAD_TRY(seat->open_homes(needs));
  FORELOAD_TRY(seat->open_disks(needs));
  // Before the stream, so that they have enough memory for its samples.
  const bool standby = needs.options.workers == 0u;
  const WorkshopOptions workers{.threads = needs.threads, .scratch = seat->sized_.memory.scratch, .standby = standby};
  FORELOAD_ASSIGN(seat->workshop_, Workshop::open(seat->member_, workers));
  if (standby) seat->standby_.emplace(seat->member_, seat->workshop_, seat->host_);
  FORELOAD_TRY(seat->open_stream(needs));
  return seat;
}

HostSeat::~HostSeat() {
  stop();
  if (share_ > 0) (void)member_->reserve_less(share_).ok();
}

// What the stream needs without a cache of its own; more of the budget when the usual share is not enough.
Status HostSeat::plan(const Needs& needs) {
  LoaderOptions own = needs.options;
  own.cache = false;
  const Bytes share = budget() / 2 / std::max<Bytes>(learners_here(needs.options), kStreams);
  if (job_.plans) {
    desk_bytes_ = whole_pages(PeerDesk::region_bytes(desk_room(share)));
    plan_bytes_ = job_.plans->bytes();
  }
  own.memory = share - std::min(desk_bytes_ + plan_bytes_, share / 2);
  const Bytes longest = std::min(needs.source.max_length(), needs.options.limits.sample_bytes);
  for (;;) {
    own.held_batches = needs.options.held_batches + kSpareSlots;
    auto sized = size_memory(own, needs.source, needs.chain, needs.stream, needs.threads);
    if (!sized.ok()) {  // then without spare ones
      own.held_batches = needs.options.held_batches;
      sized = size_memory(own, needs.source, needs.chain, needs.stream, needs.threads);
    }
    const bool is_most = own.memory >= budget() / 2;
    if (sized.ok() && (is_most || sized->longest_sample >= longest)) {
      sized_ = *sized;
      limit_ahead(sized_, needs.seams, needs.stream);
      break;
    }
    if (is_most) {
      return Error{sized.error().code, fmt::format("a loader may take half of what host \"{}\" has, {}: {}", host_,
                                                   format_bytes(budget()), sized.error().message)};
    }
    own.memory = std::min(own.memory * 2, budget() / 2);
  }
  const MemoryPlan& memory = sized_.memory;
  arena_options_ = arena_options(needs.source.size(), memory);
  // Batches that the caller holds become this process's own where it writes to them.
  const Bytes written =
      needs.options.held_batches * Ring::region_bytes(ring_options(needs.chain, needs.stream, needs.source, 1));
  const Bytes private_share = memory.scratch + memory.bounce + written + plan_bytes_;
  FORELOAD_TRY(member_->reserve_more(private_share));
  share_ = private_share;
  return {};
}

Status HostSeat::open_homes(const Needs& needs) {
  const std::uint64_t samples = needs.source.size();
  // Of the ranks of this machine all will come; of other jobs nobody knows.
  const Bytes each = sized_.budget + desk_bytes_ + plan_bytes_;
  const Bytes ranks = learners_here(needs.options) * each;
  const Bytes streams = std::max(ranks, std::min(kStreams * each, budget() / 2));
  const Bytes all = needs.source.total_bytes() + samples * 16;
  const Bytes table = SharedArena::table_bytes(samples);
  const Bytes left = budget() - std::min(budget(), streams + table + board_bytes(samples));
  const SharedArenaOptions homes{.samples = samples, .homes = whole_pages(std::min(all, left))};
  const auto fill = [&](const SharedMemory& memory) -> Status {
    FORELOAD_TRY(memory.reserve(0, table));
    check_promise(homes.homes);
    HomesOrder order(needs.stream, job_);
    SharedArena::format(
        memory.bytes(), homes, [&] { return order.next(); }, [&](SampleId id) { return needs.source.length(id); });
    return {};
  };
  const PeerKey peers = job_.plans ? job_.key : PeerKey{needs.source.fingerprint(), needs.source.validators(), 0};
  const ObjectKey key = arena_key(peers);
  FORELOAD_ASSIGN(
      homes_,
      member_->open(
          {.key = key, .bytes = SharedArena::region_bytes(homes), .any_size = true, .reserve = table, .fill = fill}));
  const std::span<std::byte> bytes = homes_->memory().bytes();
  const SharedArenaOptions made{.samples = samples, .homes = bytes.size() - std::min(table, bytes.size())};
  FORELOAD_ASSIGN(arena_, SharedArena::open(bytes, made, member_->id(),
                                            [this](MemberId id) { return member_->control().is_alive(id); }));
  return {};
}

// The card says half of the memory; where batches or samples are large, they leave less.
void HostSeat::check_promise(Bytes room) {
  if (!job_.plans) return;
  const Bytes promised = job_.plans->assignment().placement().bytes(job_.self, HomeTier::kMemory);
  if (promised <= room) return;
  warn(
      fmt::format("the other hosts count on {} of samples in the memory of this one, and beside its batches {} are "
                  "left: the rest is read from the source. Give the host more memory (--memory), or smaller batches",
                  format_bytes(promised), format_bytes(room)));
}

Bytes HostSeat::board_bytes(std::uint64_t samples) const {
  if (job_.disk_each == 0) return 0;
  return DiskBoard::region_bytes(samples, job_.plans->assignment().roster().hosts()[job_.self].learners);
}

// The homes on the host's disks are dealt to its learners, so that all have as many bytes.
Status HostSeat::open_disks(const Needs& needs) {
  const std::uint64_t samples = needs.source.size();
  const Bytes bytes = board_bytes(samples);
  if (bytes == 0) return {};
  const Roster& roster = job_.plans->assignment().roster();
  std::vector<Bytes> dealt(roster.hosts()[job_.self].learners);
  const auto home = [&](SampleId id) -> std::optional<DiskBoard::Seat> {
    if (!job_.is_on_disk_here(id)) return std::nullopt;
    const auto least = std::ranges::min_element(dealt);
    *least += needs.source.length(id);
    return static_cast<DiskBoard::Seat>(least - dealt.begin());
  };
  const auto fill = [&](const SharedMemory& memory) -> Status {
    FORELOAD_TRY(memory.reserve(0, bytes));
    DiskBoard::format(memory.bytes(), samples, static_cast<std::uint32_t>(dealt.size()), now(), home);
    return {};
  };
  FORELOAD_ASSIGN(disks_, member_->open({.key = disks_key(job_.key), .bytes = bytes, .reserve = bytes, .fill = fill}));
  const auto is_alive = [this](MemberId id) { return member_->control().is_alive(id); };
  FORELOAD_ASSIGN(DiskBoard board, DiskBoard::open(disks_->memory().bytes(), is_alive));
  if (board.samples() != samples || board.seats() != dealt.size()) {
    return Error{Code::kInvalid, "the host's list of its disks was made for another dataset"};
  }
  disk_seat_.emplace(std::move(board), needs.options.rank - roster.first_rank(job_.self));
  return {};
}

void HostSeat::sit(TierStack& tiers) {
  DiskTier* disk = tiers.disk();
  disk_seat_->sit(member_->id(), disk != nullptr ? &disk->store() : nullptr);
  tiers.share_disks(&*disk_seat_);
  if (disk != nullptr) return;
  warn(
      fmt::format("the other hosts count on {} of disk here, and this learner has no disk cache (disk, --disk): what "
                  "would be there is read from the source",
                  format_bytes(job_.disk_each)));
}

Bytes HostSeat::homes_capacity() const {
  return arena_ ? arena_->end() - SharedArena::table_bytes(arena_options_.samples) : 0;
}

Status HostSeat::open_stream(const Needs& needs) {
  card_ = {.ring = ring_options(needs.chain, needs.stream, needs.source, sized_.memory.slots),
           .arena = Arena::region_bytes(arena_options_),
           .seed = needs.options.seed,
           .positions = needs.stream.schedule().size(),
           .homes = homes_ ? homes_->id() : 0,
           .rank = needs.options.rank,
           .world = needs.options.world,
           .content = content_of(needs.options, needs.source, needs.stream, needs.chain_options),
           .desk = desk_bytes_,
           .peers = job_.key,
           .chain = needs.chain_options};
  std::random_device random;
  const ObjectKey key{ObjectKey::Kind::kRing, card_.content[0], std::uint64_t{random()} << 32 | random()};
  const Bytes bytes = card_.region_bytes();
  const auto fill = [&](const SharedMemory& memory) -> Status {
    FORELOAD_TRY(memory.reserve(0, bytes, share_));
    FORELOAD_ASSIGN(Region transit,
                    Region::map_file(memory.file(), StreamCard::kBytes, card_.arena, "bytes in transit"));
    FORELOAD_ASSIGN(Region batches,
                    Region::map_file(memory.file(), card_.ring_offset(), card_.ring_bytes(), "the batches"));
    own_arena_ = Arena::create(arena_options_, std::move(transit));
    FORELOAD_ASSIGN(Region view,
                    Region::map_copy(memory.file(), card_.ring_offset(), card_.ring_bytes(), "the batches"));
    own_ring_ = Ring::create(card_.ring, std::move(batches));
    own_ring_->set_view(std::move(view));
    if (card_.desk > 0) desk_.emplace(memory.bytes().subspan(card_.desk_offset(), card_.desk));
    return write_card(card_, memory.bytes());
  };
  FORELOAD_ASSIGN(stream_, member_->open({.key = key, .bytes = bytes, .reserve = bytes, .fill = fill}));
  // Batches that somebody keeps keep the ring when the loader is closed: then its memory still counts.
  own_ring_->set_member(member_->id(), &member_->control().work_signal(),
                        [member = member_, kept = stream_](MemberId id) { return member->control().is_alive(id); });
  company_.emplace(member_, stream_->id(), card_);
  return {};
}

std::optional<std::string> HostSeat::take_warning() {
  MutexLock lock(mutex_);
  if (warnings_.empty()) return std::nullopt;
  std::string text = std::move(warnings_.front());
  warnings_.pop_front();
  return text;
}

void HostSeat::warn(std::string text) {
  MutexLock lock(mutex_);
  warnings_.push_back(std::move(text));
}

Status HostSeat::serve(TierStack& tiers, Ring& ring) {
  ring_ = &ring;
  if (arena_) {
    tiers.share_homes(arena_.get());
    arena_->on_wanted([&ring] { ring.wake_feeder(); });
  }
  if (disk_seat_) sit(tiers);
  if (desk_) ask_peers(tiers);
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-seat", [this, &tiers, &ring] { run(tiers, ring); }));
  threads_.push_back(std::move(thread));
  return {};
}

// By the fetcher's thread. Nobody waits for a dead one, and asking whether it lives is a system call.
bool HostSeat::agent_lives() {
  const Time time = now();
  if (time < agent_.look_again) return agent_.lives;
  agent_ = {!job_.board || job_.board->has_agent(member_->control()), time + kLookForAgent};
  return agent_.lives;
}

void HostSeat::ask_peers(TierStack& tiers) {
  desk_->begin([this](MemberId id) { return member_->control().is_alive(id); });
  tiers.use_peers({.desk = &*desk_,
                   .home = [this](SampleId id) { return agent_lives() ? job_.home_elsewhere(id) : std::nullopt; },
                   .is_kept_here = [this](SampleId id) { return job_.is_in_memory_here(id); },
                   .asked = [this] { member_->control().peer_signal().raise(); }});
}

void HostSeat::stop() {
  if (disk_seat_) disk_seat_->leave();
  if (threads_.empty()) return;
  stopping_ = true;
  ring_->wake_feeder();
  threads_.clear();
}

// Learners that want something of this one's disk are not heard: they are looked for.
void HostSeat::run(TierStack& tiers, Ring& ring) {
  std::uint32_t seen = ring.feeder_signal() - 1;
  while (!stopping_) {
    const bool heard = std::exchange(seen, ring.feeder_signal()) != seen;
    if (arena_ && !refused_ && arena_->wanted() > arena_->reserved()) grow();
    if (heard || !disk_seat_ || disk_seat_->has_wanted()) tiers.wake();
    if (const auto text = standby_ ? standby_->look(ring, now()) : std::nullopt) warn(*text);
    if (standby_ && standby_->has_begun()) standby_.reset();
    Time until = standby_ ? standby_->next_look() : kNever;
    if (disk_seat_) until = std::min(until, now() + kLookAtDisks);
    if (look_at_desks()) until = std::min(until, now() + kLookAtDesks);
    if (!stopping_) ring.wait_as_feeder(seen, until);
  }
}

void HostSeat::watch(const std::shared_ptr<LeaseDesk>& desk) {
  {
    MutexLock lock(mutex_);
    desks_.push_back(desk);
  }
  if (ring_ != nullptr) ring_->wake_feeder();
}

// True: there are some, to be looked at again.
bool HostSeat::look_at_desks() {
  std::vector<std::shared_ptr<LeaseDesk>> desks;
  {
    MutexLock lock(mutex_);
    std::erase_if(desks_, [](const auto& desk) { return desk.expired(); });
    for (const auto& desk : desks_) desks.push_back(desk.lock());
  }
  std::erase(desks, nullptr);
  for (const auto& desk : desks) desk->keep_if_dismissed();
  return !desks.empty();
}

// What members may take beside shared memory, and may not have touched yet.
Bytes HostSeat::promised() const {
  Bytes bytes = 0;
  for (const MemberInfo& member : member_->control().members()) bytes += std::min(member.reserved, budget());
  return bytes;
}

// Several members may do this at the same time: each step says how far it should be, whoever comes first.
void HostSeat::grow() {
  while (!stopping_ && arena_->wanted() > arena_->reserved()) {
    const Bytes from = arena_->reserved();
    const Bytes to = std::min(whole_pages(arena_->end()), from + kExtent);
    if (to <= from) return;
    Status grown = member_->control().grow(homes_->id(), to);
    if (grown.ok()) grown = homes_->memory().reserve(from, to - from, promised());
    if (!grown.ok()) {
      refused_ = grown.error().code == Code::kNoMemory;  // otherwise when somebody asks again
      if (!refused_) return;
      arena_->end_growth();
      return warn(
          fmt::format("the cache of host \"{}\" ends at {}: {}", host_, format_bytes(from), grown.error().message));
    }
    arena_->reserved_to(to);
  }
}

}  // namespace foreload
