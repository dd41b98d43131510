// What both sides of gRPC share: names of methods, settings of connections, buffers.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/types.h"
#include "peers/credentials.h"

namespace foreload {

inline constexpr const char* kFetchMethod = "/foreload.Peers/Fetch";
inline constexpr const char* kHelloMethod = "/foreload.Peers/Hello";
inline constexpr Duration kLongestCall = std::chrono::seconds(60);  // a server takes no call with a later deadline

// Of a fetch with a PeerKey that the server does not have, or not yet; for nothing else.
inline constexpr grpc::StatusCode kUnknownKeyStatus = grpc::StatusCode::FAILED_PRECONDITION;

// Before anything of gRPC. It writes nothing to standard error unless GRPC_VERBOSITY is set: users are told by
// warnings. And it stays until the process ends: with its last object it would end its own threads, of which one may be
// in a poll of 10 s.
void begin_grpc();

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const std::optional<PeerCredentials>& credentials);
std::shared_ptr<grpc::ServerCredentials> server_credentials(const std::optional<PeerCredentials>& credentials);
grpc::ChannelArguments channel_arguments();
void set_arguments(grpc::ServerBuilder& builder);

grpc::ByteBuffer to_buffer(std::span<const std::byte> bytes);
// In one piece. REQUIRES: the length is bounded.
std::vector<std::byte> to_bytes(const grpc::ByteBuffer& buffer);

}  // namespace foreload
