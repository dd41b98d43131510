#include "peers/host_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace foreload {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
}

bool is_six_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
}

Error wrong(const char* why) {
  return {Code::kInvalid, why};
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) {
    return wrong("ports are numbers from 1 to 65535");
  }
  return port;
}

Status check_host(std::string_view host, bool bracketed) {
  if (host.empty()) return wrong("it names no host; write HOST:PORT");
  if (host.size() > HostPort::kLongestHost) return wrong("it is too long");
  if (bracketed) {
    const bool six = std::all_of(host.begin(), host.end(), is_six_character) && host.find(':') != std::string::npos;
    return six ? Status() : wrong("brackets hold an address of IPv6");
  }
  if (!std::all_of(host.begin(), host.end(), is_name_character)) {
    return wrong("names of hosts have letters, digits, dots and dashes; write HOST:PORT");
  }
  if (std::all_of(host.begin(), host.end(), is_digit)) return wrong("a number alone is no host; write HOST:PORT");
  return {};
}

}  // namespace

Result<HostPort> HostPort::parse(std::string_view text, std::uint16_t default_port) {
  const bool bracketed = !text.empty() && text.front() == '[';
  const std::size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string_view::npos) return wrong("a bracket is not closed");
  if (!bracketed && end != text.rfind(':')) return wrong("an address of IPv6 stands in brackets");
  const std::string_view host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  FORELOAD_TRY(check_host(host, bracketed));
  const std::string_view rest = end == std::string_view::npos ? "" : text.substr(bracketed ? end + 1 : end);
  HostPort parsed{.host = std::string(host), .port = default_port};
  if (rest.empty() && default_port != 0) return parsed;
  if (rest.empty() || rest.front() != ':') return wrong("write HOST:PORT");
  FORELOAD_ASSIGN(parsed.port, parse_port(rest.substr(1)));
  return parsed;
}

std::string HostPort::text() const {
  return host.find(':') != std::string::npos ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string served_name(const std::string& name, const std::string& address) {
  const auto own = HostPort::parse(name, 0);
  const auto served = HostPort::parse(address, 0);
  if (!own || !served || own->port != 0) return name;
  return HostPort{.host = own->host, .port = served->port}.text();
}

}  // namespace foreload
