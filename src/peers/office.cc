#include "peers/office.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/futex.h"

namespace foreload {
namespace {

constexpr Duration kDeadline = PeerDesk::kPatience * 9 / 10;  // later nobody waits for it any more
constexpr Duration kLook = std::chrono::milliseconds(200);
constexpr Duration kSlow = std::chrono::milliseconds(500);  // to find out that a peer does not have it
constexpr Duration kFirstRest = std::chrono::seconds(1);
constexpr Duration kLongestRest = std::chrono::seconds(30);
constexpr Duration kStart = std::chrono::seconds(30);  // hosts do not begin at the same time

}  // namespace

Result<std::unique_ptr<Office>> Office::open(const Inventory& inventory, PeerTransport& transport, Hosts hosts) {
  std::unique_ptr<Office> office(new Office(inventory, transport, std::move(hosts)));
  Office* self = office.get();
  FORELOAD_ASSIGN(Thread worker, Thread::start("fl-office", [self] { self->run(); }));
  office->threads_.push_back(std::move(worker));
  FORELOAD_ASSIGN(Thread bell, Thread::start("fl-bell", [self] { self->listen(); }));
  office->threads_.push_back(std::move(bell));
  return office;
}

Office::~Office() {
  stopping_ = true;
  WorkSignal& signal = inventory_.member().control().peer_signal();
  signal.count.fetch_add(1);
  futex_wake_all(signal.count);
  transport_.wake();
  threads_.clear();
}

std::vector<std::string> Office::take_warnings() {
  std::vector<std::string> all = transport_.take_warnings();
  MutexLock lock(mutex_);
  all.insert(all.end(), warnings_.begin(), warnings_.end());
  warnings_.clear();
  return all;
}

// A transport is waited for by its own means, and desks ring in shared memory: this thread passes that on.
void Office::listen() {
  WorkSignal& signal = inventory_.member().control().peer_signal();
  while (!stopping_) {
    const std::uint32_t seen = signal.count.load(std::memory_order_seq_cst);
    transport_.wake();
    signal.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!stopping_) futex_wait(signal.count, seen, now() + kLook);
    signal.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
}

// What is under way when it ends is waited for: the transport writes into memory of the streams until then.
void Office::run() {
  while (!stopping_ || !pending_.empty()) {
    if (!stopping_) take_requests();
    take_ends(now() + kLook);
  }
}

void Office::take_requests() {
  const MemberId self = inventory_.member().id();
  const auto lists = inventory_.lists();
  const Time time = now();
  for (const auto& stream : lists->streams) {
    std::map<HostIndex, std::vector<PeerWant>> batches;
    while (const auto asked = stream->desk.claim(self)) {
      // A host that is none, or this one: whoever wrote that has another roster.
      const bool is_peer = asked->host < records_.size() && asked->host != hosts_.self;
      if (!is_peer || time < records_[asked->host].rest_until) {
        stream->desk.end(*asked, false);
        stream->ring->wake_feeder();
        continue;
      }
      const std::uint64_t token = next_token_++;
      pending_.emplace(token, Pending{stream, *asked, time});
      batches[asked->host].push_back({.id = asked->id, .into = asked->into, .token = token, .crop = asked->crop});
    }
    for (const auto& [host, wants] : batches) {
      transport_.fetch(host, stream->card.peers, wants, now() + kDeadline);
    }
  }
}

void Office::take_ends(Time until) {
  ends_.clear();
  transport_.wait(ends_, until);
  std::set<Ring*> touched;
  const Time time = now();
  for (const PeerEnd& end : ends_) {
    const auto found = pending_.find(end.token);
    if (found == pending_.end()) continue;
    const Pending& pending = found->second;
    pending.stream->desk.end(pending.asked, end.result == PeerResult::kHere, end.cut);
    note(pending, end.result, time);
    touched.insert(pending.stream->ring.get());
  }
  for (Ring* ring : touched) ring->wake_feeder();
  for (const PeerEnd& end : ends_) pending_.erase(end.token);
}

// A host whose trainers are slow to read what is wanted of it, or stand still, answers late that it has not got it. It
// is left alone for a while, longer each time: what is under way meanwhile is one failure. The transport knows the
// rest.
void Office::note(const Pending& pending, PeerResult result, Time now) {
  Record& record = records_[pending.asked.host];
  if (result == PeerResult::kHere) record = {.warned = record.warned};
  if (result == PeerResult::kAbsent) record.refused_since = {};
  if (result == PeerResult::kRefused) note_refusal(pending.asked.host, now);
  if (result != PeerResult::kAbsent || now - pending.since < kSlow || now < record.rest_until) return;
  record.rest = std::clamp(2 * record.rest, kFirstRest, kLongestRest);
  record.rest_until = now + record.rest;
}

// A host that refuses for long does something else than this one.
void Office::note_refusal(HostIndex host, Time now) {
  Record& record = records_[host];
  if (record.refused_since == Time{}) record.refused_since = now;
  if (record.warned || now - record.refused_since < kStart) return;
  record.warned = true;
  MutexLock lock(mutex_);
  warnings_.push_back(fmt::format(
      "peer {}: no learner there has had this dataset, with this seed, for {} s: it reads other files, plans "
      "otherwise, or has not begun; its samples come from the source",
      hosts_.names[host], kStart / std::chrono::seconds(1)));
}

}  // namespace foreload
