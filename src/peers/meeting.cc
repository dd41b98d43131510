#include "peers/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "peers/host_port.h"

namespace foreload {
namespace {

constexpr std::size_t kMostWarnings = 100;  // a stranger may come with any words
constexpr std::size_t kMostNonces = 8;
constexpr std::size_t kLongestShown = 60;  // of a name: a refusal has room for two

std::string shown(const std::string& text) {
  return text.size() <= kLongestShown ? text : text.substr(0, kLongestShown - 3) + "...";
}

// Of a hello of another version nothing but that is known.
std::string refused_words(const Hello& hello, const std::string& why) {
  if (hello.protocol != kPeerProtocol) {
    return fmt::format(
        "an agent said hello in version {} of the protocol and was refused: this one speaks version {}; run the same "
        "Foreload on all hosts",
        hello.protocol, kPeerProtocol);
  }
  return fmt::format("host {} at {} said hello and was refused: {}", hello.card.host, shown(hello.card.name), why);
}

bool has_port(const std::string& address) {
  const auto parsed = HostPort::parse(address, 0);
  return parsed && parsed->port != 0;
}

}  // namespace

Meeting::Meeting(Hello own) : own_(std::move(own)), hosts_(own_.hosts), missing_(own_.hosts) {
  FORELOAD_CHECK(own_.card.host < own_.hosts && own_.hosts <= Roster::kMostHosts, "a host is one of those it meets");
  MutexLock lock(mutex_);
  add(own_.card);
}

void Meeting::served(const std::string& address) {
  MutexLock lock(mutex_);
  own_.card.name = served_name(own_.card.name, address);
  hosts_[own_.card.host].card = own_.card;
}

Hello Meeting::own() const {
  MutexLock lock(mutex_);
  return own_;
}

std::string Meeting::difference(const PeerCard& card) const {
  const auto& known = hosts_[card.host].card;
  if (!known || *known == card) return {};
  if (known->name != card.name) {
    return fmt::format("host {} is at {}, and not at {}: give every host an index of its own, or start all agents anew",
                       card.host, shown(known->name), shown(card.name));
  }
  const auto values = [](const PeerCard& of) {
    return fmt::format("{}, memory {}, disk {}", counted(of.learners, "learner"), of.memory, of.disk);
  };
  return fmt::format("host {} ({}) has {}, and not {}: start it as before (--learners, --memory), or all agents anew",
                     card.host, shown(card.name), values(*known), values(card));
}

std::string Meeting::refusal(const Hello& hello) const {
  const PeerCard& card = hello.card;
  if (hello.protocol != kPeerProtocol) {
    return fmt::format(
        "it speaks version {} of the protocol, and was greeted in version {}: run the same Foreload on "
        "all hosts",
        kPeerProtocol, hello.protocol);
  }
  if (hello.nonce == own_.nonce) return "it is this agent itself: two hosts were given one address";
  if (hello.job != own_.job) {
    return fmt::format("its job is \"{}\", and not \"{}\"; agents of another job need another port", shown(own_.job),
                       shown(hello.job));
  }
  if (hello.hosts != own_.hosts) {
    return fmt::format("its job has {} hosts, and not {}: give all agents the same hosts", own_.hosts, hello.hosts);
  }
  if (card.host >= own_.hosts) return fmt::format("there is no host {}: {} hosts count from 0", card.host, own_.hosts);
  if (card.host == own_.card.host) {
    return fmt::format(
        "it is host {} itself, at {}: give every host an index of its own (--host-index), in the same "
        "order everywhere",
        card.host, shown(own_.card.name));
  }
  if (!has_port(card.name)) return fmt::format("\"{}\" is no address at which it could be reached", shown(card.name));
  if (!has_port(own_.card.name)) return "it does not listen yet";
  return difference(card);
}

HelloAnswer Meeting::greet(const Hello& hello) {
  MutexLock lock(mutex_);
  HelloAnswer answer{.nonce = own_.nonce, .refusal = refusal(hello)};
  if (!answer.refusal.empty()) {
    warn(refused_words(hello, answer.refusal));
    return answer;
  }
  add(hello.card);
  note_nonce(hello);
  answer.cards.push_back(own_.card);
  for (const Known& each : hosts_) {
    if (each.card && each.card->host != own_.card.host) answer.cards.push_back(*each.card);
  }
  return answer;
}

// An agent that was started again never says its old nonce. Not a reason to refuse: messages may overtake each other.
void Meeting::note_nonce(const Hello& hello) {
  auto& nonces = hosts_[hello.card.host].nonces;
  if (!nonces.empty() && nonces.back() == hello.nonce) return;
  const auto known = std::find(nonces.begin(), nonces.end(), hello.nonce);
  if (known != nonces.end()) {
    warn(fmt::format("two agents seem to be host {} ({}); end one of them", hello.card.host, shown(hello.card.name)));
    nonces.erase(known);
  }
  nonces.push_back(hello.nonce);
  if (nonces.size() > kMostNonces) nonces.erase(nonces.begin());
}

Status Meeting::learn(HostIndex asked, const HelloAnswer& answer) {
  MutexLock lock(mutex_);
  if (answer.cards.empty() || answer.cards.front().host != asked) {
    return Error{Code::kMismatch,
                 answer.cards.empty()
                     ? fmt::format("host {} does not say who it is", asked)
                     : fmt::format("it is host {}, and not host {}: give all agents the same hosts in the same order",
                                   answer.cards.front().host, asked)};
  }
  for (const PeerCard& card : answer.cards) {
    std::string wrong;
    if (card.host >= own_.hosts || !has_port(card.name)) {
      wrong = fmt::format("there is no host {} at \"{}\"", card.host, shown(card.name));
    } else {
      wrong = difference(card);
    }
    if (!wrong.empty()) return Error{Code::kMismatch, "it knows other hosts than this one: " + wrong};
  }
  for (const PeerCard& card : answer.cards) add(card);
  return {};
}

void Meeting::add(const PeerCard& card) {
  Known& known = hosts_[card.host];
  if (known.card) return;
  known.card = card;
  --missing_;
  if (missing_ == 0) completed_.notify_all();
}

bool Meeting::complete() const {
  MutexLock lock(mutex_);
  return missing_ == 0;
}

std::vector<std::optional<PeerCard>> Meeting::cards() const {
  MutexLock lock(mutex_);
  std::vector<std::optional<PeerCard>> cards;
  cards.reserve(hosts_.size());
  for (const Known& each : hosts_) cards.push_back(each.card);
  return cards;
}

Result<Roster> Meeting::roster() const {
  std::vector<RosterHost> hosts;
  for (const auto& card : cards()) {
    FORELOAD_CHECK(card.has_value(), "a roster is made when all cards are known");
    hosts.push_back({.name = card->name, .learners = card->learners, .memory = card->memory, .disk = card->disk});
  }
  return Roster::create(std::move(hosts));
}

void Meeting::wait(Time until) const {
  MutexLock lock(mutex_);
  while (missing_ != 0 && now() < until) completed_.wait_until(mutex_, until);
}

void Meeting::warn(std::string what) {
  if (warned_.size() == kMostWarnings || !warned_.insert(what).second) return;
  warnings_.push_back(std::move(what));
}

std::vector<std::string> Meeting::take_warnings() {
  MutexLock lock(mutex_);
  return std::exchange(warnings_, {});
}

}  // namespace foreload
