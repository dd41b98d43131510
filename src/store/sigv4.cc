// The four steps of the published algorithm, in S3's flavour (the path is encoded once, and signed as it is sent):
//   canonical request = method, path, sorted query, sorted headers, names of the headers, hash of the body
//   text to sign      = algorithm, time, scope (day/region/s3/aws4_request), hash of the canonical request
//   key               = HMAC chain over the parts of the scope, beginning with the secret
//   signature         = HMAC(key, text to sign)
#include "store/sigv4.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace foreload {
namespace {

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(const Digest& digest) {
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

Digest sha256(std::string_view text) {
  Digest digest{};
  FORELOAD_CHECK(SHA256(bytes_of(text), text.size(), digest.data()) != nullptr, "SHA-256 needs nothing");
  return digest;
}

Digest hmac(std::string_view key, std::string_view text) {
  Digest digest{};
  unsigned size = 0;
  const unsigned char* const done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(), digest.data(), &size);
  FORELOAD_CHECK(done != nullptr && size == digest.size(), "HMAC-SHA-256 needs nothing");
  return digest;
}

struct UrlParts {
  std::string_view host;
  std::string_view path;
  std::string_view query;
};

UrlParts split_url(std::string_view url) {
  url.remove_prefix(std::min(url.find("://") + 3, url.size()));
  const std::size_t path_at = std::min(url.find_first_of("/?"), url.size());
  const std::size_t query_at = std::min(url.find('?'), url.size());
  return {url.substr(0, path_at), url.substr(path_at, query_at - path_at),
          url.substr(std::min(query_at + 1, url.size()))};
}

// Sorted by name, then by value; a name alone gets an empty value.
std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    pairs.emplace_back(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string text;
  for (const auto& [name, value] : pairs) text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return result;
}

// Blanks at the ends go, several in a row become one.
std::string squeezed(std::string_view value) {
  std::string result;
  bool wants_blank = false;
  for (const char c : value) {
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_blank && wants_blank && !result.empty()) result += ' ';
    wants_blank = is_blank || (wants_blank && result.empty());
    if (!is_blank) result += c;
  }
  return result;
}

struct CanonicalHeaders {
  std::string lines;
  std::string names;  // with semicolons between
};

CanonicalHeaders canonical_headers(const HttpRequest& request, std::string_view host) {
  std::vector<std::pair<std::string, std::string>> headers{{"host", std::string(host)}};
  for (const HttpHeader& header : request.headers) headers.emplace_back(lower(header.name), squeezed(header.value));
  std::sort(headers.begin(), headers.end());
  CanonicalHeaders result;
  for (const auto& [name, value] : headers) {
    result.lines += fmt::format("{}:{}\n", name, value);
    result.names += (result.names.empty() ? "" : ";") + name;
  }
  return result;
}

std::string time_text(std::int64_t unix_seconds) {
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  std::tm utc{};
  FORELOAD_CHECK(gmtime_r(&seconds, &utc) != nullptr, "the time has a date");
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

// The port that a scheme has anyway is not sent in the header "host", so it is not signed.
std::string host_header(std::string_view url, std::string_view host) {
  const std::string_view usual = url.substr(0, 6) == "https:" ? ":443" : ":80";
  if (host.size() > usual.size() && host.substr(host.size() - usual.size()) == usual) {
    host.remove_suffix(usual.size());
  }
  return std::string(host);
}

}  // namespace

void sign_v4(HttpRequest& request, const Credentials& credentials, std::string_view region, std::int64_t unix_seconds) {
  const std::string time = time_text(unix_seconds);
  const std::string day = time.substr(0, 8);
  const std::string no_body = hex(sha256(""));
  request.headers.push_back({"x-amz-content-sha256", no_body});
  request.headers.push_back({"x-amz-date", time});
  if (!credentials.session_token.empty()) {
    request.headers.push_back({"x-amz-security-token", credentials.session_token});
  }
  const UrlParts url = split_url(request.url);
  const CanonicalHeaders headers = canonical_headers(request, host_header(request.url, url.host));
  const std::string canonical = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, url.path.empty() ? "/" : url.path,
                                            canonical_query(url.query), headers.lines, headers.names, no_body);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, region);
  const std::string text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hex(sha256(canonical)));
  Digest key = hmac("AWS4" + credentials.secret_key, day);
  for (const std::string_view part : {region, std::string_view("s3"), std::string_view("aws4_request")}) {
    key = hmac(text_of(key), part);
  }
  request.headers.push_back(
      {"Authorization", fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                                    credentials.access_key, scope, headers.names, hex(hmac(text_of(key), text)))});
}

}  // namespace foreload
