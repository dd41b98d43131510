// PeerRate: how fast samples come from other hosts. It fetches noise (NoiseShelf) from their agents as samples are
// fetched: over the same transport, with the same credentials and checks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "peers/peers_grpc.h"

namespace foreload {

class PeerRate {
 public:
  static constexpr std::size_t kMostPeers = 4;  // more do not make the way into this host wider

  // Of the first few of these "host:port". kInvalid: as of GrpcPeers::open, or there are none.
  static Result<PeerRate> open(std::vector<std::string> addresses, const std::optional<PeerCredentials>& credentials);

  // Bytes per second of all of them together, in samples of that length, up to kLongestNoise. Takes a moment longer
  // than `time`. kIo names the one that does not answer.
  Result<double> measure(Bytes length, Duration time);

 private:
  class Fetches;
  PeerRate(std::vector<std::string> addresses, std::unique_ptr<GrpcPeers> peers)
      : addresses_(std::move(addresses)), peers_(std::move(peers)) {}

  std::vector<std::string> addresses_;
  std::unique_ptr<GrpcPeers> peers_;
};

}  // namespace foreload
