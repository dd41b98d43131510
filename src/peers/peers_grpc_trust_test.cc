// Whom nobody should believe: strangers who ask (R15), and peers that answer anything.
#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/files.h"
#include "peers/grpc_testing.h"
#include "peers/peers_grpc.h"
#include "peers/peers_grpc_parts.h"
#include "serve/listen_address.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

int attempts() {
  return std::getenv("FORELOAD_SOAK") != nullptr ? 100 : 10;
}

// Each tries to get a sample and to say hello. None may come as far as the shelf.
void expect_refused(const std::optional<PeerCredentials>& server_side, const std::optional<PeerCredentials>& client) {
  TestShelf shelf;
  shelf.put(0, 1'000);
  std::atomic<int> hellos = 0;
  auto server = GrpcServer::listen({.credentials = server_side}, shelf, [&](const Hello&) {
    ++hellos;
    return HelloAnswer();
  });
  ASSERT_TRUE(server);
  for (int i = 0; i < attempts(); ++i) {
    const auto peers = peers_at((*server)->address(), client);
    Wanted wanted(0, 3, 1'000);
    wanted.fetch_and_wait(*peers, now() + 5s);
    EXPECT_EQ(wanted.count(PeerResult::kUnreachable) + wanted.count(PeerResult::kRefused), 3u);
    EXPECT_EQ(peers->take_warnings().size(), 1u);
    if (i == 0) {
      EXPECT_FALSE(peers->greet(0, now() + 300ms));
    }
  }
  EXPECT_EQ(shelf.takes(), 0u);
  EXPECT_EQ(hellos, 0);
}

TEST(PeerTrustTest, APlaintextClientIsRefused) {
  expect_refused(job_credentials().front(), std::nullopt);
}

TEST(PeerTrustTest, AClientWithoutCertificateIsRefused) {
  const auto job = job_credentials().front();
  expect_refused(job, PeerCredentials{.ca = job.ca});
}

TEST(PeerTrustTest, ACertificateThatAnotherAuthoritySignedIsRefused) {
  const auto job = job_credentials().front();
  const auto other = job_credentials().front();
  expect_refused(job, PeerCredentials{.ca = job.ca, .certificate = other.certificate, .key = other.key});
}

TEST(PeerTrustTest, AServerThatAnotherAuthoritySignedIsRefused) {
  const auto job = job_credentials().front();
  const auto other = job_credentials().front();
  expect_refused(PeerCredentials{.ca = job.ca, .certificate = other.certificate, .key = other.key}, job);
}

TEST(PeerTrustTest, AnotherJobIsRefused) {
  expect_refused(job_credentials().front(), job_credentials().front());
}

TEST(PeerTrustTest, AnExpiredCertificateIsRefusedOnEitherSide) {
  const auto job = job_credentials({{.age = 2h, .valid = -1h}});
  expect_refused(job[0], job[1]);
  expect_refused(job[1], job[0]);
}

TEST(PeerTrustTest, ACertificateThatIsNotValidYetIsRefused) {
  const auto job = job_credentials({{.age = -1h, .valid = 2h}});
  expect_refused(job[0], job[1]);
}

TEST(PeerTrustTest, ACertificateWithAnotherNameIsRefusedOnEitherSide) {
  const auto job = job_credentials({{.name = "somebody-else"}});
  expect_refused(job[0], job[1]);
  expect_refused(job[1], job[0]);
}

TEST(PeerTrustTest, AServerWithoutTlsIsRefused) {
  expect_refused(std::nullopt, job_credentials().front());
}

// What somebody who has the credentials may still try.
class RawClient {
 public:
  explicit RawClient(const std::string& address)
      : stub_(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments())) {}

  // Sends bytes and does not read what comes. `left`: nothing: it has no deadline.
  grpc::StatusCode ask(const char* method, const Content& bytes, std::optional<Duration> left = kPlenty) {
    grpc::ClientContext context;
    if (left) context.set_deadline(gpr_time_from_nanos(left->count(), GPR_TIMESPAN));
    grpc::CompletionQueue queue;
    grpc::ByteBuffer message;
    grpc::Status status;
    const auto reader = stub_.PrepareUnaryCall(&context, method, to_buffer(bytes), &queue);
    reader->StartCall();
    reader->Finish(&message, &status, this);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status.error_code();
  }
  grpc::GenericStub& stub() { return stub_; }

 private:
  static grpc::ChannelArguments arguments() {
    grpc::ChannelArguments settings;
    settings.SetMaxReceiveMessageSize(-1);
    settings.SetMaxSendMessageSize(-1);
    return settings;
  }
  grpc::GenericStub stub_;
};

TEST(PeerTrustTest, RequestsThatAreNoneAreRefusedAndTheServerGoesOn) {
  TestShelf shelf;
  shelf.put(0, 1'000);
  const auto server = serve(shelf, std::nullopt);
  RawClient client(server->address());
  const Content good = encode(FetchRequest{.key = kTestKey, .items = {{.id = 0, .length = 1'000}}});
  Content version = good;
  version[4] = std::byte{9};
  EXPECT_EQ(client.ask("/foreload.Peers/Else", good), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(client.ask(kFetchMethod, {}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client.ask(kFetchMethod, Content(1'000)), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client.ask(kFetchMethod, version), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(client.ask(kFetchMethod, Content(10 << 20)), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(client.ask(kHelloMethod, good), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client.ask(kFetchMethod, good, std::nullopt), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(client.ask(kFetchMethod, good), grpc::StatusCode::OK);
  EXPECT_EQ(server->refusals(), (GrpcRefusals{.malformed = 5, .versions = 1}));
}

TEST(PeerTrustTest, WhatAServerRefusesIsCounted) {
  TestShelf shelf;
  const auto job = job_credentials({{.name = "somebody-else"}});
  const auto server = *GrpcServer::listen({.credentials = job[0]}, shelf,
                                          [](const Hello&) { return HelloAnswer{.refusal = "not you"}; });
  const auto stranger = peers_at(server->address(), job[1]);
  Wanted wanted(0, 3, 1'000);
  wanted.fetch_and_wait(*stranger, now() + 5s);
  const GrpcRefusals before = server->refusals();
  EXPECT_EQ(before, GrpcRefusals{.strangers = before.strangers});
  EXPECT_GE(before.strangers, 1u);
  const auto peer = peers_at(server->address(), job[0]);
  EXPECT_FALSE(peer->greet(0, now() + kPlenty));
  EXPECT_EQ(server->refusals(), (GrpcRefusals{.strangers = before.strangers, .hellos = 1}));
}

TEST(PeerTrustTest, AReaderThatDoesNotReadHoldsFewLeases) {
  constexpr std::size_t kSamples = 5'000;
  TestShelf shelf;
  FetchRequest request{.key = kTestKey};
  for (SampleId id = 0; id < kSamples; ++id) {
    shelf.put(id, 10'000);
    request.items.push_back({.id = id, .length = 10'000});
  }
  auto server = serve(shelf, std::nullopt);
  RawClient client(server->address());
  grpc::ClientContext context;
  context.set_deadline(gpr_time_from_seconds(50, GPR_TIMESPAN));
  grpc::CompletionQueue queue;
  const auto stream = client.stub().PrepareCall(&context, kFetchMethod, &queue);
  void* tag = nullptr;
  bool ok = false;
  stream->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  stream->WriteLast(to_buffer(encode(request)), {}, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  std::uint64_t last = 0;
  for (int i = 0; i < 250 && (last == 0 || last != shelf.takes()); ++i) {  // until it stands still
    last = shelf.takes();
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_GT(shelf.takes(), 0u);
  EXPECT_LT(shelf.takes(), kSamples / 5);
  EXPECT_LT(shelf.leases(), kSamples / 5);
  const Time begin = now();
  server.reset();  // ends all the same, and has all leases back
  EXPECT_LT(now() - begin, 20s);
  EXPECT_EQ(shelf.leases(), 0u);
  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

// A gRPC server that sends what it is told to, whatever it was asked.
class Liar final : public grpc::CallbackGenericService {
 public:
  Liar(std::vector<Content> messages, grpc::Status status)
      : messages_(std::move(messages)), status_(std::move(status)) {
    grpc::ServerBuilder builder;
    builder.SetMaxSendMessageSize(-1);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~Liar() override { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Telling(*this);
  }

 private:
  class Telling final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Telling(const Liar& liar) : liar_(liar) { tell(); }
    void OnWriteDone(bool ok) override {
      if (ok) {
        tell();
      } else {
        Finish(grpc::Status::CANCELLED);
      }
    }
    void OnDone() override { delete this; }

   private:
    void tell() {
      if (next_ == liar_.messages_.size()) return Finish(liar_.status_);
      message_ = to_buffer(liar_.messages_[next_++]);
      StartWrite(&message_);
    }
    const Liar& liar_;
    std::size_t next_ = 0;
    grpc::ByteBuffer message_;
  };

  std::vector<Content> messages_;
  grpc::Status status_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

Content sample_message(std::uint32_t index, SampleId id, std::size_t length) {
  const Content sample = test_sample(id, length);
  const auto head =
      encode(SampleFrame{.index = index, .result = PeerResult::kHere, .length = length, .hash = hash_bytes(sample)});
  Content bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), sample.begin(), sample.end());
  return bytes;
}

// What three wants of 100 bytes come to.
std::vector<PeerResult> results_with(const std::vector<Content>& messages, const grpc::Status& status = {}) {
  const Liar liar(messages, status);
  const auto peers = peers_at(liar.address(), std::nullopt);
  Wanted wanted(0, 3, 100);
  wanted.fetch_and_wait(*peers);
  EXPECT_EQ(wanted.ended(), 3u);
  return {wanted.result(0), wanted.result(1), wanted.result(2)};
}

TEST(PeerTrustTest, WhateverAPeerAnswersEveryWantEndsOnce) {
  using R = PeerResult;
  using Results = std::vector<R>;
  const Content zero = sample_message(0, 0, 100);
  const Content one = sample_message(1, 1, 100);
  const Content two = sample_message(2, 2, 100);
  EXPECT_EQ(results_with({zero, one, two}), (Results{R::kHere, R::kHere, R::kHere}));
  EXPECT_EQ(results_with({two, one, zero}), (Results{R::kHere, R::kHere, R::kHere}));
  EXPECT_EQ(results_with({zero, one, two, two}), (Results{R::kHere, R::kHere, R::kHere}));  // too much
  EXPECT_EQ(results_with({zero, one}), (Results{R::kHere, R::kHere, R::kWrong}));           // too little
  EXPECT_EQ(results_with({}), (Results{R::kWrong, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({zero, zero, two}), (Results{R::kHere, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({zero, sample_message(3, 3, 100)}), (Results{R::kHere, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({zero, sample_message(1, 1, 101), two}), (Results{R::kHere, R::kWrong, R::kHere}));
  EXPECT_EQ(results_with({Content(), zero}), (Results{R::kWrong, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({Content(31)}), (Results{R::kWrong, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({Content(5'000, std::byte{0xaa})}), (Results{R::kWrong, R::kWrong, R::kWrong}));
  EXPECT_EQ(results_with({zero, Content(3 << 20)}), (Results{R::kHere, R::kWrong, R::kWrong}));  // beyond the limit
}

TEST(PeerTrustTest, ErrorsOfAPeerEndWhatIsStillOpen) {
  using R = PeerResult;
  const Content zero = sample_message(0, 0, 100);
  for (int code = 1; code <= 16; ++code) {
    const auto results = results_with({zero}, grpc::Status(static_cast<grpc::StatusCode>(code), "\x1b[31mbecause\n"));
    EXPECT_EQ(results[0], R::kHere) << code;
    EXPECT_NE(results[1], R::kHere) << code;
    EXPECT_EQ(results[1], results[2]) << code;
  }
}

// Accepts connections and treats them so.
class RawServer {
 public:
  explicit RawServer(std::function<void(int)> treat) : treat_(std::move(treat)) {
    auto address = ListenAddress::parse("127.0.0.1:0");
    auto socket = address->listen();
    EXPECT_TRUE(socket);
    socket_ = std::move(*socket);
    address_ = ListenAddress::of_socket(socket_.get())->text();
    thread_ = std::thread([this] {
      while (!done_) {
        Descriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!connection.valid()) {
          std::this_thread::sleep_for(1ms);
          continue;
        }
        treat_(connection.get());
        connections_.push_back(std::move(connection));
      }
    });
  }
  ~RawServer() {
    done_ = true;
    thread_.join();
  }
  const std::string& address() const { return address_; }

 private:
  std::function<void(int)> treat_;
  Descriptor socket_;
  std::string address_;
  std::atomic<bool> done_ = false;
  std::vector<Descriptor> connections_;
  std::thread thread_;
};

TEST(PeerTrustTest, AServerThatSpeaksSomethingElseOrNothingCostsOneDeadline) {
  const std::vector<std::function<void(int)>> treatments = {
      [](int) {},
      [](int socket) { ::shutdown(socket, SHUT_RDWR); },
      [](int socket) {
        const Content noise = test_sample(1, 4'000);
        EXPECT_GT(::send(socket, noise.data(), noise.size(), MSG_NOSIGNAL), 0);
      },
      [](int socket) { EXPECT_GT(::send(socket, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL), 0); },
  };
  for (const auto& treat : treatments) {
    const RawServer server(treat);
    for (const bool secure : {true, false}) {
      auto peers = peers_at(server.address(), secure ? std::optional(job_credentials().front()) : std::nullopt);
      Wanted wanted(0, 3, 100);
      wanted.fetch_and_wait(*peers, now() + 300ms);
      EXPECT_TRUE(wanted.all(PeerResult::kUnreachable));
      peers.reset();
    }
  }
}

}  // namespace
}  // namespace foreload
