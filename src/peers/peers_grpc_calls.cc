// A fetch:  sending → reading … reading → ending  with one operation under way at a time. An answer that breaks the
// rules is cancelled; gRPC ends every call at its deadline at the latest. So all wants end, each once, and `into` is
// written to only before that.
#include "peers/peers_grpc_calls.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <string_view>

#include "base/clock.h"
#include "peers/host_port.h"
#include "peers/peers_grpc_parts.h"
#include "serve/listen_address.h"

namespace foreload {
namespace {

constexpr std::size_t kLongestReason = 300;

// What gRPC or a peer says, as it may be shown. Of a connection that can not be made only the last reason counts.
std::string shown(const std::string& text) {
  constexpr std::string_view kLast = "last error: ";
  const std::size_t last = text.find(kLast);
  std::string clean = text.substr(last == std::string::npos ? 0 : last + kLast.size(), kLongestReason);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return clean;
}

Error cannot_ask(const std::string& address, std::string_view why) {
  return {Code::kInvalid, fmt::format("can not ask a peer at \"{}\": {}", address, why)};
}

// "host:port", and nothing that gRPC would read as something else.
Status check_address(const std::string& address, bool has_credentials) {
  const auto parsed = HostPort::parse(address, 0);
  if (!parsed) return cannot_ask(address, parsed.error().message);
  if (parsed->port == 0) return cannot_ask(address, "ports are numbers from 1 to 65535");
  if (has_credentials) return {};
  FORELOAD_ASSIGN(const ListenAddress found, ListenAddress::parse(address));
  if (found.is_loopback()) return {};
  return cannot_ask(address,
                    "other machines are asked only with credentials; make some with foreload agent "
                    "--make-credentials");
}

FetchOutcome::Kind kind_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::RESOURCE_EXHAUSTED:  // a message was too long
      return FetchOutcome::Kind::kBadAnswer;
    case kUnknownKeyStatus:
      return FetchOutcome::Kind::kUnknownKey;
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::UNIMPLEMENTED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return FetchOutcome::Kind::kRefused;
    default:
      return FetchOutcome::Kind::kUnreachable;
  }
}

// What becomes of wants that are still open after it.
PeerResult result_of(FetchOutcome::Kind kind) {
  if (kind == FetchOutcome::Kind::kUnreachable) return PeerResult::kUnreachable;
  if (kind == FetchOutcome::Kind::kUnknownKey || kind == FetchOutcome::Kind::kRefused) return PeerResult::kRefused;
  return PeerResult::kWrong;
}

}  // namespace

Result<PeerLine> PeerLine::open(const std::string& address, const std::optional<PeerCredentials>& credentials) {
  FORELOAD_TRY(check_address(address, credentials.has_value()));
  begin_grpc();
  PeerLine line;
  line.address = address;
  line.channel = grpc::CreateCustomChannel("dns:///" + address, channel_credentials(credentials), channel_arguments());
  line.stub = std::make_unique<grpc::GenericStub>(line.channel);
  return line;
}

void PeerCall::set_deadline(Duration left) {
  context_.set_deadline(
      gpr_time_from_nanos(std::clamp(left, Duration(0), Duration(kLongestCall)).count(), GPR_TIMESPAN));
}

void FetchCall::start(const PeerLine& line, grpc::CompletionQueue& queue, const FetchRequest& request, Time deadline) {
  begun_ = now();
  set_deadline(deadline - begun_);
  context_.set_initial_metadata_corked(true);  // one operation instead of two
  stream_ = line.stub->PrepareCall(&context_, kFetchMethod, &queue);
  stream_->StartCall(nullptr);
  stream_->WriteLast(to_buffer(encode(request)), {}, tag());
}

void FetchCall::on_event(bool ok) {
  if (stage_ == Stage::kEnding) return finish();
  if (stage_ == Stage::kReading && ok) take_message();
  if (ok && !broken_) {
    stage_ = Stage::kReading;
    stream_->Read(&message_, tag());
  } else {
    stage_ = Stage::kEnding;
    stream_->Finish(&status_, tag());
  }
}

void FetchCall::take_message() {
  pieces_.clear();
  if (message_.Dump(&slices_).ok()) {
    for (const grpc::Slice& slice : slices_) pieces_.push_back(std::as_bytes(std::span(slice.begin(), slice.size())));
  }
  const std::size_t wrong = answer_.wrong();
  const Bytes bytes = answer_.bytes();
  broken_ = !answer_.take(pieces_, ends_);
  slices_.clear();
  message_.Clear();
  if (broken_) cancel();
  if (answer_.wrong() != wrong) listener_.on_bad_bytes(*this);
  if (!ends_.empty()) listener_.on_ends(*this, ends_, answer_.bytes() - bytes);
}

FetchOutcome FetchCall::outcome() const {
  using Kind = FetchOutcome::Kind;
  if (broken_) return {Kind::kBadAnswer, "a message breaks the rules"};
  if (!status_.ok()) return {kind_of(status_.error_code()), shown(status_.error_message())};
  if (!answer_.complete()) return {Kind::kBadAnswer, "it ends before all was answered"};
  if (answer_.wrong() != 0) return {Kind::kBadBytes, {}};
  return {};
}

void FetchCall::finish() {
  const FetchOutcome how = outcome();
  listener_.on_fetched(*this, how);
  answer_.end(result_of(how.kind), ends_);
  if (!ends_.empty()) listener_.on_ends(*this, ends_, 0);
  listener_.on_over(*this);
}

void GreetCall::start(const PeerLine& line, grpc::CompletionQueue& queue, std::span<const std::byte> hello,
                      Time deadline) {
  set_deadline(deadline - now());
  grpc::experimental::ChannelResetConnectionBackoff(line.channel.get());
  reader_ = line.stub->PrepareUnaryCall(&context_, kHelloMethod, to_buffer(hello), &queue);
  reader_->StartCall();
  reader_->Finish(&message_, &status_, tag());
}

void GreetCall::on_event(bool) {
  listener_.on_greeted(*this, answer());
}

Result<HelloAnswer> GreetCall::answer() const {
  if (!status_.ok()) {
    const bool refused = result_of(kind_of(status_.error_code())) == PeerResult::kRefused;
    return Error{refused ? Code::kMismatch : Code::kIo,
                 fmt::format("{} ({})", refused ? "it refuses this host" : "it can not be reached",
                             shown(status_.error_message()))};
  }
  auto answer = parse_hello_answer(to_bytes(message_));
  if (!answer) return Error{Code::kMismatch, "what it answers is no answer of an agent"};
  if (answer->protocol != kPeerProtocol) {
    return Error{Code::kMismatch, fmt::format("it speaks version {} of the protocol, this host version {}: run the "
                                              "same Foreload on all hosts",
                                              answer->protocol, kPeerProtocol)};
  }
  if (!answer->refusal.empty()) return Error{Code::kMismatch, "it refuses this host: " + answer->refusal};
  return std::move(*answer);
}

std::string FetchOutcome::text() const {
  switch (kind) {
    case Kind::kUnreachable:
      return fmt::format("does not answer in time ({}); its samples come from elsewhere until it does", why);
    case Kind::kRefused:
      return fmt::format("refuses this host ({}); its samples come from elsewhere", why);
    case Kind::kBadBytes:
      return "sends bytes that are not the sample's; they were dropped, and fetched from elsewhere";
    default:
      return fmt::format("does not answer as a peer should ({}); its samples come from elsewhere", why);
  }
}

}  // namespace foreload
