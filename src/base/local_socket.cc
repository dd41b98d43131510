// Sequenced packets keep frames whole: a frame arrives as it was sent or not at all.
#include "base/local_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"

namespace foreload {
namespace {

constexpr int kBacklog = 64;

struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;
};

Result<SocketName> socket_name(const LocalAddress& from) {
  SocketName name{};
  name.address.sun_family = AF_UNIX;
  const std::size_t prefix = from.is_path ? 0 : 1;  // an abstract name begins with a zero byte
  if (from.name.empty() || prefix + from.name.size() >= sizeof(name.address.sun_path)) {
    return Error{Code::kInvalid, fmt::format("\"{}\" is too long for a local socket: at most {} bytes", from.name,
                                             sizeof(name.address.sun_path) - 2)};
  }
  std::memcpy(name.address.sun_path + prefix, from.name.data(), from.name.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + prefix + from.name.size() + (1 - prefix));
  return name;
}

Result<Descriptor> new_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("no local socket can be had", errno);
  return socket;
}

const sockaddr* generic(const SocketName& name) {
  return reinterpret_cast<const sockaddr*>(&name.address);
}

// A socket file that nobody listens at. Only sockets of this user are ours to remove.
bool is_left_behind(const LocalAddress& address) {
  struct stat found {};
  if (::lstat(address.name.c_str(), &found) != 0) return false;
  if (!S_ISSOCK(found.st_mode) || found.st_uid != ::geteuid()) return false;
  const auto connected = connect_local(address);
  return connected.ok() && !connected->has_value();
}

}  // namespace

Result<std::optional<Descriptor>> listen_local(const LocalAddress& address) {
  FORELOAD_ASSIGN(const SocketName name, socket_name(address));
  FORELOAD_ASSIGN(Descriptor socket, new_socket());
  int bound = ::bind(socket.get(), generic(name), name.length);
  if (bound != 0 && errno == EADDRINUSE && address.is_path && is_left_behind(address)) {
    ::unlink(address.name.c_str());
    bound = ::bind(socket.get(), generic(name), name.length);
  }
  if (bound != 0 && errno == EADDRINUSE) return std::optional<Descriptor>();
  if (bound != 0 || ::listen(socket.get(), kBacklog) != 0) {
    return errno_error(fmt::format("can not listen at the local socket {}", address.name), errno);
  }
  return std::optional<Descriptor>(std::move(socket));
}

Result<std::optional<Descriptor>> connect_local(const LocalAddress& address) {
  FORELOAD_ASSIGN(const SocketName name, socket_name(address));
  FORELOAD_ASSIGN(Descriptor socket, new_socket());
  if (::connect(socket.get(), generic(name), name.length) == 0) return std::optional<Descriptor>(std::move(socket));
  if (errno == ECONNREFUSED || errno == ENOENT) return std::optional<Descriptor>();
  return errno_error(fmt::format("can not connect to the local socket {}", address.name), errno);
}

std::optional<Descriptor> accept_local(int listener) {
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return std::nullopt;
  return socket;
}

std::optional<PeerIdentity> peer_of(int socket) {
  ucred found{};
  socklen_t length = sizeof(found);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &found, &length) != 0) return std::nullopt;
  return PeerIdentity{found.uid, found.pid};
}

bool send_frame(int socket, std::span<const std::byte> bytes, std::span<const int> files) {
  FORELOAD_CHECK(bytes.size() <= kMostFrameBytes && files.size() <= kMostFrameFiles, "frames are short");
  iovec data{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFrameFiles * sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(rights), files.data(), files.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

Received receive_frame(int socket, Frame& frame, std::size_t files) {
  frame = Frame{};
  FORELOAD_CHECK(files <= kMostFrameFiles, "frames bring few descriptors");
  std::array<std::byte, kMostFrameBytes> buffer{};
  iovec data{.iov_base = buffer.data(), .iov_len = buffer.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFrameFiles * sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = files == 0 ? nullptr : space.data();
  message.msg_controllen = files == 0 ? 0 : CMSG_LEN(files * sizeof(int));
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Received::kNothing : Received::kClosed;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      frame.files.emplace_back(file);
    }
  }
  if (got == 0) return Received::kClosed;
  if ((message.msg_flags & MSG_TRUNC) != 0) return Received::kBad;
  frame.bytes.assign(buffer.begin(), buffer.begin() + got);
  return Received::kFrame;
}

void wait_readable(std::span<const int> sockets, Time deadline) {
  std::vector<pollfd> polled;
  for (const int socket : sockets) polled.push_back({.fd = socket, .events = POLLIN, .revents = 0});
  const Duration left = deadline == kNever ? Duration::zero() : std::max(deadline - now(), Duration::zero());
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  const int timeout = deadline == kNever ? -1 : static_cast<int>(std::min<std::int64_t>(rounded, 60'000));
  (void)::poll(polled.data(), polled.size(), timeout);  // an interrupted wait is a short one
}

}  // namespace foreload
