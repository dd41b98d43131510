// Calls are served in lanes; the server is gone only when all calls are, and all leases that gRPC had.
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <utility>

#include "peers/peers_grpc.h"
#include "peers/peers_grpc_lane.h"
#include "peers/peers_grpc_parts.h"
#include "serve/listen_address.h"

namespace foreload {
namespace {

constexpr std::size_t kLanes = 2;

}  // namespace

class GrpcServer::Service {
 public:
  Service(PeerShelf& shelf, Greet greet, Duration patience)
      : shop_{.shelf = shelf, .greet = std::move(greet), .patience = patience} {}
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
    begin_grpc();
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
  GrpcRefusals refusals() const {
    const RefusalCounts& counts = shop_.refused;
    return {.strangers = counts.strangers,
            .malformed = counts.malformed,
            .versions = counts.versions,
            .unknown = counts.unknown,
            .hellos = counts.hellos};
  }

 private:
  Shop shop_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

Result<std::unique_ptr<GrpcServer>> GrpcServer::listen(const GrpcServerOptions& options, PeerShelf& shelf,
                                                       Greet greet) {
  auto service = std::make_unique<Service>(shelf, std::move(greet), options.patience);
  FORELOAD_TRY(service->start(options));
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(service)));
}

GrpcServer::GrpcServer(std::unique_ptr<Service> service) : service_(std::move(service)) {}
GrpcServer::~GrpcServer() = default;

std::string GrpcServer::address() const {
  return service_->address();
}

GrpcRefusals GrpcServer::refusals() const {
  return service_->refusals();
}

}  // namespace foreload
