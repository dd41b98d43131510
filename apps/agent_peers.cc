// What stands first outlives what stands behind it: the office ends before the server, the server before the
// connections to others (its greetings use them), and all before the lists of what the host has.
#include "agent_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "host/roster_board.h"
#include "peers/arena_shelf.h"
#include "peers/credentials.h"
#include "peers/disk_shelf.h"
#include "peers/host_port.h"
#include "peers/inventory.h"
#include "peers/meet.h"
#include "peers/meeting.h"
#include "peers/noise_shelf.h"
#include "peers/office.h"
#include "peers/peer_rate.h"
#include "peers/peers_grpc.h"
#include "peers/places.h"
#include "serve/metrics_page.h"
#include "signals.h"

namespace foreload {
namespace {

constexpr Duration kPortWait = std::chrono::seconds(5);  // for a port that somebody else has
constexpr Duration kPortLook = std::chrono::milliseconds(100);

// The launcher's name of the job, so that two jobs on the same hosts are not taken for one.
std::string job_name(const Surroundings& around) {
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"}) {
    if (const auto value = around.variable(name)) return *value;
  }
  return "";
}

// What each rank may keep on disk. It must be the same when the agent is started again, so what is free does not
// matter: nine tenths of the file system, divided evenly.
Result<Bytes> disk_each(const AgentPeersOptions& options, std::uint32_t learners) {
  if (options.disk.empty() || learners == 0) return Bytes{0};
  if (options.disk_bytes > Roster::kMostBytes / learners) {
    return Error{Code::kInvalid, fmt::format("--disk-size {}: no disk has so much", options.disk_bytes)};
  }
  if (options.disk_bytes != 0) return options.disk_bytes;
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(options.disk);
  std::error_code missing;  // its last part may be, and is made later
  fs::space_info space = fs::space(folder, missing);
  if (missing) space = fs::space(folder.parent_path(), missing);
  if (missing) {
    return Error{Code::kInvalid, fmt::format("--disk {}: {}; name a folder of which at most the last part is missing",
                                             options.disk, missing.message())};
  }
  return Bytes{space.capacity} / learners / 10 * 9;
}

// Half of the host's memory is for homes: streams may have the rest.
Hello hello_of(const Places& places, std::string job, Bytes budget, Bytes disk) {
  std::random_device random;
  return {
      .nonce = std::uint64_t{random()} << 32 | random(),
      .hosts = static_cast<std::uint32_t>(places.addresses.size()),
      .job = std::move(job),
      .card = {
          .host = places.self, .learners = places.learners, .memory = budget / 2, .disk = disk, .name = places.name}};
}

// Of the host's memory, for samples between its disks and the network.
Bytes disk_room(Bytes budget) {
  constexpr Bytes kEnough = 256_MiB;
  return std::min(kEnough, budget / 32);
}

// The agent of a job that has just ended, or was started anew, leaves a second after its last member: this one waits.
template <typename Listen>
auto listen_patiently(Listen listen) {
  const Time until = now() + kPortWait;
  for (;;) {
    auto server = listen();
    if (server.ok() || server.error().code != Code::kIo || now() > until || caught_signal() != 0) return server;
    std::this_thread::sleep_for(kPortLook);
  }
}

class GrpcAgentPeers final : public AgentPeers {
 public:
  GrpcAgentPeers(std::shared_ptr<Member> member, RosterBoard board, Hello own)
      : member_(std::move(member)), board_(std::move(board)), self_(own.card.host), meeting_(std::move(own)) {}
  ~GrpcAgentPeers() override {
    stopping_ = true;
    threads_.clear();
    office_.reset();
    greeting_ = nullptr;
  }

  Status open(const Places& places, const std::optional<PeerCredentials>& credentials) {
    FORELOAD_ASSIGN(inventory_, Inventory::open(member_));
    if (meeting_.own().card.disk > 0) {
      const Bytes room = disk_room(member_->control().budget());
      FORELOAD_TRY(member_->reserve_more(room));
      FORELOAD_ASSIGN(disks_, DiskShelf::open(room));
    }
    shelf_.emplace(*inventory_, disks_.get());
    noise_.emplace(*shelf_);
    const auto greet = [this](const Hello& hello) {
      HelloAnswer answer = meeting_.greet(hello);
      GrpcPeers* peers = greeting_.load();
      const HostIndex host = hello.card.host;  // which is one of the job's, or it was refused
      if (answer.refusal.empty() && peers != nullptr && !peers->address(host).empty())
        peers->greeted(host, hello.nonce);
      return answer;
    };
    FORELOAD_ASSIGN(server_, listen_patiently([&] {
                      return GrpcServer::listen({.address = places.listen, .credentials = credentials}, *noise_, greet);
                    }));
    meeting_.served(server_->address());
    FORELOAD_ASSIGN(peers_, GrpcPeers::open({places.addresses, credentials, meeting_.own()}));
    greeting_ = peers_.get();
    FORELOAD_ASSIGN(Thread thread, Thread::start("fl-meeting", [this] { run(); }));
    threads_.push_back(std::move(thread));
    return {};
  }

  std::string address() const override { return meeting_.own().card.name; }

  std::vector<std::string> take_news() override {
    MutexLock lock(mutex_);
    return std::exchange(news_, {});
  }

  std::vector<std::string> take_warnings() override {
    std::vector<std::string> all = meeting_.take_warnings();
    MutexLock lock(mutex_);
    for (std::string& text : office_ ? office_->take_warnings() : peers_->take_warnings()) {
      all.push_back(std::move(text));
    }
    return all;
  }

  std::optional<Error> failure() const override {
    MutexLock lock(mutex_);
    return failure_;
  }

  std::string metrics() const override {
    MetricsPage page(member_->name().text());
    const std::vector<PeerCounts> counts = peers_->counts();
    const auto each = [&](std::string_view name, std::string_view help, auto value) {
      page.family(name, MetricKind::kCounter, help);
      for (const PeerCounts& peer : counts) {
        if (!peer.address.empty()) value(fmt::format(",peer=\"{}\"", metric_label(peer.address)), peer);
      }
    };
    each("foreload_peer_bytes_total", "Sample bytes that came from the peer.",
         [&](const std::string& labels, const PeerCounts& peer) {
           page.series(labels, static_cast<double>(peer.bytes));
         });
    each("foreload_peer_samples_total", "Samples that were asked of the peer, by how that ended.",
         [&](const std::string& labels, const PeerCounts& peer) {
           const auto end = [&](std::string_view how, std::uint64_t count) {
             page.series(fmt::format("{},end=\"{}\"", labels, how), static_cast<double>(count));
           };
           end("here", peer.samples);
           end("absent", peer.absent);
           end("refused", peer.refused);
           end("wrong", peer.wrong);
           end("unreachable", peer.unreachable);
         });
    page.family("foreload_peer_refused_calls_total", MetricKind::kCounter,
                "Calls of others that were not served, by why.");
    const GrpcRefusals refused = server_->refusals();
    const auto why = [&](std::string_view name, std::uint64_t count) {
      page.series(fmt::format(",why=\"{}\"", name), static_cast<double>(count));
    };
    why("stranger", refused.strangers);
    why("malformed", refused.malformed);
    why("version", refused.versions);
    why("unknown_plan", refused.unknown);
    why("hello", refused.hellos);
    return page.take();
  }

 private:
  void run() {
    const auto told = [this](const std::string& text) {
      board_.say(text);
      MutexLock lock(mutex_);
      news_.push_back(text);
    };
    auto met = meet(meeting_, *peers_, {.stop = [this] { return stopping_.load(); }, .told = told});
    Status begun = met.ok() ? begin(*met) : Status(met.error());
    if (begun.ok() || stopping_) return;
    board_.fail(begun.error().message);
    MutexLock lock(mutex_);
    failure_ = begun.error();
  }

  Status begin(const Met& met) {
    shelf_->begin(now());
    FORELOAD_TRY(board_.publish({met.roster, self_}));
    std::vector<std::string> names;
    for (const RosterHost& host : met.roster.hosts()) names.push_back(host.name);
    FORELOAD_ASSIGN(auto office, Office::open(*inventory_, *peers_, {names, self_}));
    MutexLock lock(mutex_);
    office_ = std::move(office);
    news_.push_back(
        fmt::format("{} hosts have met: {} learners, this is host {}", names.size(), met.roster.world(), self_));
    return {};
  }

  std::shared_ptr<Member> member_;
  RosterBoard board_;
  HostIndex self_;
  Meeting meeting_;
  std::unique_ptr<Inventory> inventory_;
  std::unique_ptr<DiskShelf> disks_;  // null: this host has no homes on disk
  std::optional<ArenaShelf> shelf_;
  std::optional<NoiseShelf> noise_;  // in front of it
  std::unique_ptr<GrpcPeers> peers_;
  std::atomic<GrpcPeers*> greeting_{nullptr};  // null: not open yet
  std::unique_ptr<GrpcServer> server_;
  mutable Mutex mutex_;
  std::unique_ptr<Office> office_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::string> news_ FORELOAD_GUARDED_BY(mutex_);
  std::optional<Error> failure_ FORELOAD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;  // one: it meets the others
};

Result<std::optional<PeerCredentials>> credentials_of(const std::string& folder) {
  if (folder.empty()) return std::optional<PeerCredentials>();
  FORELOAD_ASSIGN(PeerCredentials found, load_credentials(folder));
  return std::optional(std::move(found));
}

// Whoever measures may stand beside the job's hosts: then all of them are others.
Result<std::vector<std::string>> other_hosts(const std::string& peers) {
  auto places = find_places({.peers = peers == "auto" ? "" : peers, .learners = 1}, real_surroundings());
  if (places.ok() || peers == "auto") return places.ok() ? Result(std::move(places->addresses)) : places.error();
  std::vector<std::string> addresses;
  std::istringstream words(peers);
  for (std::string word; std::getline(words, word, ',');) {
    FORELOAD_ASSIGN(const HostPort one, HostPort::parse(word, kPeerPort));
    addresses.push_back(one.text());
  }
  return addresses;
}

}  // namespace

Result<MeasurePeers> open_peer_rate(const std::string& peers, const std::string& credentials) {
  FORELOAD_ASSIGN(const auto shown, credentials_of(credentials));
  FORELOAD_ASSIGN(auto addresses, other_hosts(peers));
  FORELOAD_ASSIGN(PeerRate rate, PeerRate::open(std::move(addresses), shown));
  const auto shared = std::make_shared<PeerRate>(std::move(rate));
  return MeasurePeers([shared](Bytes length, Duration time) { return shared->measure(length, time); });
}

Result<std::unique_ptr<AgentPeers>> open_agent_peers(std::shared_ptr<Member> member, const AgentPeersOptions& options) {
  const Surroundings around = real_surroundings();
  FORELOAD_ASSIGN(const Places places, find_places({.peers = options.peers == "auto" ? "" : options.peers,
                                                    .host = options.host,
                                                    .learners = options.learners,
                                                    .listen = options.listen},
                                                   around));
  FORELOAD_ASSIGN(const auto credentials, credentials_of(options.credentials));
  FORELOAD_ASSIGN(RosterBoard board, RosterBoard::post(member, places.addresses.size()));
  FORELOAD_ASSIGN(const Bytes each, disk_each(options, places.learners));
  const Hello own = hello_of(places, job_name(around), member->control().budget(), each * places.learners);
  auto peers = std::make_unique<GrpcAgentPeers>(std::move(member), std::move(board), own);
  FORELOAD_TRY(peers->open(places, credentials));
  return std::unique_ptr<AgentPeers>(std::move(peers));
}

}  // namespace foreload
