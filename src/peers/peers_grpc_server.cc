// Every call is a small state machine:  waiting → asked → writing … writing → ending  with one operation of gRPC under
// way at any time, so that it ends with the connection, its deadline or the server, whichever is first. A lane is one
// queue of events and the one thread that takes from it; a call stays in its lane and needs no lock. A lane has one
// call waiting for a client, unless kMostCalls are at work: then clients wait, and their deadlines go on.
//
// A sample's bytes are given to gRPC as a slice that has the lease; gRPC drops it from any thread when they are sent.
// The server is gone only when all of these leases are.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "peers/peers_grpc.h"
#include "peers/peers_grpc_parts.h"
#include "serve/listen_address.h"

namespace foreload {
namespace {

constexpr std::size_t kLanes = 2;
constexpr std::size_t kMostCalls = 256;  // per lane
constexpr Duration kDeadlineSlack = std::chrono::seconds(5);
constexpr const char* kSubjectNames = "x509_subject_alternative_name";  // as gRPC calls them

// Counts something down to nothing.
class Tally {
 public:
  void add() {
    MutexLock lock(mutex_);
    ++count_;
  }
  void drop() {
    MutexLock lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void wait_for_none() {
    MutexLock lock(mutex_);
    while (count_ != 0) none_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar none_;
  std::size_t count_ FORELOAD_GUARDED_BY(mutex_) = 0;
};

// A lease in the hands of gRPC.
class HeldLease {
 public:
  HeldLease(Lease lease, Tally& tally) : lease_(std::move(lease)), tally_(tally) { tally_.add(); }
  ~HeldLease() {
    lease_ = Lease();
    tally_.drop();
  }

 private:
  Lease lease_;
  Tally& tally_;
};

grpc::Slice slice_of(std::span<const std::byte> part, Lease lease, Tally& tally) {
  auto* const held = new HeldLease(std::move(lease), tally);
  return grpc::Slice(
      const_cast<std::byte*>(part.data()), part.size(), [](void* gone) { delete static_cast<HeldLease*>(gone); }, held);
}

bool is_ours(const grpc::AuthContext& authenticated) {
  const auto names = authenticated.FindPropertyValues(kSubjectNames);
  return std::find(names.begin(), names.end(), kPeerCertificateName) != names.end();
}

// What all calls use.
struct Shop {
  PeerShelf& shelf;
  GrpcServer::Greet greet;
  bool authenticated = false;
  grpc::AsyncGenericService methods{};
  Tally leases{};
  Tally calls{};
};

class Lane;

class Call {
 public:
  Call(Shop& shop, Lane& lane);
  void on_event(bool ok);

 private:
  enum class Stage { kWaiting, kAsked, kWriting, kEnding };

  void on_client();
  void on_request();
  void write_next();
  void end(const grpc::Status& status);
  grpc::Status refusal() const;  // OK: the call is served

  Shop& shop_;
  Lane& lane_;
  Stage stage_ = Stage::kWaiting;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  FetchRequest fetch_;
  std::size_t next_ = 0;  // of the ids
  PeerShelf::Sample sample_;
  Bytes offset_ = 0;  // in the sample; 0: the next is to be taken
};

class Lane {
 public:
  explicit Lane(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}

  grpc::ServerCompletionQueue* queue() { return queue_.get(); }

  Status start(Shop& shop) {
    shop_ = &shop;
    shop.calls.add();  // until the thread has one
    auto thread = Thread::start("fl-peer-serve", [this] {
      add_waiting();
      shop_->calls.drop();
      take_events();
    });
    if (!thread) {
      shop.calls.drop();
      return std::move(thread).error();
    }
    thread_.emplace(std::move(*thread));
    return {};
  }
  // REQUIRES: no call is left.
  void stop() {
    queue_->Shutdown();
    if (!thread_) take_events();  // a queue must have been emptied
    thread_.reset();
  }

  // The waiting call has got a client, or never will.
  void on_client(bool ok) {
    waiting_ = false;
    open_ = open_ && ok;
    if (ok) add_waiting();
  }
  void on_end() {
    --calls_;
    add_waiting();
  }

 private:
  void add_waiting() {
    if (waiting_ || !open_ || calls_ == kMostCalls) return;
    waiting_ = true;
    ++calls_;
    new Call(*shop_, *this);  // deletes itself
  }
  void take_events() {
    void* call = nullptr;
    bool ok = false;
    while (queue_->Next(&call, &ok)) static_cast<Call*>(call)->on_event(ok);
  }

  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  Shop* shop_ = nullptr;
  std::size_t calls_ = 0;
  bool waiting_ = false;
  bool open_ = true;
  std::optional<Thread> thread_;
};

Call::Call(Shop& shop, Lane& lane) : shop_(shop), lane_(lane) {
  shop_.calls.add();
  shop_.methods.RequestCall(&context_, &stream_, lane_.queue(), lane_.queue(), this);
}

void Call::on_event(bool ok) {
  if (stage_ == Stage::kWaiting) lane_.on_client(ok);
  if (stage_ == Stage::kEnding || (stage_ == Stage::kWaiting && !ok)) {
    Lane& lane = lane_;
    Shop& shop = shop_;
    delete this;
    lane.on_end();
    shop.calls.drop();
    return;
  }
  if (!ok) return end(grpc::Status::CANCELLED);
  if (stage_ == Stage::kWaiting) return on_client();
  if (stage_ == Stage::kAsked) return on_request();
  write_next();
}

grpc::Status Call::refusal() const {
  if (shop_.authenticated && !is_ours(*context_.auth_context())) {
    return {grpc::StatusCode::UNAUTHENTICATED, "this certificate is not that of a peer"};
  }
  if (context_.method() != kFetchMethod && context_.method() != kHelloMethod) {
    return {grpc::StatusCode::UNIMPLEMENTED, "there is no such method"};
  }
  // gRPC ends calls at their deadline, but somebody may have set none.
  if (context_.deadline() > std::chrono::system_clock::now() + kLongestCall + kDeadlineSlack) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "the deadline is too far away"};
  }
  return grpc::Status::OK;
}

void Call::on_client() {
  if (const grpc::Status refused = refusal(); !refused.ok()) return end(refused);
  stage_ = Stage::kAsked;
  stream_.Read(&request_, this);
}

void Call::on_request() {
  const auto bytes = to_bytes(request_);
  request_.Clear();
  if (context_.method() == kHelloMethod) {
    const auto hello = parse_hello(bytes);
    if (!hello) return end({grpc::StatusCode::INVALID_ARGUMENT, "this is no hello"});
    stage_ = Stage::kEnding;
    return stream_.WriteAndFinish(to_buffer(encode(shop_.greet(*hello))), {}, grpc::Status::OK, this);
  }
  auto fetch = parse_fetch_request(bytes);
  if (!fetch) return end({grpc::StatusCode::INVALID_ARGUMENT, "this is no request for samples"});
  if (fetch->protocol != kPeerProtocol) {
    return end({grpc::StatusCode::FAILED_PRECONDITION, "it speaks version " + std::to_string(kPeerProtocol) +
                                                           " of the protocol, and was asked in version " +
                                                           std::to_string(fetch->protocol)});
  }
  if (!shop_.shelf.knows(fetch->key)) {
    return end({grpc::StatusCode::FAILED_PRECONDITION, "it has another dataset, plan or roster"});
  }
  fetch_ = std::move(*fetch);
  write_next();
}

void Call::write_next() {
  if (next_ == fetch_.ids.size()) return end(grpc::Status::OK);
  SampleFrame frame{.index = static_cast<std::uint32_t>(next_)};
  if (offset_ == 0) {
    auto found = shop_.shelf.take(fetch_.key, fetch_.ids[next_]);
    sample_ = found ? std::move(*found) : PeerShelf::Sample();
  }
  std::array<grpc::Slice, 2> slices;
  if (sample_.lease.valid()) {
    const auto bytes = sample_.lease.bytes();
    frame = {.index = frame.index,
             .result = PeerResult::kHere,
             .length = bytes.size(),
             .offset = offset_,
             .hash = sample_.hash};
    const auto part = bytes.subspan(offset_, std::min<Bytes>(kPartBytes, bytes.size() - offset_));
    offset_ += part.size();
    const bool last = offset_ == bytes.size();
    if (last) offset_ = 0;
    if (!part.empty()) {
      Lease lease = last ? std::exchange(sample_.lease, Lease()) : sample_.lease.share();
      slices[1] = slice_of(part, std::move(lease), shop_.leases);
    }
  }
  const auto head = encode(frame);
  slices[0] = grpc::Slice(head.data(), head.size());
  const grpc::ByteBuffer message(slices.data(), frame.length != 0 ? 2 : 1);
  if (offset_ == 0) ++next_;
  if (next_ == fetch_.ids.size()) {
    stage_ = Stage::kEnding;
    stream_.WriteAndFinish(message, {}, grpc::Status::OK, this);
  } else {
    stage_ = Stage::kWriting;
    stream_.Write(message, this);
  }
}

void Call::end(const grpc::Status& status) {
  stage_ = Stage::kEnding;
  stream_.Finish(status, this);
}

}  // namespace

class GrpcServer::Service {
 public:
  Service(PeerShelf& shelf, Greet greet) : shop_{.shelf = shelf, .greet = std::move(greet)} {}
  ~Service() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    shop_.calls.wait_for_none();
    for (auto& lane : lanes_) lane->stop();
    server_.reset();
    shop_.leases.wait_for_none();
  }

  Status start(const GrpcServerOptions& options) {
    FORELOAD_ASSIGN(const ListenAddress wanted, ListenAddress::parse(options.address));
    if (!options.credentials && !wanted.is_loopback()) {
      return Error{Code::kInvalid,
                   wanted.text() +
                       " can be reached from other machines, so peers there need credentials: make some with "
                       "foreload agent --make-credentials, or listen at 127.0.0.1"};
    }
    // gRPC does not say why it can not listen; a socket of our own does.
    FORELOAD_TRY(wanted.listen());
    quiet_grpc();
    shop_.authenticated = options.credentials.has_value();
    grpc::ServerBuilder builder;
    set_arguments(builder);
    int port = 0;
    builder.AddListeningPort(wanted.text(), server_credentials(options.credentials), &port);
    builder.RegisterAsyncGenericService(&shop_.methods);
    for (std::size_t i = 0; i < kLanes; ++i) lanes_.push_back(std::make_unique<Lane>(builder.AddCompletionQueue()));
    server_ = builder.BuildAndStart();
    if (!server_ || port <= 0) {
      return Error{Code::kIo, "can not listen at " + wanted.text() +
                                  ": gRPC refuses it; name another port, and see GRPC_VERBOSITY=debug"};
    }
    const std::string text = wanted.text();
    address_ = text.substr(0, text.rfind(':') + 1) + std::to_string(port);
    for (auto& lane : lanes_) FORELOAD_TRY(lane->start(shop_));
    return {};
  }

  const std::string& address() const { return address_; }

 private:
  Shop shop_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(const GrpcServerOptions& options, PeerShelf& shelf,
                                                       Greet greet) {
  auto service = std::make_unique<Service>(shelf, std::move(greet));
  FORELOAD_TRY(service->start(options));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(service)));
}

GrpcServer::GrpcServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}
GrpcServer::~GrpcServer() = default;

std::string GrpcServer::address() const {
  return service_->address();
}

}  // namespace foreload
