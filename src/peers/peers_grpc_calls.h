// Calls to one peer over gRPC, each a small state machine that is driven by the events of one queue. For GrpcPeers
// only.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "peers/answer.h"
#include "peers/credentials.h"
#include "peers/peers.h"
#include "peers/wire.h"

namespace foreload {

// A way to one peer. Connections are made and remade by gRPC when there is something to say.
struct PeerLine {
  // kInvalid: it can not be an address, or lies beyond this machine and there are no credentials.
  static Result<PeerLine> open(const std::string& address, const std::optional<PeerCredentials>& credentials);

  std::string address{};
  std::shared_ptr<grpc::Channel> channel{};
  std::unique_ptr<grpc::GenericStub> stub{};
};

// Something under way. Whoever starts it leaves it to the thread of the queue.
class PeerCall {
 public:
  virtual ~PeerCall() = default;
  // Its operation is done. By the queue's thread; the call may be destroyed in it.
  virtual void on_event(bool ok) = 0;
  void cancel() { context_.TryCancel(); }  // any thread

 protected:
  void set_deadline(Duration left);
  void* tag() { return static_cast<PeerCall*>(this); }  // as the queue gives it back

  grpc::ClientContext context_;
};

// How a fetch went as a whole.
struct FetchOutcome {
  enum class Kind {
    kGood,
    kUnreachable,
    kUnknownKey,  // it means another dataset, plan or roster, or has not begun yet
    kRefused,     // it does not take this host for a peer, or its request for one
    kBadBytes,
    kBadAnswer,
  };
  Kind kind = Kind::kGood;
  std::string why{};  // gRPC's or the peer's words

  std::string text() const;  // for the user; REQUIRES: not kGood
};

class FetchCall final : public PeerCall {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_bad_bytes(FetchCall& call) = 0;  // before their end
    // Takes them all. `bytes`: of those that are here.
    virtual void on_ends(FetchCall& call, std::vector<PeerEnd>& ends, Bytes bytes) = 0;
    virtual void on_fetched(FetchCall& call, const FetchOutcome& outcome) = 0;  // before the last ends
    virtual void on_over(FetchCall& call) = 0;                                  // destroys it
  };

  FetchCall(Listener& listener, HostIndex host, const PeerKey& key, std::span<const PeerWant> wants)
      : listener_(listener), host_(host), key_(key), answer_(wants) {}

  HostIndex host() const { return host_; }
  const PeerKey& key() const { return key_; }
  Time begun() const { return begun_; }
  void start(const PeerLine& line, grpc::CompletionQueue& queue, const FetchRequest& request, Time deadline);
  void on_event(bool ok) override;

 private:
  enum class Stage { kSending, kReading, kEnding };

  void take_message();
  void finish();
  FetchOutcome outcome() const;

  Listener& listener_;
  const HostIndex host_;
  const PeerKey key_;
  FetchAnswer answer_;
  Time begun_{};
  Stage stage_ = Stage::kSending;
  bool broken_ = false;  // the answer breaks the rules
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_{};
  grpc::ByteBuffer message_{};
  grpc::Status status_{};
  std::vector<grpc::Slice> slices_{};
  std::vector<std::span<const std::byte>> pieces_{};
  std::vector<PeerEnd> ends_{};
};

class GreetCall final : public PeerCall {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_greeted(GreetCall& call, Result<HelloAnswer> answer) = 0;  // destroys it
  };

  // `ticket`: the caller's.
  GreetCall(Listener& listener, HostIndex host, std::uint64_t ticket)
      : listener_(listener), host_(host), ticket_(ticket) {}

  HostIndex host() const { return host_; }
  std::uint64_t ticket() const { return ticket_; }
  void wait_for_connection() { context_.set_wait_for_ready(true); }  // however often it fails, until the deadline
  void start(const PeerLine& line, grpc::CompletionQueue& queue, std::span<const std::byte> hello, Time deadline);
  void on_event(bool ok) override;

 private:
  // kIo: there was none; kMismatch: it is no peer.
  Result<HelloAnswer> answer() const;

  Listener& listener_;
  const HostIndex host_;
  const std::uint64_t ticket_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_{};
  grpc::ByteBuffer message_{};
  grpc::Status status_{};
};

}  // namespace foreload
