#include "host/workshop.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/futex.h"
#include "policy/prep_order.h"

namespace foreload {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);
constexpr Duration kAskAgain = std::chrono::seconds(2);  // for a stream that could not be had

}  // namespace

struct Workshop::Helped {
  ObjectId id = 0;
  std::shared_ptr<SharedObject> memory;
  std::shared_ptr<SharedObject> homes;  // may be null
  Chain chain;
  std::shared_ptr<Ring> ring;
  PrepStream stream;
  std::atomic<bool> too_large{false};  // it has samples for which this process has not the memory

  Helped(ObjectId object, std::shared_ptr<SharedObject> own, std::shared_ptr<SharedObject> shared, Chain compiled,
         std::shared_ptr<Ring> batches)
      : id(object),
        memory(std::move(own)),
        homes(std::move(shared)),
        chain(std::move(compiled)),
        ring(std::move(batches)),
        stream{.ring = *ring, .chain = chain} {}
};

Result<std::shared_ptr<Workshop>> Workshop::open(std::shared_ptr<Member> member, const WorkshopOptions& options) {
  std::shared_ptr<Workshop> workshop;
  {
    MutexLock lock(member->mutex_);
    workshop = member->workshop_.lock();
    if (workshop) {
      workshop->scratch_.grow_to(ScratchPool(options.scratch, std::max(options.threads, 1u)).largest());
    } else {
      workshop.reset(new Workshop(member, options));
      member->workshop_ = workshop;
    }
  }
  if (!options.standby) FORELOAD_TRY(workshop->employ(options.threads));
  return workshop;
}

Workshop::Workshop(std::shared_ptr<Member> member, const WorkshopOptions& options)
    : member_(std::move(member)),
      scratch_(options.scratch, std::max(options.threads, 1u)),
      preparer_(*this, scratch_, nullptr),
      places_(options.threads),
      streams_(std::make_shared<const Streams>()) {}

Status Workshop::employ(unsigned threads) {
  MutexLock lock(employing_);
  if (workers_ > 0) return {};
  if (threads_.empty()) {
    FORELOAD_ASSIGN(Thread list, Thread::start("fl-streams", [this] { keep_list(); }));
    threads_.push_back(std::move(list));
  }
  for (unsigned i = 0; i < std::min(threads, most()); ++i) {
    const auto body = [this, i] { preparer_.run(static_cast<std::uint16_t>(i)); };
    FORELOAD_ASSIGN(Thread worker, Thread::start(fmt::format("fl-prep-{}", i), body));
    threads_.push_back(std::move(worker));
    ++workers_;
    member_->control().add_workers(1);
  }
  return {};
}

Workshop::~Workshop() {
  stopping_ = true;
  scratch_.stop();
  for (WorkSignal* signal : {&member_->control().work_signal(), &member_->control().core_signal()}) {
    signal->count.fetch_add(1);
    futex_wake_all(signal->count);
  }
  member_->control().announce();
  threads_.clear();
  member_->control().add_workers(-static_cast<int>(workers_.load()));
  for (unsigned worker = 0; worker < places_.size(); ++worker) rest(worker);
}

std::shared_ptr<const Workshop::Streams> Workshop::streams() const {
  MutexLock lock(mutex_);
  return streams_;
}

// A core is taken only when there is something to do, and kept until there is nothing.
bool Workshop::has_core(unsigned worker) {
  Control& control = member_->control();
  Place& place = places_[worker];
  const Time current = now();
  if (place.core && control.renew(*place.core, current)) return true;
  place.core_seen = control.core_signal().count.load(std::memory_order_seq_cst);
  place.core = control.take_core(current);
  place.lacks_core = !place.core;
  return place.core.has_value();
}

void Workshop::rest(unsigned worker) {
  std::optional<Control::Core>& core = places_[worker].core;
  if (core) member_->control().give_back(*core);
  core.reset();
}

// The streams whose learners will run out first come first; what another worker was quicker at is passed over.
std::optional<PrepTask> Workshop::claim(unsigned worker) {
  struct Candidate {
    PrepNeed need{};
    const std::shared_ptr<Helped>* stream = nullptr;
  };
  const auto list = streams();
  const Time current = now();
  std::vector<Candidate> candidates;
  for (const auto& stream : *list) {
    const auto number = stream->too_large ? std::nullopt : stream->ring->soonest();
    if (!number) continue;
    candidates.push_back({need_of(stream->ring->pace(), *number, current), &stream});
  }
  std::ranges::sort(candidates, {}, &Candidate::need);
  for (const Candidate& candidate : candidates) {
    if (stopping_ || !has_core(worker)) return std::nullopt;
    const auto item = (*candidate.stream)->ring->claim();
    if (!item) continue;
    places_[worker].stream = *candidate.stream;
    return PrepTask{&(*candidate.stream)->stream, *item};
  }
  return std::nullopt;
}

void Workshop::settled(unsigned worker, const PrepTask& task, bool bad) {
  Ring& ring = task.stream->ring;
  if (bad || ring.take_call()) ring.wake_feeder();
  places_[worker].stream.reset();
}

std::uint32_t Workshop::signal() const {
  return member_->control().work_signal().count.load(std::memory_order_seq_cst);
}

bool Workshop::wait(unsigned worker, std::uint32_t seen, Time until) {
  rest(worker);
  // Who lacks a core is not to be woken by every sample that is ready. Cores of the stopped become free without a word.
  const bool lacks_core = std::exchange(places_[worker].lacks_core, false);
  WorkSignal& signal = lacks_core ? member_->control().core_signal() : member_->control().work_signal();
  signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (!stopping_ && lacks_core) futex_wait(signal.count, places_[worker].core_seen, std::min(until, now() + kLook));
  if (!stopping_ && !lacks_core) futex_wait(signal.count, seen, until);
  signal.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return !stopping_;
}

void Workshop::keep_list() {
  while (!stopping_) {
    const std::uint32_t seen = member_->control().version();
    update_list();
    if (!stopping_) member_->control().wait_for_version(seen, now() + kLook);
  }
}

void Workshop::update_list() {
  const auto before = streams();
  auto after = std::make_shared<Streams>();
  const std::uint32_t version = member_->control().version();
  for (const ObjectInfo& object : member_->control().objects()) {
    if (object.key.kind != ObjectKey::Kind::kRing || object.dropped || object.users == 0) continue;
    const auto known = std::ranges::find(*before, object.id, [](const auto& stream) { return stream->id; });
    if (known != before->end()) {
      after->push_back(*known);
      continue;
    }
    const auto refused = refused_.find(object.id);
    if (refused != refused_.end() && refused->second.version == version && now() < refused->second.until) continue;
    auto attached = attach(object);
    if (attached.ok()) {
      after->push_back(std::move(*attached));
    } else {
      refused_[object.id] = {version, now() + kAskAgain};
    }
  }
  if (refused_.size() > Control::kMostObjects) refused_.clear();
  if (*after == *before) return;
  {
    MutexLock lock(mutex_);
    streams_ = std::move(after);
  }
  member_->control().work_signal().raise();  // what a new stream has ready was announced before it was on the list
}

Result<std::shared_ptr<Workshop::Helped>> Workshop::attach(const ObjectInfo& object) {
  FORELOAD_ASSIGN(auto memory, member_->fetch(object.id));
  const std::span<std::byte> bytes = memory->memory().bytes();
  FORELOAD_ASSIGN(const StreamCard card, read_card(bytes, bytes.size()));
  FORELOAD_ASSIGN(Chain chain, Chain::compile(card.chain));
  if (chain.output().bytes() != card.ring.sample_bytes || chain.ragged_element() != card.ring.ragged_element ||
      chain.mixes() != card.ring.mixes) {
    return Error{Code::kInvalid, "the chain of a stream does not fit its ring"};
  }
  std::shared_ptr<SharedObject> homes;
  if (card.homes != 0) {
    FORELOAD_ASSIGN(homes, member_->fetch(card.homes));
  }
  FORELOAD_ASSIGN(Region region,
                  Region::map_file(memory->memory().file(), card.ring_offset(), card.ring_bytes(), "the batches"));
  auto ring = Ring::attach(card.ring, std::move(region));
  ring->set_member(member_->id(), &member_->control().work_signal());
  auto helped = std::make_shared<Helped>(object.id, memory, homes, std::move(chain), std::move(ring));
  helped->stream.memory = {bytes.subspan(StreamCard::kBytes, card.arena),
                           homes ? std::span<const std::byte>(homes->memory().bytes()) : std::span<const std::byte>()};
  helped->stream.seed = card.seed;
  helped->stream.positions = card.positions;
  helped->stream.serial = ++serial_;
  const bool own = (object.users >> member_->id().index & 1) != 0;
  if (!own) helped->stream.too_large = &helped->too_large;
  return helped;
}

}  // namespace foreload
