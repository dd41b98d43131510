// MPI's thread looks around all the time while something moves, then with growing pauses up to two milliseconds: that
// is how long another host's read waits at most where the network can not read memory without this process. Such a host
// asks for hurry, and for the next moments there are no pauses.
#include "peers/peers_mpi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "peers/mpi_job.h"
#include "peers/mpi_reads.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kBusy = 100us;  // after something moved
constexpr Duration kShortPause = 20us;
constexpr Duration kLongPause = 2ms;
constexpr Duration kLook = 1ms;  // for what other hosts have to do
constexpr Duration kFarewell = 5s;
constexpr Duration kProbeTime = 2s;

}  // namespace

// MPI's thread, and what only it touches.
class MpiPeers::Worker {
 public:
  explicit Worker(MpiDesk& desk) : desk_(desk) {}
  ~Worker() {
    if (thread_) (void)desk_.call([this] { stopping_ = true; });
  }
  Status start() {
    FORELOAD_ASSIGN(Thread thread, Thread::start("foreload-mpi", [this] { run(); }));
    thread_.emplace(std::move(thread));
    const bool runs = desk_.call([] {});
    return runs ? Status() : begun_;
  }
  MpiJob& job() { return *job_; }  // in calls
  MpiReads& reads() { return *reads_; }

 private:
  void run() {
    auto job = MpiJob::start();
    if (!job.ok()) {
      begun_ = job.error();
      return desk_.close();
    }
    job_ = std::move(*job);
    reads_ = std::make_unique<MpiReads>(*job_, desk_);
    while (!stopping_) {
      const std::uint32_t seen = desk_.poked();
      bool moved = desk_.serve_calls();
      moved = job_->poll() || moved;
      moved = reads_->step() || moved;
      rest(moved, seen);
    }
    desk_.close();
    if (leave()) return;
    // Gets may still write to these.
    (void)reads_.release();
    (void)job_.release();
    desk_.keep_pieces();
  }

  bool leave() {
    const Time until = now() + kFarewell;
    reads_->drain();
    while (reads_->flying() > 0 && now() < until) {
      if (!reads_->step() && !job_->poll()) std::this_thread::sleep_for(kLook);
    }
    return reads_->flying() == 0 && job_->leave(until);
  }

  void rest(bool moved, std::uint32_t seen) {
    const Time time = now();
    if (moved) {
      busy_until_ = time + kBusy;
      pause_ = kShortPause;
      return;
    }
    reads_->hurry(time);
    if (time < job_->hurried_until() || (reads_->waits() && time < busy_until_)) return;
    desk_.rest(seen, time + pause_);
    pause_ = std::min(2 * pause_, kLongPause);
  }

  MpiDesk& desk_;
  std::unique_ptr<MpiJob> job_;
  std::unique_ptr<MpiReads> reads_;
  Status begun_{};
  bool stopping_ = false;
  Time busy_until_{};
  Duration pause_ = kShortPause;
  std::optional<Thread> thread_;
};

Result<std::unique_ptr<MpiPeers>> MpiPeers::open() {
  std::unique_ptr<MpiPeers> peers(new MpiPeers);
  peers->worker_ = std::make_unique<Worker>(*peers->desk_);
  FORELOAD_TRY(peers->worker_->start());
  peers->in_mpi([&] {
    peers->host_ = peers->worker_->job().host();
    peers->hosts_ = peers->worker_->job().hosts();
    peers->neighbours_ = peers->worker_->job().neighbours();
    peers->healths_.resize(peers->hosts_);
  });
  return peers;
}

MpiPeers::~MpiPeers() = default;

Result<std::vector<std::string>> MpiPeers::exchange(const std::string& mine, Time until,
                                                    const std::function<bool()>& stop) {
  std::vector<std::string> all;
  in_mpi([&] { worker_->job().say(mine); });
  for (bool ended = false; !ended;) {
    if (now() >= until) return Error{Code::kIo, "not all processes of the MPI job came to exchange what they are"};
    if (stop()) return Error{Code::kCancelled, "stopped while the agents of the MPI job meet"};
    std::this_thread::sleep_for(kLook);
    in_mpi([&] { ended = worker_->job().hear(all); });
  }
  return all;
}

Status MpiPeers::expose(const PeerKey& key, std::span<const std::byte> memory, std::uint64_t samples) {
  Status status;
  in_mpi([&] { status = worker_->job().expose(key, memory, samples); });
  return status;
}

bool MpiPeers::withdraw(const PeerKey& key, Time until) {
  for (;;) {
    bool gone = false;
    in_mpi([&] { gone = worker_->job().withdraw(key); });
    if (gone || now() >= until) return gone;
    std::this_thread::sleep_for(kLook);
  }
}

std::size_t MpiPeers::unsent() {
  std::size_t notes = 0;
  in_mpi([&] { notes = worker_->job().unsent(); });
  return notes;
}

void MpiPeers::fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) {
  FORELOAD_CHECK(host < hosts_, "the roster has the job's hosts");
  if (wants.empty()) return;
  const Time time = now();
  const PeerHealth::Advice advice = healths_[host].advise(time);
  if (advice != PeerHealth::Advice::kUse) {
    for (const PeerWant& want : wants) unasked_.push_back({.token = want.token, .result = PeerResult::kUnreachable});
    if (advice == PeerHealth::Advice::kProbe) probe(host, key, wants[0].id);
    return;
  }
  asks_.clear();
  for (const PeerWant& want : wants) {
    pending_[++serials_] = {.host = host, .into = want.into, .token = want.token, .begun = time, .deadline = deadline};
    asks_.push_back(
        {.serial = serials_, .host = host, .key = key, .id = want.id, .into = want.into, .deadline = deadline});
  }
  next_deadline_ = std::min(next_deadline_, deadline);
  desk_->ask(asks_);
}

// Reads the sample's slot, and nothing else: with no room for its bytes it ends there.
void MpiPeers::probe(HostIndex host, const PeerKey& key, SampleId id) {
  const Time time = now();
  pending_[++serials_] = {.host = host, .begun = time, .deadline = time + kProbeTime, .probe = true};
  next_deadline_ = std::min(next_deadline_, time + kProbeTime);
  const MpiAsk ask{.serial = serials_, .host = host, .key = key, .id = id, .deadline = time + kProbeTime};
  desk_->ask({&ask, 1});
}

// What the end of a want or a probe says about its host. A deadline that was over when it was set says nothing.
void MpiPeers::note(const Pending& want, PeerResult result) {
  PeerHealth& health = healths_[want.host];
  const bool silent = result == PeerResult::kUnreachable;
  if (want.probe && silent) return health.on_silence(now());
  if (want.probe) return health.on_hello(0, now());
  if (silent && want.begun < want.deadline) health.on_failed(want.begun, now());
  if (result == PeerResult::kHere) health.on_fetched(want.begun);
}

void MpiPeers::wait(std::vector<PeerEnd>& ends, Time until) {
  const std::size_t before = ends.size();
  ends.insert(ends.end(), unasked_.begin(), unasked_.end());
  unasked_.clear();
  for (;;) {
    const std::uint32_t seen = desk_->landed();
    desk_->take(landings_);
    for (const MpiLanding& landing : landings_) land(landing, ends);
    landings_.clear();
    expire(ends);
    if (woken_.exchange(false) || ends.size() > before || now() >= until) return;
    desk_->wait_landed(seen, std::min(until, next_deadline_));
  }
}

void MpiPeers::wake() {
  woken_ = true;
  desk_->wake();
}

void MpiPeers::land(const MpiLanding& landing, std::vector<PeerEnd>& ends) {
  const auto found = pending_.find(landing.serial);
  if (found != pending_.end()) {
    const Pending& want = found->second;
    if (!landing.bytes.empty()) {
      FORELOAD_CHECK(landing.at + landing.bytes.size() <= want.into.size(), "no more is read than was asked for");
      std::memcpy(want.into.data() + landing.at, landing.bytes.data(), landing.bytes.size());
    }
    if (landing.last) {
      const PeerResult result = result_of(want, landing);
      note(want, result);
      if (!want.probe) ends.push_back({.token = want.token, .result = result});
      pending_.erase(found);
    }
  }
  if (!landing.bytes.empty()) desk_->give_back(landing.bytes);
}

PeerResult MpiPeers::result_of(const Pending& want, const MpiLanding& landing) {
  if (landing.result != PeerResult::kHere || hash_bytes(want.into) == landing.hash) return landing.result;
  warn_once(want.host, "a sample's bytes do not have their hash: its memory or the network is damaged");
  return PeerResult::kWrong;
}

// Ends what is late.
void MpiPeers::expire(std::vector<PeerEnd>& ends) {
  const Time time = now();
  if (time < next_deadline_) return;
  next_deadline_ = kNever;
  std::erase_if(pending_, [&](const auto& each) {
    const Pending& want = each.second;
    if (time < want.deadline || !cancel(each.first, want.host)) {
      next_deadline_ = std::min(next_deadline_, std::max(want.deadline, time + kLook));
      return false;
    }
    warn_once(want.host, "it did not answer in time");
    note(want, PeerResult::kUnreachable);
    if (!want.probe) ends.push_back({.token = want.token, .result = PeerResult::kUnreachable});
    return true;
  });
}

// Only a neighbour's samples are written to where they belong by MPI's thread; it is asked for nobody else's sake, so
// that a deadline holds whatever MPI does.
bool MpiPeers::cancel(std::uint64_t serial, HostIndex host) {
  bool done = true;
  if (neighbours_[host]) in_mpi([&] { done = worker_->reads().cancel(serial); });
  return done;
}

void MpiPeers::warn_once(HostIndex host, const char* what) {
  if (!warned_.insert({host, what}).second) return;
  desk_->warn(fmt::format("peer {} (MPI rank): {}; its samples come from the source", host, what));
}

}  // namespace foreload
