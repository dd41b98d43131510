// In every round some hosts are greeted at once: those whose card is missing; and where nobody knows the address of a
// missing one, also those who are here, because it may have come to them. Rounds are small, so that a thousand hosts
// that start together do not greet each other a million times: whoever is told of a card passes it on.
#include "peers/meet.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace foreload {
namespace {

constexpr std::size_t kMostGreeted = 16;  // at once
constexpr std::size_t kMostNamed = 5;     // to the user
constexpr Duration kGreetTime = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(100);

class Greeter {
 public:
  Greeter(Meeting& meeting, GrpcPeers& peers, const MeetOptions& options)
      : meeting_(meeting), peers_(peers), options_(options), self_(meeting.own().card.host), begun_(now()) {}

  Result<Met> run();

 private:
  Status reach_all();
  std::vector<HostIndex> whom_to_greet();
  Status greet();
  Status confirm();
  Status take(HostIndex host, Result<HelloAnswer> answer);
  void tell();
  std::string waiting() const;

  Meeting& meeting_;
  GrpcPeers& peers_;
  const MeetOptions& options_;
  const HostIndex self_;
  const Time begun_;
  std::size_t next_ = 0;                      // who was greeted last, when not all are in one round
  std::map<HostIndex, std::string> trouble_;  // with the last greeting
  std::map<HostIndex, Time> refused_;         // since when
  std::optional<Time> told_;
};

// Who has come is reached where its card says, unless an address was given.
Status Greeter::reach_all() {
  for (const auto& card : meeting_.cards()) {
    if (!card || card->host == self_ || !peers_.address(card->host).empty()) continue;
    FORELOAD_TRY(peers_.reach(card->host, card->name));
  }
  return {};
}

std::vector<HostIndex> Greeter::whom_to_greet() {
  const auto cards = meeting_.cards();
  const auto is_lost = [&](const auto& host) { return peers_.address(host).empty(); };
  bool any_lost = false;
  for (HostIndex host = 0; host < cards.size(); ++host) any_lost = any_lost || (!cards[host] && is_lost(host));
  std::vector<HostIndex> hosts;
  for (std::size_t i = 1; i < cards.size(); ++i) {
    const auto host = static_cast<HostIndex>((self_ + i) % cards.size());
    if (!is_lost(host) && (!cards[host] || any_lost)) hosts.push_back(host);
  }
  if (hosts.size() <= kMostGreeted) return hosts;
  next_ %= hosts.size();
  std::rotate(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(next_), hosts.end());
  next_ += kMostGreeted;
  hosts.resize(kMostGreeted);
  return hosts;
}

Status Greeter::take(HostIndex host, Result<HelloAnswer> answer) {
  const Status status = answer ? meeting_.learn(host, *answer) : Status(answer.error());
  if (status) {
    trouble_.erase(host);
    refused_.erase(host);
    return {};
  }
  trouble_[host] = status.error().message;
  if (status.error().code != Code::kMismatch) {
    refused_.erase(host);
    return {};
  }
  const auto since = refused_.try_emplace(host, now()).first->second;
  if (now() - since < options_.patience) return {};
  return Error{Code::kMismatch, fmt::format("peer {}: {}", peers_.address(host), status.error().message)};
}

Status Greeter::greet() {
  const auto hosts = whom_to_greet();
  auto answers = peers_.greet_all(hosts, now() + kGreetTime);
  for (std::size_t i = 0; i < hosts.size(); ++i) FORELOAD_TRY(take(hosts[i], std::move(answers[i])));
  return reach_all();
}

// Cards may have crossed: a host that came back otherwise while the others met may be known as it was here, and as it
// is there. Whoever is complete last sees the difference when it asks all once more. Who can not be reached now is not
// waited for: it will ask in turn when it comes back.
Status Greeter::confirm() {
  const std::size_t count = meeting_.cards().size();
  std::vector<HostIndex> hosts;
  for (HostIndex host = 0; host < count; ++host) {
    if (host != self_) hosts.push_back(host);
  }
  for (std::size_t first = 0; first < hosts.size(); first += kMostGreeted) {
    const auto some = std::span(hosts).subspan(first, std::min<std::size_t>(kMostGreeted, hosts.size() - first));
    auto answers = peers_.greet_all(some, now() + kGreetTime);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const Status status = answers[i] ? meeting_.learn(some[i], *answers[i]) : Status(answers[i].error());
      if (status.ok() || status.error().code != Code::kMismatch) continue;
      return Error{Code::kMismatch, fmt::format("peer {}: {}", peers_.address(some[i]), status.error().message)};
    }
  }
  return {};
}

std::string Greeter::waiting() const {
  const auto cards = meeting_.cards();
  std::size_t missing = 0;
  std::string names;
  for (HostIndex host = 0; host < cards.size(); ++host) {
    if (cards[host]) continue;
    if (++missing > kMostNamed) continue;
    const std::string address = peers_.address(host);
    const auto trouble = trouble_.find(host);
    names += fmt::format(
        "{}{} ({})", missing == 1 ? "" : ", ", address.empty() ? fmt::format("host {}", host) : address,
        address.empty() ? "it has not come yet" : (trouble == trouble_.end() ? "not asked yet" : trouble->second));
  }
  if (missing > kMostNamed) names += fmt::format(" and {} more", missing - kMostNamed);
  return fmt::format("waiting for {} of {} hosts: {}", missing, cards.size(), names);
}

void Greeter::tell() {
  for (const std::string& warning : meeting_.take_warnings()) options_.told(warning);
  const Time due = told_ ? *told_ + options_.silence : begun_ + options_.silence / 5;
  if (now() < due || meeting_.complete()) return;
  told_ = now();
  options_.told(waiting());
}

Result<Met> Greeter::run() {
  while (!meeting_.complete()) {
    const Time next = now() + options_.pause;
    FORELOAD_TRY(greet());
    while (!meeting_.complete() && now() < next) {
      if (options_.stop()) return Error{Code::kCancelled, "stopped while " + waiting()};
      meeting_.wait(std::min(next, now() + kLook));
    }
    if (options_.stop() && !meeting_.complete()) return Error{Code::kCancelled, "stopped while " + waiting()};
    tell();
  }
  FORELOAD_TRY(reach_all());
  FORELOAD_TRY(confirm());
  FORELOAD_ASSIGN(Roster roster, meeting_.roster());
  Met met{.roster = std::move(roster)};
  for (HostIndex host = 0; host < met.roster.hosts().size(); ++host) {
    met.addresses.push_back(host == self_ ? "" : peers_.address(host));
  }
  return met;
}

}  // namespace

Result<Met> meet(Meeting& meeting, GrpcPeers& peers, const MeetOptions& options) {
  return Greeter(meeting, peers, options).run();
}

}  // namespace foreload
