// Fetches are sent by the caller's thread. From then on a call belongs to the thread of the queue, which copies what
// comes to where it is wanted, checks it, and hands over what has ended. Calls are kept in one table, so that all can
// be cancelled at the end; the queue is shut down when they are gone.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "peers/peers_grpc.h"
#include "peers/peers_grpc_calls.h"
#include "peers/refusals.h"
#include "policy/peer_health.h"

namespace foreload {
namespace {

constexpr Duration kProbeTime = std::chrono::seconds(2);
constexpr std::uint64_t kNobodyWaits = 0;  // ticket of a probe

void count(PeerCounts& counts, PeerResult result) {
  switch (result) {
    case PeerResult::kHere:
      ++counts.samples;
      break;
    case PeerResult::kAbsent:
      ++counts.absent;
      break;
    case PeerResult::kRefused:
      ++counts.refused;
      break;
    case PeerResult::kWrong:
      ++counts.wrong;
      break;
    case PeerResult::kUnreachable:
      ++counts.unreachable;
      break;
  }
}

}  // namespace

class GrpcPeers::Client final : public FetchCall::Listener, public GreetCall::Listener {
 public:
  ~Client() override;
  Status start(const GrpcPeersOptions& options);

  void fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline);
  void wait(std::vector<PeerEnd>& ends, Time until);
  void wake();
  std::vector<std::string> take_warnings();
  std::vector<PeerCounts> counts() const;
  Result<HelloAnswer> greet(HostIndex host, Time deadline);
  std::vector<Result<HelloAnswer>> greet_all(std::span<const HostIndex> hosts, Time deadline);
  void greeted(HostIndex host, std::uint64_t nonce);
  std::string address(HostIndex host);
  Status reach(HostIndex host, const std::string& address);

  void on_bad_bytes(FetchCall& call) override;
  void on_ends(FetchCall& call, std::vector<PeerEnd>& ends, Bytes bytes) override;
  void on_fetched(FetchCall& call, const FetchOutcome& outcome) override;
  void on_over(FetchCall& call) override { remove(call); }
  void on_greeted(GreetCall& call, Result<HelloAnswer> answer) override;

 private:
  // What is known of a host.
  struct Record {
    PeerHealth health{};
    Refusals refusals{};
    PeerCounts counts{};
    std::set<FetchOutcome::Kind> warned{};
  };

  void take_events();
  // Once there, it stays as it is.
  const PeerLine& line_of(HostIndex host) FORELOAD_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    FORELOAD_CHECK(host < lines_.size() && lines_[host].channel != nullptr, "only hosts with an address are asked");
    return lines_[host];
  }
  // Makes it known; then it may be started.
  template <typename Call>
  Call& keep(std::unique_ptr<Call> call) FORELOAD_EXCLUDES(mutex_);
  void remove(PeerCall& call) FORELOAD_EXCLUDES(mutex_);
  void probe(HostIndex host);
  void end_at_once(Record& record, std::span<const PeerWant> wants, PeerResult result) FORELOAD_REQUIRES(mutex_);
  enum class Patience { kWait, kFailFast };  // while there is no connection
  std::uint64_t start_greeting(HostIndex host, Time deadline, Patience patience);
  Result<HelloAnswer> await(std::uint64_t ticket);
  void warn(HostIndex host, FetchOutcome::Kind cause, const std::string& what) FORELOAD_REQUIRES(mutex_);

  std::vector<std::byte> hello_;
  std::optional<PeerCredentials> credentials_;
  grpc::CompletionQueue queue_;
  std::optional<Thread> thread_;

  mutable Mutex mutex_;
  CondVar changed_;                                          // any of these
  std::vector<PeerLine> lines_ FORELOAD_GUARDED_BY(mutex_);  // as many as hosts; without channel: not reached
  std::vector<Record> records_ FORELOAD_GUARDED_BY(mutex_);
  std::map<PeerCall*, std::unique_ptr<PeerCall>> calls_ FORELOAD_GUARDED_BY(mutex_);
  // Hellos whose answers are waited for, by ticket.
  std::map<std::uint64_t, std::optional<Result<HelloAnswer>>> awaited_ FORELOAD_GUARDED_BY(mutex_);
  std::uint64_t last_ticket_ FORELOAD_GUARDED_BY(mutex_) = kNobodyWaits;
  std::vector<PeerEnd> ends_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ FORELOAD_GUARDED_BY(mutex_);
  bool woken_ FORELOAD_GUARDED_BY(mutex_) = false;
};

GrpcPeers::Client::~Client() {
  {
    MutexLock lock(mutex_);
    for (auto& [call, owned] : calls_) call->cancel();
    while (!calls_.empty()) changed_.wait(mutex_);
  }
  queue_.Shutdown();
  if (!thread_) take_events();  // a queue must have been emptied
  thread_.reset();
}

Status GrpcPeers::Client::start(const GrpcPeersOptions& options) {
  credentials_ = options.credentials;
  hello_ = encode(options.hello);
  {
    MutexLock lock(mutex_);
    lines_.resize(options.addresses.size());
    records_.resize(options.addresses.size());
  }
  for (HostIndex host = 0; host < options.addresses.size(); ++host) {
    if (!options.addresses[host].empty()) FORELOAD_TRY(reach(host, options.addresses[host]));
  }
  auto thread = Thread::start("fl-peer-fetch", [this] { take_events(); });
  if (!thread) return std::move(thread).error();
  thread_.emplace(std::move(*thread));
  return {};
}

void GrpcPeers::Client::take_events() {
  void* call = nullptr;
  bool ok = false;
  while (queue_.Next(&call, &ok)) static_cast<PeerCall*>(call)->on_event(ok);
}

template <typename Call>
Call& GrpcPeers::Client::keep(std::unique_ptr<Call> call) {
  Call& kept = *call;
  MutexLock lock(mutex_);
  calls_.emplace(&kept, std::move(call));
  return kept;
}

void GrpcPeers::Client::remove(PeerCall& call) {
  std::unique_ptr<PeerCall> gone;  // destroyed without the lock
  MutexLock lock(mutex_);
  gone = std::move(calls_.at(&call));
  calls_.erase(&call);
  if (calls_.empty()) changed_.notify_all();
}

void GrpcPeers::Client::fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) {
  const PeerLine& line = line_of(host);
  auto advice = PeerHealth::Advice::kLeave;
  bool refused = false;
  {
    const Time time = now();
    MutexLock lock(mutex_);
    Record& record = records_[host];
    if (deadline > time) advice = record.health.advise(time);
    refused = advice == PeerHealth::Advice::kUse && record.refusals.refuses(key, time);
    if (refused) end_at_once(record, wants, PeerResult::kRefused);
    if (advice != PeerHealth::Advice::kUse) end_at_once(record, wants, PeerResult::kUnreachable);
  }
  if (advice == PeerHealth::Advice::kProbe) probe(host);
  if (advice != PeerHealth::Advice::kUse || refused) return;
  while (!wants.empty()) {
    const auto some = wants.first(std::min(wants.size(), kMostItems));
    wants = wants.subspan(some.size());
    FetchRequest request{.key = key};
    request.items.reserve(some.size());
    for (const PeerWant& want : some) {
      request.items.push_back({.id = want.id, .length = want.into.size(), .crop = want.crop});
    }
    keep(std::make_unique<FetchCall>(*this, host, key, some)).start(line, queue_, request, deadline);
  }
}

void GrpcPeers::Client::end_at_once(Record& record, std::span<const PeerWant> wants, PeerResult result) {
  for (const PeerWant& want : wants) {
    count(record.counts, result);
    ends_.push_back({want.token, result});
  }
  changed_.notify_all();
}

void GrpcPeers::Client::probe(HostIndex host) {
  GreetCall& call = keep(std::make_unique<GreetCall>(*this, host, kNobodyWaits));
  call.wait_for_connection();
  call.start(line_of(host), queue_, hello_, now() + kProbeTime);
}

void GrpcPeers::Client::wait(std::vector<PeerEnd>& ends, Time until) {
  MutexLock lock(mutex_);
  while (ends_.empty() && !woken_ && now() < until) changed_.wait_until(mutex_, until);
  ends.insert(ends.end(), ends_.begin(), ends_.end());
  ends_.clear();
  woken_ = false;
}

void GrpcPeers::Client::wake() {
  MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

std::vector<std::string> GrpcPeers::Client::take_warnings() {
  MutexLock lock(mutex_);
  return std::exchange(warnings_, {});
}

std::vector<PeerCounts> GrpcPeers::Client::counts() const {
  std::vector<PeerCounts> all;
  MutexLock lock(mutex_);
  for (const Record& record : records_) all.push_back(record.counts);
  return all;
}

void GrpcPeers::Client::warn(HostIndex host, FetchOutcome::Kind cause, const std::string& what) {
  if (!records_[host].warned.insert(cause).second) return;
  warnings_.push_back(fmt::format("peer {}: {}", lines_[host].address, what));
}

void GrpcPeers::Client::on_ends(FetchCall& call, std::vector<PeerEnd>& ends, Bytes bytes) {
  MutexLock lock(mutex_);
  PeerCounts& counts = records_[call.host()].counts;
  counts.bytes += bytes;
  for (const PeerEnd& end : ends) count(counts, end.result);
  if (ends_.empty()) changed_.notify_all();
  ends_.insert(ends_.end(), ends.begin(), ends.end());
  ends.clear();
}

void GrpcPeers::Client::on_bad_bytes(FetchCall& call) {
  const FetchOutcome outcome{.kind = FetchOutcome::Kind::kBadBytes};
  MutexLock lock(mutex_);
  warn(call.host(), outcome.kind, outcome.text());
}

void GrpcPeers::Client::on_fetched(FetchCall& call, const FetchOutcome& outcome) {
  MutexLock lock(mutex_);
  Record& record = records_[call.host()];
  if (outcome.kind == FetchOutcome::Kind::kGood) {
    record.refusals.on_served(call.key());
    return record.health.on_fetched(call.begun());
  }
  // Who refuses what is asked for is there, and other requests may be served.
  const bool unknown = outcome.kind == FetchOutcome::Kind::kUnknownKey;
  if (unknown || outcome.kind == FetchOutcome::Kind::kRefused) {
    record.refusals.on_refused(call.key(), now());
  } else {
    record.health.on_failed(call.begun(), now());
  }
  // Hosts begin at different times: whether a key is missing for too long is for others to say.
  if (!unknown) warn(call.host(), outcome.kind, outcome.text());
}

void GrpcPeers::Client::on_greeted(GreetCall& call, Result<HelloAnswer> answer) {
  {
    MutexLock lock(mutex_);
    Record& record = records_[call.host()];
    if (answer) {
      record.health.on_hello(answer->nonce, now());
    } else {
      record.health.on_silence(now());
    }
    const auto awaited = awaited_.find(call.ticket());
    if (awaited != awaited_.end()) {
      awaited->second = std::move(answer);
      changed_.notify_all();
    } else if (!answer && answer.error().code == Code::kMismatch) {
      warn(call.host(), FetchOutcome::Kind::kRefused, answer.error().message);
    }
  }
  remove(call);
}

std::uint64_t GrpcPeers::Client::start_greeting(HostIndex host, Time deadline, Patience patience) {
  std::uint64_t ticket = 0;
  {
    MutexLock lock(mutex_);
    ticket = ++last_ticket_;
    awaited_[ticket];
  }
  GreetCall& call = keep(std::make_unique<GreetCall>(*this, host, ticket));
  if (patience == Patience::kWait) call.wait_for_connection();
  call.start(line_of(host), queue_, hello_, deadline);
  return ticket;
}

Result<HelloAnswer> GrpcPeers::Client::await(std::uint64_t ticket) {
  MutexLock lock(mutex_);
  auto& reply = awaited_.at(ticket);
  while (!reply) changed_.wait(mutex_);
  Result<HelloAnswer> answer = std::move(*reply);
  awaited_.erase(ticket);
  return answer;
}

Result<HelloAnswer> GrpcPeers::Client::greet(HostIndex host, Time deadline) {
  auto answer = await(start_greeting(host, deadline, Patience::kWait));
  if (answer) return answer;
  return Error{answer.error().code, fmt::format("peer {}: {}", address(host), answer.error().message)};
}

std::vector<Result<HelloAnswer>> GrpcPeers::Client::greet_all(std::span<const HostIndex> hosts, Time deadline) {
  std::vector<std::uint64_t> tickets;
  for (const HostIndex host : hosts) tickets.push_back(start_greeting(host, deadline, Patience::kFailFast));
  std::vector<Result<HelloAnswer>> answers;
  for (const std::uint64_t ticket : tickets) answers.push_back(await(ticket));
  return answers;
}

std::string GrpcPeers::Client::address(HostIndex host) {
  MutexLock lock(mutex_);
  return lines_.at(host).address;
}

Status GrpcPeers::Client::reach(HostIndex host, const std::string& address) {
  FORELOAD_ASSIGN(PeerLine line, PeerLine::open(address, credentials_));
  MutexLock lock(mutex_);
  FORELOAD_CHECK(host < lines_.size() && lines_[host].channel == nullptr, "a host stays where it is");
  lines_[host] = std::move(line);
  records_[host].counts.address = address;
  return {};
}

void GrpcPeers::Client::greeted(HostIndex host, std::uint64_t nonce) {
  (void)line_of(host);
  bool unsure = false;
  {
    MutexLock lock(mutex_);
    unsure = records_[host].health.on_greeted(nonce);
  }
  if (unsure) probe(host);
}

Result<std::unique_ptr<GrpcPeers>> GrpcPeers::open(const GrpcPeersOptions& options) {
  auto client = std::make_unique<Client>();
  FORELOAD_TRY(client->start(options));
  return std::unique_ptr<GrpcPeers>(new GrpcPeers(std::move(client)));
}

GrpcPeers::GrpcPeers(std::unique_ptr<Client> client) : client_(std::move(client)) {}
GrpcPeers::~GrpcPeers() = default;

void GrpcPeers::fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) {
  client_->fetch(host, key, wants, deadline);
}
void GrpcPeers::wait(std::vector<PeerEnd>& ends, Time until) {
  client_->wait(ends, until);
}
void GrpcPeers::wake() {
  client_->wake();
}
std::vector<std::string> GrpcPeers::take_warnings() {
  return client_->take_warnings();
}
std::vector<PeerCounts> GrpcPeers::counts() const {
  return client_->counts();
}
Result<HelloAnswer> GrpcPeers::greet(HostIndex host, Time deadline) {
  return client_->greet(host, deadline);
}
std::vector<Result<HelloAnswer>> GrpcPeers::greet_all(std::span<const HostIndex> hosts, Time deadline) {
  return client_->greet_all(hosts, deadline);
}
void GrpcPeers::greeted(HostIndex host, std::uint64_t nonce) {
  client_->greeted(host, nonce);
}
std::string GrpcPeers::address(HostIndex host) const {
  return client_->address(host);
}
Status GrpcPeers::reach(HostIndex host, const std::string& address) {
  return client_->reach(host, address);
}

}  // namespace foreload
