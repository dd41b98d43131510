// Why the settings are what they are stands in docs/design/peers.md.
#include "peers/peers_grpc_parts.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security_constants.h>
#include <grpc/support/log.h>

#include <cstdlib>

#include "peers/wire.h"

namespace foreload {
namespace {

// A connection on which nothing comes is asked whether it is there. Calls have their deadlines, so this is for the
// connection only, and patient: a host that is short of CPU is no dead one.
constexpr int kKeepaliveTime = 10'000;     // ms
constexpr int kKeepaliveTimeout = 10'000;  // ms
constexpr int kReconnect = 200;            // ms, between two attempts, up to
constexpr int kReconnectMost = 1'000;      // ms: the breaker decides how often a peer is asked, not the channel
constexpr int kConnectTimeout = 5'000;     // ms
constexpr int kHandshakeTimeout = 5'000;   // ms
constexpr int kMostStreams = 256;          // calls at once per connection
constexpr int kFrame = 1 << 20;            // bytes per HTTP/2 frame: a part in few of them

void say_nothing(gpr_log_func_args*) {}

}  // namespace

void begin_grpc() {
  [[maybe_unused]] static const bool begun = [] {
    if (std::getenv("GRPC_VERBOSITY") == nullptr) gpr_set_log_function(say_nothing);
    grpc_init();
    return true;
  }();
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const std::optional<PeerCredentials>& credentials) {
  if (!credentials) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = credentials->ca;
  options.pem_private_key = credentials->key;
  options.pem_cert_chain = credentials->certificate;
  return grpc::SslCredentials(options);
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::optional<PeerCredentials>& credentials) {
  if (!credentials) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = credentials->ca;
  options.pem_key_cert_pairs.push_back({credentials->key, credentials->certificate});
  return grpc::SslServerCredentials(options);
}

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kPeerCertificateName);
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(kMostAnswerBytes));
  arguments.SetMaxSendMessageSize(static_cast<int>(kMostRequestBytes));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // whatever the environment says: peers are asked directly
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnect);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeout);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMost);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTime);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeout);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrame);
  return arguments;
}

void set_arguments(grpc::ServerBuilder& builder) {
  builder.SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  builder.SetMaxReceiveMessageSize(static_cast<int>(kMostRequestBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(kMostAnswerBytes));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a port that is taken is taken
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeout);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTime);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeout);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveTime / 2);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrame);
}

grpc::ByteBuffer to_buffer(std::span<const std::byte> bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  return grpc::ByteBuffer(&slice, 1);
}

std::vector<std::byte> to_bytes(const grpc::ByteBuffer& buffer) {
  std::vector<std::byte> bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    const auto part = std::as_bytes(std::span(slice.begin(), slice.size()));
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

}  // namespace foreload
