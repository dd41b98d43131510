// bench/peers_transport: samples of a peer over gRPC with TLS against a bare loop of gRPC that streams messages of the
// same length with the same credentials and settings, in the same process, one after the other in every round.
//   peers_transport [--json] [--rounds N] [--samples N]
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/random.h"
#include "base/thread.h"
#include "peers/peers_grpc.h"
#include "peers/peers_grpc_parts.h"
#include "probe/loader_rates.h"
#include "report.h"

namespace foreload {
namespace {

constexpr std::size_t kLength = 110'000;
constexpr std::size_t kBatch = 64;
constexpr std::size_t kBatches = 4;  // fetches, or streams, under way at once
constexpr std::size_t kLanes = 2;    // threads of the server
constexpr PeerKey kKey{.fingerprint = 1, .validators = 2, .roster = 3};
constexpr Duration kLimit = std::chrono::seconds(60);

struct Settings {
  std::size_t samples = 4'096;
  unsigned rounds = 7;
  bool json = false;
};

// A batch of samples in memory. Leases of it are not counted.
class Samples final : public PeerShelf, private LeaseBook {
 public:
  Samples() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      std::vector<std::byte>& bytes = samples_.emplace_back(kLength);
      for (std::size_t k = 0; k < kLength; ++k) bytes[k] = static_cast<std::byte>(mix64(i * kLength + k));
      hashes_.push_back(hash_bytes(bytes));
    }
  }
  std::span<const std::byte> bytes(SampleId id) const { return samples_[id % kBatch]; }

  bool knows(const PeerKey& key) const override { return key == kKey; }
  void expect(const PeerKey&, std::span<const PeerItem>) override {}
  Taken take(const PeerKey&, const PeerItem& item) override {
    return {Taken::Kind::kHere, Lease(this, item.id, bytes(item.id)), hashes_[item.id % kBatch]};
  }

 private:
  void add(SampleId) override {}
  void drop(SampleId) override {}

  std::vector<std::vector<std::byte>> samples_;
  std::vector<std::uint64_t> hashes_;
};

// Ours: a batch is fetched again as soon as it is whole.
class Peers {
 public:
  Status start(Samples& samples, const PeerCredentials& credentials) {
    FORELOAD_ASSIGN(
        server_, GrpcServer::listen({.credentials = credentials}, samples, [](const Hello&) { return HelloAnswer(); }));
    FORELOAD_ASSIGN(peers_, GrpcPeers::open({.addresses = {server_->address()}, .credentials = credentials}));
    for (auto& batch : memory_) batch.assign(kBatch, std::vector<std::byte>(kLength));
    return {};
  }
  // Seconds for so many samples.
  Result<double> run(std::size_t samples) {
    const Time begin = now();
    std::array<std::size_t, kBatches> left{};
    std::size_t asked = 0;
    std::size_t done = 0;
    for (std::size_t i = 0; i < kBatches; ++i) asked += fetch(i, left[i]);
    std::vector<PeerEnd> ends;
    while (done < asked) {
      ends.clear();
      peers_->wait(ends, begin + kLimit);
      if (ends.empty()) return Error{Code::kIo, "samples do not come"};
      for (const PeerEnd& end : ends) {
        if (end.result != PeerResult::kHere) {
          return Error{Code::kIo, fmt::format("a sample did not come; {}", fmt::join(peers_->take_warnings(), "; "))};
        }
        ++done;
        if (--left[end.token] == 0 && asked < samples) asked += fetch(end.token, left[end.token]);
      }
    }
    return seconds(now() - begin) * static_cast<double>(samples) / static_cast<double>(done);
  }

 private:
  std::size_t fetch(std::size_t batch, std::size_t& left) {
    std::vector<PeerWant> wants;
    for (SampleId id = 0; id < kBatch; ++id) wants.push_back({.id = id, .into = memory_[batch][id], .token = batch});
    peers_->fetch(0, kKey, wants, now() + kLimit);
    left = kBatch;
    return kBatch;
  }

  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<GrpcPeers> peers_;
  std::array<std::vector<std::vector<std::byte>>, kBatches> memory_;
};

// The bare loop: a server that writes the same messages, one at a time in every stream, and a client that drops them.
class BareLoop {
 public:
  Status start(const Samples& samples, const PeerCredentials& credentials) {
    samples_ = &samples;
    int port = 0;
    grpc::ServerBuilder builder;
    set_arguments(builder);
    builder.AddListeningPort("127.0.0.1:0", server_credentials(credentials), &port);
    builder.RegisterAsyncGenericService(&methods_);
    for (std::size_t i = 0; i < kLanes; ++i) queues_.push_back(builder.AddCompletionQueue());
    server_ = builder.BuildAndStart();
    if (!server_) return Error{Code::kIo, "the bare loop can not listen"};
    for (const auto& queue : queues_) {
      FORELOAD_ASSIGN(Thread thread, Thread::start("bare", [this, served = queue.get()] { serve(*served); }));
      threads_.push_back(std::move(thread));
    }
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), channel_credentials(credentials), channel_arguments()));
    return {};
  }
  ~BareLoop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    for (const auto& queue : queues_) queue->Shutdown();
  }
  BareLoop() = default;
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  // Seconds for so many messages, divided among the streams.
  Result<double> run(std::size_t samples) {
    const Time begin = now();
    grpc::CompletionQueue queue;
    std::vector<std::unique_ptr<Reading>> streams;
    for (std::size_t i = 0; i < kBatches; ++i) {
      streams.push_back(std::make_unique<Reading>());
      streams.back()->start(*stub_, queue, samples / kBatches);
    }
    std::size_t open = kBatches;
    std::size_t got = 0;
    void* tag = nullptr;
    bool ok = false;
    while (open > 0 && queue.Next(&tag, &ok)) {
      auto* const stream = static_cast<Reading*>(tag);
      const std::size_t before = stream->got;
      if (stream->on_event(ok)) --open;
      got += stream->got - before;
    }
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    if (got != samples / kBatches * kBatches) return Error{Code::kIo, "messages of the bare loop are missing"};
    return seconds(now() - begin) * static_cast<double>(samples) / static_cast<double>(got);
  }

 private:
  enum class Stage { kFirst, kMoving, kEnding };

  struct Reading {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::ByteBuffer message;
    grpc::Status status;
    Stage stage = Stage::kFirst;
    std::size_t got = 0;

    void start(grpc::GenericStub& stub, grpc::CompletionQueue& queue, std::uint64_t count) {
      context.set_initial_metadata_corked(true);
      stream = stub.PrepareCall(&context, "/bare", &queue);
      stream->StartCall(nullptr);
      stream->WriteLast(to_buffer(std::as_bytes(std::span(&count, 1))), {}, this);
    }
    bool on_event(bool ok) {  // true: it is over
      if (stage == Stage::kEnding) return true;
      if (stage == Stage::kMoving && ok) {
        got += message.Length() == kLength + kSampleFrameBytes ? 1 : 0;
        message.Clear();
      }
      stage = ok ? Stage::kMoving : Stage::kEnding;
      if (ok) {
        stream->Read(&message, this);
      } else {
        stream->Finish(&status, this);
      }
      return false;
    }
  };

  struct Writing {
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream{&context};
    grpc::ByteBuffer request;
    Stage stage = Stage::kFirst;
    bool asked = false;
    std::uint64_t left = 0;
  };

  void serve(grpc::ServerCompletionQueue& queue) {
    if (server_) await(queue);
    void* tag = nullptr;
    bool ok = false;
    while (queue.Next(&tag, &ok)) {
      std::unique_ptr<Writing> call(static_cast<Writing*>(tag));
      if (call->stage == Stage::kFirst && ok) await(queue);
      if (!ok || call->stage == Stage::kEnding) continue;
      go_on(*call.release());
    }
  }
  void await(grpc::ServerCompletionQueue& queue) {
    auto* const call = new Writing;
    methods_.RequestCall(&call->context, &call->stream, &queue, &queue, call);
  }
  void go_on(Writing& call) {
    if (call.stage == Stage::kFirst && !call.asked) {
      call.stage = Stage::kMoving;
      return call.stream.Read(&call.request, &call);
    }
    if (!call.asked) {
      const auto bytes = to_bytes(call.request);
      std::memcpy(&call.left, bytes.data(), std::min(bytes.size(), sizeof(call.left)));
      call.asked = true;
    }
    if (call.left == 0) {
      call.stage = Stage::kEnding;
      return call.stream.Finish(grpc::Status::OK, &call);
    }
    const std::array<std::byte, kSampleFrameBytes> head{};
    const auto bytes = samples_->bytes(--call.left);
    const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), head.size()),
                                            grpc::Slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE)};
    call.stream.Write(grpc::ByteBuffer(slices.data(), slices.size()), &call);
  }

  const Samples* samples_ = nullptr;
  grpc::AsyncGenericService methods_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::vector<Thread> threads_;
};

Status measure(const Settings& settings, BenchReport& report) {
  const CredentialTerms terms;
  FORELOAD_ASSIGN(const auto credentials, new_credentials(std::span(&terms, 1)));
  Samples samples;
  Peers peers;
  BareLoop bare;
  FORELOAD_TRY(peers.start(samples, credentials.front()));
  FORELOAD_TRY(bare.start(samples, credentials.front()));
  std::vector<double> ratios, cpu_ratios, rates, bare_rates;
  const double megabytes = static_cast<double>(settings.samples * kLength) / 1e6;
  for (unsigned round = 0; round <= settings.rounds; ++round) {
    const double cpu = cpu_seconds();
    FORELOAD_ASSIGN(const double without, bare.run(settings.samples));
    const double bare_cpu = cpu_seconds() - cpu;
    FORELOAD_ASSIGN(const double ours, peers.run(settings.samples));
    if (round == 0) continue;  // warms everything up
    cpu_ratios.push_back(bare_cpu / (cpu_seconds() - cpu - bare_cpu));
    ratios.push_back(without / ours);
    rates.push_back(megabytes / ours);
    bare_rates.push_back(megabytes / without);
  }
  report.add(
      "cluster/grpc_tls", median(ratios), "ratio", 0.85, true,
      fmt::format("samples of {} bytes through GrpcPeers and GrpcServer ({:.0f} MB/s), hashes checked, against a "
                  "bare loop of gRPC with the same credentials, settings and message length ({:.0f} MB/s), {} "
                  "streams at once on loopback; per CPU-second {:.2f}; median of {} rounds of {} samples, "
                  "alternating",
                  kLength, median(rates), median(bare_rates), kBatches, median(cpu_ratios), settings.rounds,
                  settings.samples));
  return {};
}

int main_with(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") settings.json = true;
    if (i + 1 == argc) break;
    if (flag == "--rounds") settings.rounds = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
    if (flag == "--samples") settings.samples = std::strtoul(argv[++i], nullptr, 10);
  }
  BenchReport report;
  const Status status = measure(settings, report);
  if (status.ok()) return report.print(settings.json);
  fmt::print(stderr, "bench/peers_transport: {}\n", status.error().message);
  return 2;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with(argc, argv);
}
