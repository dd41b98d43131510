#include "peers/surroundings.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "peers/places.h"

namespace foreload {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

socklen_t length_of(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string numbers_of(const sockaddr& address) {
  char host[NI_MAXHOST] = {};
  if (::getnameinfo(&address, length_of(address), host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  const std::string text = host;
  return text.substr(0, text.find('%'));
}

bool is_internet(const sockaddr* address) {
  return address != nullptr && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

AddressList list_of(const std::string& host, int& problem) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  problem = ::getaddrinfo(host.c_str(), std::to_string(kPeerPort).c_str(), &wanted, &list);
  return {problem == 0 ? list : nullptr, &::freeaddrinfo};
}

std::vector<std::string> look_up(const std::string& host) {
  int problem = 0;
  const AddressList list = list_of(host, problem);
  std::vector<std::string> found;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    if (is_internet(each->ai_addr)) found.push_back(numbers_of(*each->ai_addr));
  }
  return found;
}

std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  std::vector<std::string> found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (is_internet(each->ifa_addr)) found.push_back(numbers_of(*each->ifa_addr));
  }
  return found;
}

// To connect a datagram socket sends nothing; it only chooses the way.
Result<std::string> way_to(const std::string& host) {
  int problem = 0;
  const AddressList list = list_of(host, problem);
  if (!list) return Error{Code::kIo, fmt::format("\"{}\" is not known ({})", host, ::gai_strerror(problem))};
  int last = 0;
  for (const addrinfo* each = list.get(); each != nullptr; each = each->ai_next) {
    const Descriptor socket(::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    const bool found = socket.valid() && ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 &&
                       ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0;
    if (found) return numbers_of(reinterpret_cast<const sockaddr&>(own));
    last = errno;
  }
  return errno_error(fmt::format("there is no way to \"{}\"", host), last);
}

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace

Surroundings real_surroundings() {
  return {.variable = variable, .addresses = own_addresses, .look_up = look_up, .way_to = way_to};
}

bool is_loopback_address(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

}  // namespace foreload
