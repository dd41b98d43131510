// Peers over gRPC: who asks (GrpcPeers) and who answers (GrpcServer). With credentials both sides show their
// certificates and check the other's; without them, only addresses of this machine are allowed.
// gRPC has threads of its own: only in a process that never forks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "peers/credentials.h"
#include "peers/peers.h"
#include "peers/wire.h"

namespace foreload {

struct GrpcPeersOptions {
  // "host:port" of every host of the roster; empty: it is not asked, as oneself, unless reach() tells where it is.
  std::vector<std::string> addresses{};
  std::optional<PeerCredentials> credentials{};
  Hello hello{};  // what this host says of itself
};

// One request per fetch, any number of them under way; one thread of its own takes what comes. A peer that fails is
// left alone for a while (PeerHealth), and so is one that does not have a key (Refusals): what is wanted of it then
// ends at once.
class GrpcPeers final : public PeerTransport {
 public:
  // kInvalid: an address can not be one, or lies beyond this machine and there are no credentials.
  static Result<std::unique_ptr<GrpcPeers>> open(const GrpcPeersOptions& options);
  ~GrpcPeers() override;

  void fetch(HostIndex host, const PeerKey& key, std::span<const PeerWant> wants, Time deadline) override;
  void wait(std::vector<PeerEnd>& ends, Time until) override;
  void wake() override;
  std::vector<std::string> take_warnings() override;
  std::vector<PeerCounts> counts() const;  // by host. Any thread

  // Says hello and waits for the answer, also while the peer is left alone. kIo: it is not there; kMismatch: it
  // refuses. Any thread, but not while this is destroyed.
  Result<HelloAnswer> greet(HostIndex host, Time deadline);
  // The same of several hosts at once, but whom no connection can be made to now is not waited for. Errors do not name
  // the peer.
  std::vector<Result<HelloAnswer>> greet_all(std::span<const HostIndex> hosts, Time deadline);
  // That host has said hello to this one: if it is not known to be well, it is asked at once. Never blocks. Any thread,
  // but not while this is destroyed.
  void greeted(HostIndex host, std::uint64_t nonce);

  // Where that host is asked; empty: it is not. Any thread.
  std::string address(HostIndex host) const;
  // From now on it is asked there. kInvalid: as of open(). REQUIRES: it had no address. Any thread.
  Status reach(HostIndex host, const std::string& address);

 private:
  class Client;
  explicit GrpcPeers(std::unique_ptr<Client> client);
  std::unique_ptr<Client> client_;
};

// Trainers wait for a peer's sample for a second at most; the answer has to be back by then.
inline constexpr Duration kLaterPatience = std::chrono::milliseconds(700);

struct GrpcServerOptions {
  std::string address = "127.0.0.1:0";  // as ListenAddress reads it; port 0: any
  std::optional<PeerCredentials> credentials{};
  Duration patience = kLaterPatience;  // how long a call waits in all for samples that are on their way
};

// Calls that a server did not serve, by why.
struct GrpcRefusals {
  std::uint64_t strangers = 0;  // the certificate is not that of a peer
  std::uint64_t malformed = 0;  // not a message, method or deadline of a peer
  std::uint64_t versions = 0;   // another version of the protocol asks for samples
  std::uint64_t unknown = 0;    // another dataset, plan or roster
  std::uint64_t hellos = 0;     // refused in words

  bool operator==(const GrpcRefusals&) const = default;
};

// Serves what is on a shelf. Bytes go from there into the connection without a copy; a sample is taken from the shelf
// when the one before it has been handed over, so that a slow reader holds few leases. What is on its way to the shelf
// is sent after what is here, and is absent when it does not come in time; no thread waits for it.
class GrpcServer {
 public:
  // What is answered to a hello. Called by threads of the server; must not block.
  using Greet = std::function<HelloAnswer(const Hello&)>;
  // `shelf` outlives the server. kInvalid: an address beyond this machine without credentials; kIo: it is taken.
  static Result<std::unique_ptr<GrpcServer>> listen(const GrpcServerOptions& options, PeerShelf& shelf, Greet greet);
  // Ends all calls at once; afterwards it has no leases.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  std::string address() const;    // numbers, and the port it got
  GrpcRefusals refusals() const;  // so far. Any thread

 private:
  class Service;
  explicit GrpcServer(std::unique_ptr<Service> service);
  std::unique_ptr<Service> service_;
};

}  // namespace foreload
