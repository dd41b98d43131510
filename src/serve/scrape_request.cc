#include "serve/scrape_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace foreload {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

// The part before the next blank, which is taken away with it.
std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::optional<std::size_t> head_end(std::string_view received, std::size_t searched) {
  constexpr std::size_t kEnd = 3;  // "\n\r\n"; some send "\n\n"
  for (std::size_t i = searched - std::min(searched, kEnd - 1); i < received.size(); ++i) {
    if (received[i] != '\n') continue;
    const std::string_view behind = received.substr(i + 1, 2);
    if (behind.starts_with('\n')) return i + 2;
    if (behind == "\r\n") return i + 3;
  }
  return std::nullopt;
}

Asked asked_for(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string_view method = take_word(line);
  const std::string_view target = take_word(line);
  const bool is_word = std::all_of(method.begin(), method.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (method.empty() || !is_word || !target.starts_with('/') || (line != "HTTP/1.1" && line != "HTTP/1.0")) {
    return Asked::kMalformed;
  }
  const std::string_view path = target.substr(0, target.find('?'));
  if (path != "/metrics" && path != "/healthz") return Asked::kUnknown;
  if (method != "GET") return Asked::kOtherMethod;
  return path == "/metrics" ? Asked::kMetrics : Asked::kHealth;
}

std::string http_bytes(const HttpAnswer& answer) {
  return fmt::format("HTTP/1.1 {} {}\r\n{}Content-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                     answer.status, reason(answer.status), answer.status == 405 ? "Allow: GET\r\n" : "", answer.type,
                     answer.body.size(), answer.body);
}

}  // namespace foreload
