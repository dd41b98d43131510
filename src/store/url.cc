#include "store/url.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"

namespace foreload {
namespace {

constexpr std::array<std::string_view, 3> kSchemes{"http", "https", "s3"};
constexpr std::string_view kBetween = "://";
constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kShownBytes = 120;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A URL may hold a password or a signature by mistake, and anything else: only what is harmless is repeated.
std::string shown(std::string_view text) {
  const bool is_s3 = text.substr(0, 5) == "s3://";
  if (const std::size_t query = text.find('?'); query != std::string_view::npos && !is_s3) {
    text = text.substr(0, query + 1);
  }
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) text.remove_prefix(at + 1);
  std::string plain;
  for (const char c : text.substr(0, kShownBytes)) plain += is_control(c) ? '?' : c;
  return text.size() > kShownBytes ? plain + "…" : plain;
}

Error wrong(std::string_view text, std::string_view what) {
  return {Code::kInvalid, fmt::format("the URL {} can not be used: {}", shown(text), what)};
}

bool is_host_name(std::string_view host) {
  const bool is_address = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_address) {
    const std::string_view inside = host.substr(1, host.size() - 2);
    return std::all_of(inside.begin(), inside.end(), [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; });
  }
  return !host.empty() && host.front() != '.' && host.front() != '-' &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '-' || c == '_'; });
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && stop == text.data() + text.size() && port > 0 && port <= 65535;
}

// What is wrong with "host" or "host:port", or nothing.
std::string_view fault_of_authority(std::string_view authority) {
  if (authority.find('@') != std::string_view::npos) {
    return "user names and passwords in URLs are refused; credentials come from the environment";
  }
  if (authority.size() > kLongestHost) return "its host is longer than 255 characters";
  const std::size_t colon = authority.back() == ']' ? std::string_view::npos : authority.rfind(':');
  if (!is_host_name(authority.substr(0, colon))) return "it has no proper host";
  if (colon != std::string_view::npos && !is_port(authority.substr(colon + 1))) return "its port is none";
  return {};
}

std::string_view fault_of_bucket(std::string_view bucket) {
  if (bucket.size() < 3 || bucket.size() > kLongestHost) return "a bucket's name has 3 to 255 characters";
  const bool is_plain = bucket.find(':') == std::string_view::npos && bucket.front() != '[' && is_host_name(bucket) &&
                        bucket.find("..") == std::string_view::npos;
  return is_plain ? std::string_view() : "a bucket's name has letters, digits, dots, hyphens and underscores only";
}

std::string_view fault_of_web_path(std::string_view path) {
  if (path.find('#') != std::string_view::npos) return "fragments (#) are refused; a # in a name is written %23";
  if (path.find('?') != std::string_view::npos) return "queries (?) are refused; a ? in a name is written %3F";
  for (std::size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    if (path.substr(at, 3) == "%2f" || path.substr(at, 3) == "%2F") return "an escaped slash (%2F) is refused";
  }
  return {};
}

bool has_dot_segment(std::string_view path) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

}  // namespace

std::string Url::text() const {
  return fmt::format("{}://{}/{}", scheme, host, is_s3() ? path : percent_encode(path, true));
}

bool is_url(std::string_view text) {
  const std::string_view scheme = text.substr(0, std::min(text.find(':'), text.size()));
  return scheme.size() < text.size() && std::find(kSchemes.begin(), kSchemes.end(), scheme) != kSchemes.end();
}

std::string percent_encode(std::string_view text, bool keep_slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slashes)) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return encoded;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size() || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0) return std::nullopt;
    decoded += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
    i += 2;
  }
  return decoded;
}

std::string_view fault_of_path(std::string_view path) {
  if (path.size() > kLongestKey) return "its path is longer than 1,024 bytes";
  if (std::any_of(path.begin(), path.end(), is_control)) return "it has control characters";
  if (path.substr(0, 1) == "/") return "its path begins with two slashes";
  if (has_dot_segment(path)) return "\".\" and \"..\" in a path are refused";
  // Whoever decodes once too often must not leave the folder either.
  if (const auto decoded = percent_decode(path); decoded && has_dot_segment(*decoded)) {
    return "an escaped \"..\" in a path is refused";
  }
  return {};
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kLongestUrl) return wrong(text, "it is longer than 4,096 bytes");
  if (std::any_of(text.begin(), text.end(), is_control)) return wrong(text, "it has control characters");
  Url url;
  url.scheme = text.substr(0, std::min(text.find(':'), text.size()));
  const std::string_view after = text.substr(url.scheme.size());
  if (!is_url(text) || after.substr(0, kBetween.size()) != kBetween) {
    return wrong(text, "it is none of http://HOST/PATH, https://HOST/PATH and s3://BUCKET/PREFIX");
  }
  const std::string_view rest = after.substr(kBetween.size());
  const std::string_view authority = rest.substr(0, std::min(rest.find('/'), rest.size()));
  if (authority.empty()) return wrong(text, url.is_s3() ? "it names no bucket" : "it names no host");
  std::string_view fault = url.is_s3() ? fault_of_bucket(authority) : fault_of_authority(authority);
  if (!fault.empty()) return wrong(text, fault);
  for (const char c : authority) url.host += c >= 'A' && c <= 'Z' && !url.is_s3() ? static_cast<char>(c + 32) : c;
  const std::string_view path = rest.substr(std::min(authority.size() + 1, rest.size()));
  if (!url.is_s3()) fault = fault_of_web_path(path);
  if (!fault.empty()) return wrong(text, fault);
  const auto decoded = url.is_s3() ? std::optional<std::string>(path) : percent_decode(path);
  if (!decoded) return wrong(text, "a % in it is no escape; a % in a name is written %25");
  fault = fault_of_path(*decoded);
  if (!fault.empty()) return wrong(text, fault);
  url.path = *decoded;
  return url;
}

}  // namespace foreload
