// Hosts are MPI's ranks, and their cards are exchanged once. Arenas are exposed while they are in the inventory; which
// samples they hold, streams that use them say.
#include "agent_mpi.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "host/roster_board.h"
#include "peers/inventory.h"
#include "peers/office.h"
#include "peers/peers_mpi.h"
#include "peers/wire.h"
#include "serve/metrics_page.h"

namespace foreload {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(100);
constexpr Duration kMeeting = std::chrono::minutes(10);
constexpr Duration kRelease = std::chrono::seconds(2);

Result<std::uint32_t> learners_of(const AgentPeersOptions& options) {
  if (options.learners) return *options.learners;
  for (const char* name : {"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE"}) {
    const char* text = std::getenv(name);
    const int count = text != nullptr ? std::atoi(text) : 0;
    if (count > 0) return static_cast<std::uint32_t>(count);
  }
  return Error{Code::kInvalid, "how many ranks train on this host is not known: say --learners"};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class MpiAgentPeers final : public AgentPeers {
 public:
  explicit MpiAgentPeers(std::shared_ptr<Member> member) : member_(std::move(member)) {}
  ~MpiAgentPeers() override {
    stopping_ = true;
    threads_.clear();
    {
      MutexLock lock(mutex_);
      office_.reset();
    }
    mpi_.reset();  // before the memory that others read
  }

  Status open(const AgentPeersOptions& options) {
    FORELOAD_ASSIGN(const std::uint32_t learners, learners_of(options));
    FORELOAD_ASSIGN(mpi_, MpiPeers::open());
    FORELOAD_ASSIGN(board_, RosterBoard::post(member_, mpi_->hosts()));
    FORELOAD_ASSIGN(inventory_, Inventory::open(member_));
    card_ = {.host = mpi_->host(),
             .learners = learners,
             .memory = member_->control().budget() / 2,
             .name = fmt::format("MPI rank {}", mpi_->host())};
    FORELOAD_ASSIGN(Thread thread, Thread::start("fl-meeting", [this] { run(); }));
    threads_.push_back(std::move(thread));
    return {};
  }

  std::string address() const override { return card_.name; }
  std::vector<std::string> take_news() override {
    MutexLock lock(mutex_);
    return std::exchange(news_, {});
  }
  std::vector<std::string> take_warnings() override {
    MutexLock lock(mutex_);
    std::vector<std::string> all = std::exchange(warnings_, {});
    for (std::string& text : office_ ? office_->take_warnings() : std::vector<std::string>()) {
      all.push_back(std::move(text));
    }
    return all;
  }
  std::optional<Error> failure() const override {
    MutexLock lock(mutex_);
    return failure_;
  }
  std::string metrics() const override { return ""; }

 private:
  void run() {
    const Status met = meet();
    if (!met.ok()) {
      board_->fail(met.error().message);
      MutexLock lock(mutex_);
      failure_ = met.error();
      return;
    }
    while (!stopping_) {
      const std::uint32_t seen = member_->control().version();
      expose();
      member_->control().wait_for_version(seen, now() + kLook);
    }
    for (const auto& [id, shown] : exposed_) (void)mpi_->withdraw(shown.key, now() + kRelease);
  }

  Status meet() {
    board_->say(fmt::format("waiting for the agents of all {} hosts of the MPI job", mpi_->hosts()));
    const std::string mine = text_of(encode(Hello{.hosts = mpi_->hosts(), .card = card_}));
    FORELOAD_ASSIGN(const auto texts, mpi_->exchange(mine, now() + kMeeting, [this] { return stopping_.load(); }));
    std::vector<RosterHost> hosts;
    std::vector<std::string> names;
    for (const std::string& text : texts) {
      const auto hello = parse_hello(std::as_bytes(std::span(text)));
      if (!hello || hello->card.host != hosts.size()) {
        return Error{Code::kMismatch, "an agent of the MPI job is of another version of foreload"};
      }
      hosts.push_back({.name = hello->card.name, .learners = hello->card.learners, .memory = hello->card.memory});
      names.push_back(hello->card.name);
    }
    FORELOAD_ASSIGN(Roster roster, Roster::create(std::move(hosts)));
    FORELOAD_TRY(board_->publish({roster, card_.host}));
    FORELOAD_ASSIGN(auto office, Office::open(*inventory_, *mpi_, {names, card_.host}));
    MutexLock lock(mutex_);
    office_ = std::move(office);
    news_.push_back(
        fmt::format("{} hosts have met: {} learners, this is host {}", names.size(), roster.world(), card_.host));
    return {};
  }

  // What a stream uses is shown to others, until it is gone.
  void expose() {
    const auto lists = inventory_->lists();
    for (const auto& stream : lists->streams) {
      const auto arena =
          std::ranges::find(lists->arenas, stream->card.homes, [](const auto& kept) { return kept->id(); });
      if (arena == lists->arenas.end() || exposed_.contains((*arena)->id())) continue;
      const std::span<const std::byte> memory = (*arena)->arena().memory();
      if (const Status shown = mpi_->expose(stream->card.peers, memory, (*arena)->samples()); !shown.ok()) {
        warn_once((*arena)->id(), shown.error());
        continue;
      }
      exposed_[(*arena)->id()] = {stream->card.peers, *arena};
    }
    std::erase_if(exposed_, [&](const auto& entry) {
      const bool is_kept = std::ranges::find(lists->arenas, entry.second.arena) != lists->arenas.end();
      return !is_kept && mpi_->withdraw(entry.second.key, now() + kRelease);
    });
  }

  // It is tried again: others may be withdrawn. kInvalid: the one before it has not been withdrawn yet.
  void warn_once(ObjectId arena, const Error& error) {
    if (error.code == Code::kInvalid || !told_.insert(arena).second) return;
    MutexLock lock(mutex_);
    warnings_.push_back(error.message);
  }

  struct Shown {
    PeerKey key{};
    std::shared_ptr<ShelvedArena> arena{};
  };

  std::shared_ptr<Member> member_;
  std::optional<RosterBoard> board_;
  PeerCard card_;
  std::unique_ptr<Inventory> inventory_;
  std::map<ObjectId, Shown> exposed_;
  std::set<ObjectId> told_;  // arenas that could not be
  std::unique_ptr<MpiPeers> mpi_;
  mutable Mutex mutex_;
  std::unique_ptr<Office> office_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::string> news_ FORELOAD_GUARDED_BY(mutex_);
  std::optional<Error> failure_ FORELOAD_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;  // one: it meets the others, and shows them what there is
};

}  // namespace

Result<std::unique_ptr<AgentPeers>> open_agent_mpi(std::shared_ptr<Member> member, const AgentPeersOptions& options) {
  auto peers = std::make_unique<MpiAgentPeers>(std::move(member));
  FORELOAD_TRY(peers->open(options));
  return std::unique_ptr<AgentPeers>(std::move(peers));
}

}  // namespace foreload
