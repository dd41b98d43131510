#include "serve/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace foreload {
namespace {

constexpr int kBacklog = 64;

// What was written, taken apart.
struct Parts {
  std::string host;
  std::string port;
  int flags = 0;  // of its look-up
};

Error unclear(const std::string& text, std::string_view why) {
  return {Code::kInvalid,
          fmt::format("\"{}\" is no address to listen at: {}; write PORT, HOST:PORT or [::1]:PORT", text, why)};
}

Result<Parts> take_apart(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Parts{"127.0.0.1", text, AI_NUMERICHOST};
  Parts parts{text.substr(0, colon), text.substr(colon + 1), 0};
  if (parts.host.empty()) return unclear(text, "for all addresses of the machine, 0.0.0.0 or [::] has to be written");
  if (parts.host.front() == '[' || parts.host.back() == ']') {
    const bool whole = parts.host.front() == '[' && parts.host.back() == ']';
    if (!whole || parts.host.find(':') == std::string::npos) return unclear(text, "brackets hold an address of IPv6");
    parts.host = parts.host.substr(1, parts.host.size() - 2);
    parts.flags = AI_NUMERICHOST;
  } else if (parts.host.find(':') != std::string::npos) {
    return unclear(text, "an address of IPv6 stands in brackets");
  }
  if (parts.host.find('\0') != std::string::npos) return unclear(text, "there is a zero byte in it");
  return parts;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return port;
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(const std::string& text) {
  FORELOAD_ASSIGN(const Parts parts, take_apart(text));
  const auto port = parse_port(parts.port);
  if (!port) return unclear(text, fmt::format("\"{}\" is no port from 0 to 65535", parts.port));
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICSERV | AI_PASSIVE | parts.flags;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int problem = ::getaddrinfo(parts.host.c_str(), std::to_string(*port).c_str(), &wanted, &list);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(problem == 0 ? list : nullptr, &::freeaddrinfo);
  if (!found) return unclear(text, fmt::format("\"{}\" is not known ({})", parts.host, ::gai_strerror(problem)));
  ListenAddress address;
  FORELOAD_CHECK(found->ai_addrlen <= sizeof(address.address_), "there is room for every kind of address");
  std::memcpy(&address.address_, found->ai_addr, found->ai_addrlen);
  address.length_ = found->ai_addrlen;
  return address;
}

Result<ListenAddress> ListenAddress::of_socket(int socket) {
  ListenAddress address;
  address.length_ = sizeof(address.address_);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.address_), &address.length_) != 0) {
    return errno_error("a listening socket has no address", errno);
  }
  return address;
}

std::uint16_t ListenAddress::port() const {
  return ntohs(address_.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address_).sin6_port
                                              : reinterpret_cast<const sockaddr_in&>(address_).sin_port);
}

std::string ListenAddress::text() const {
  char host[NI_MAXHOST] = {};
  const int problem = ::getnameinfo(generic(), length_, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  FORELOAD_CHECK(problem == 0, "an address can be written as numbers");
  return address_.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port()) : fmt::format("{}:{}", host, port());
}

bool ListenAddress::is_loopback() const {
  if (address_.ss_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6&>(address_).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
  }
  return ntohl(reinterpret_cast<const sockaddr_in&>(address_).sin_addr.s_addr) >> 24 == 127;
}

Result<Descriptor> ListenAddress::listen() const {
  Descriptor socket(::socket(address_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error(fmt::format("can not listen at {}", text()), errno);
  const int on = 1;  // connections that ended a moment ago do not keep the address
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address_.ss_family == AF_INET6) {  // what was written, and nothing else
    (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  }
  if (::bind(socket.get(), generic(), length_) == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  if (errno == EADDRINUSE) {
    return Error{Code::kIo, fmt::format("can not listen at {}: somebody else does; name another port, or 0 for one "
                                        "that is free",
                                        text())};
  }
  return errno_error(fmt::format("can not listen at {}", text()), errno);
}

}  // namespace foreload
