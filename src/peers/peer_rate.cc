#include "peers/peer_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "peers/noise_shelf.h"

namespace foreload {
namespace {

constexpr Bytes kBatchBytes = 2_MiB;    // of one request
constexpr std::size_t kMostWants = 16;  // of one request
constexpr std::size_t kUnderWay = 4;    // requests to one peer
constexpr Duration kPatience = std::chrono::seconds(5);

const char* why(PeerResult result) {
  switch (result) {
    case PeerResult::kHere:
      return "answers";
    case PeerResult::kAbsent:
      return "has nothing to measure with: its agent is of another version";
    case PeerResult::kRefused:
      return "refuses: its agent is of another version or job";
    case PeerResult::kWrong:
      return "sends something else";
    case PeerResult::kUnreachable:
      return "does not answer: start its agent first (foreload agent --peers …)";
  }
  return "fails";
}

}  // namespace

// Requests that are begun again as soon as they have ended. Ends before `peers` forgets none of them.
class PeerRate::Fetches {
 public:
  Fetches(GrpcPeers& peers, std::size_t hosts, Bytes length)
      : peers_(peers), wants_(std::clamp<std::size_t>(kBatchBytes / length, 1, kMostWants)), length_(length) {
    for (std::size_t i = 0; i < hosts * kUnderWay; ++i) {
      requests_.push_back({static_cast<HostIndex>(i % hosts), 0, std::vector<std::byte>(wants_ * length)});
    }
  }
  ~Fetches() {
    while (under_way_ > 0) (void)step(false);
  }

  void begin() {
    for (std::size_t i = 0; i < requests_.size(); ++i) fetch(i);
  }
  // Takes what has ended. Nothing: the time is over; otherwise the host that failed.
  std::optional<std::pair<HostIndex, PeerResult>> run(Time until) {
    while (now() < until) {
      if (auto failed = step(true)) return failed;
    }
    return std::nullopt;
  }
  Bytes bytes() const { return bytes_; }

 private:
  struct Request {
    HostIndex host;
    std::size_t left;  // wants that have not ended
    std::vector<std::byte> memory;
  };

  void fetch(std::size_t index) {
    Request& request = requests_[index];
    std::vector<PeerWant> wants;
    for (std::size_t i = 0; i < wants_; ++i) {
      wants.push_back({.id = i, .into = std::span(request.memory).subspan(i * length_, length_), .token = index});
    }
    request.left = wants_;
    under_way_ += wants_;
    peers_.fetch(request.host, kNoiseKey, wants, now() + kPatience);
  }

  std::optional<std::pair<HostIndex, PeerResult>> step(bool again) {
    std::vector<PeerEnd> ends;
    peers_.wait(ends, now() + kPatience);
    std::optional<std::pair<HostIndex, PeerResult>> failed;
    for (const PeerEnd& end : ends) {
      Request& request = requests_[end.token];
      --under_way_;
      if (end.result != PeerResult::kHere) failed = {request.host, end.result};
      bytes_ += end.result == PeerResult::kHere ? length_ : 0;
      if (--request.left == 0 && again && !failed) fetch(end.token);
    }
    return failed;
  }

  GrpcPeers& peers_;
  std::size_t wants_;
  Bytes length_;
  std::vector<Request> requests_;
  std::size_t under_way_ = 0;
  Bytes bytes_ = 0;
};

Result<PeerRate> PeerRate::open(std::vector<std::string> addresses, const std::optional<PeerCredentials>& credentials) {
  std::erase(addresses, "");  // oneself
  if (addresses.empty()) return Error{Code::kInvalid, "there is no other host"};
  if (addresses.size() > kMostPeers) addresses.resize(kMostPeers);
  FORELOAD_ASSIGN(auto peers, GrpcPeers::open({.addresses = addresses, .credentials = credentials}));
  return PeerRate(std::move(addresses), std::move(peers));
}

Result<double> PeerRate::measure(Bytes length, Duration time) {
  Fetches fetches(*peers_, addresses_.size(), std::clamp<Bytes>(length, 1, kLongestNoise));
  const Time start = now();
  fetches.begin();
  if (const auto failed = fetches.run(start + time)) {
    return Error{Code::kIo, fmt::format("peer {} {}", addresses_[failed->first], why(failed->second))};
  }
  return static_cast<double>(fetches.bytes()) / seconds(now() - start);
}

}  // namespace foreload
