#include "store/http_transfer.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/text.h"
#include "store/http_handle.h"

namespace foreload {
namespace {

constexpr std::size_t kLongestHeaders = 64 << 10;
constexpr long kBufferBytes = 64 << 10;
constexpr long kSlowBytesPerSecond = 1 << 10;

template <typename T>
void set(CURL* curl, CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(curl, option, value);
  FORELOAD_CHECK(code == CURLE_OK, curl_easy_strerror(code));
}

std::string trusted_file(const HttpOptions& options) {
  if (!options.ca_file.empty()) return options.ca_file;
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

void take_header(HttpHead& head, std::string_view name, std::string_view value) {
  HttpResponse& response = head.response;
  if (same_word(name, "content-length")) {
    std::from_chars(value.data(), value.data() + value.size(), response.content_length);
  }
  const std::array<std::pair<std::string_view, std::string*>, 7> wanted = {{
      {"content-range", &response.content_range},
      {"content-type", &response.content_type},
      {"etag", &response.etag},
      {"last-modified", &response.last_modified},
      {"location", &head.location},
      {"x-amz-bucket-region", &head.region},
      {"content-encoding", &head.content_encoding},
  }};
  for (const auto& [key, place] : wanted) {
    if (same_word(name, key)) *place = value;
  }
}

// One line at a time. An interim answer (1xx) is followed by the next head, which begins anew.
std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& handle = *static_cast<HttpHandle*>(user);
  const std::string_view line(data, size * count);
  handle.header_bytes += line.size();
  if (handle.header_bytes > kLongestHeaders) return 0;
  if (line.starts_with("HTTP/")) {
    handle.head = {};
    handle.has_body = false;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return line.size();
    std::from_chars(line.data() + space + 1, line.data() + line.size(), handle.head.response.status);
    return line.size();
  }
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos && !handle.has_body) {  // not a trailer
    take_header(handle.head, trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1)));
  }
  return line.size();
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& handle = *static_cast<HttpHandle*>(user);
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size * count);
  handle.has_body = true;
  if (handle.sink->write(handle.head, bytes)) return bytes.size();
  handle.stopped = true;
  return bytes.empty() ? 1 : 0;  // anything but what was offered
}

HttpTrouble trouble_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpTrouble::kNone;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
      return HttpTrouble::kBadUrl;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return HttpTrouble::kName;
    case CURLE_COULDNT_CONNECT:
      return HttpTrouble::kConnect;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return HttpTrouble::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpTrouble::kTimeout;
    default:
      return HttpTrouble::kBroken;
  }
}

// What is the same for every request.
void set_up(CURL* curl, const HttpOptions& options) {
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  set(curl, CURLOPT_FOLLOWLOCATION, 0L);
  set(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(curl, CURLOPT_PATH_AS_IS, 1L);  // a signature covers the path as it is
  set(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(curl, CURLOPT_BUFFERSIZE, kBufferBytes);
  set(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  set(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  set(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  set(curl, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(options.connect_timeout).count()));
  set(curl, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(curl, CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(std::chrono::duration_cast<std::chrono::seconds>(options.stall_timeout).count()));
  const std::string trusted = trusted_file(options);
  if (!trusted.empty()) set(curl, CURLOPT_CAINFO, trusted.c_str());
}

}  // namespace

void start_http_library() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);  // once, even when many threads come first
  FORELOAD_CHECK(code == CURLE_OK, "libcurl starts");
}

HttpTransfer::HttpTransfer(const HttpOptions& options) : handle_(std::make_unique<HttpHandle>()) {
  start_http_library();
  handle_->curl = curl_easy_init();
  FORELOAD_CHECK(handle_->curl != nullptr, "libcurl has memory for a handle");
  set_up(handle_->curl, options);
  set(handle_->curl, CURLOPT_ERRORBUFFER, handle_->error.data());
  set(handle_->curl, CURLOPT_HEADERFUNCTION, &on_header);
  set(handle_->curl, CURLOPT_HEADERDATA, handle_.get());
  set(handle_->curl, CURLOPT_WRITEFUNCTION, &on_body);
  set(handle_->curl, CURLOPT_WRITEDATA, handle_.get());
  set(handle_->curl, CURLOPT_PRIVATE, this);
}

HttpTransfer::~HttpTransfer() {
  curl_easy_cleanup(handle_->curl);
  curl_slist_free_all(handle_->headers);
}

void HttpTransfer::prepare(const HttpRequest& request, HttpSink& sink) {
  HttpHandle& handle = *handle_;
  curl_slist_free_all(std::exchange(handle.headers, nullptr));
  for (const HttpHeader& header : request.headers) {
    // libcurl sends a header without value only when it ends in a semicolon.
    const std::string line =
        header.value.empty() ? header.name + ";" : fmt::format("{}: {}", header.name, header.value);
    curl_slist* longer = curl_slist_append(handle.headers, line.c_str());
    FORELOAD_CHECK(longer != nullptr, "libcurl has memory for a header");
    handle.headers = longer;
  }
  set(handle.curl, CURLOPT_URL, request.url.c_str());
  set(handle.curl, CURLOPT_HTTPHEADER, handle.headers);
  const bool only_head = request.method == "HEAD";
  FORELOAD_CHECK(only_head || request.method == "GET", "objects are only read");
  set(handle.curl, CURLOPT_NOBODY, only_head ? 1L : 0L);
  if (!only_head) set(handle.curl, CURLOPT_HTTPGET, 1L);
  handle.head = {};
  handle.header_bytes = 0;
  handle.has_body = false;
  handle.error[0] = '\0';
  handle.stopped = false;
  handle.sink = &sink;
}

HttpEnd HttpTransfer::perform() {
  return end_of(curl_easy_perform(handle_->curl));
}

HttpEnd HttpTransfer::end_of(int code) {
  const auto curl_code = static_cast<CURLcode>(code);
  HttpEnd end{.trouble = handle_->stopped ? HttpTrouble::kStopped : trouble_of(curl_code)};
  if (end.trouble != HttpTrouble::kNone) {
    // libcurl's own words may repeat the password of a proxy.
    const std::string_view words = handle_->error.data();
    // So it calls an answer that does not begin as one of HTTP.
    if (words.find("HTTP/0.9") != std::string_view::npos) end.trouble = HttpTrouble::kBroken;
    end.detail = words.empty() || words.find('@') != std::string_view::npos ? curl_easy_strerror(curl_code) : words;
  }
  curl_off_t wait = 0;
  if (curl_easy_getinfo(handle_->curl, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK) {
    end.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(wait, 0, 3600));
  }
  return end;
}

const HttpHead& HttpTransfer::head() const {
  return handle_->head;
}

std::string public_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const std::size_t host = scheme + 3;
  const std::size_t end = std::min(url.find('/', host), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return fmt::format("{}{}", url.substr(0, host), url.substr(at + 1));
}

std::string host_of(std::string_view url) {
  const std::string shown = public_url(url);
  const std::size_t scheme = shown.find("://");
  if (scheme == std::string::npos) return {};
  const std::size_t host = scheme + 3;
  return shown.substr(host, shown.find('/', host) - host);
}

std::string explain(const HttpEnd& end, std::string_view url) {
  const std::string host = host_of(url);
  switch (end.trouble) {
    case HttpTrouble::kBadUrl:
      return fmt::format("no URL that can be read ({}); http:// and https:// can", end.detail);
    case HttpTrouble::kName:
      return fmt::format("the host's name is not known ({}); check its spelling and the network", end.detail);
    case HttpTrouble::kConnect:
      return fmt::format("no connection to {} ({}); check host, port and whether the server runs", host, end.detail);
    case HttpTrouble::kTls:
      return fmt::format(
          "{} can not be trusted ({}); if its certificate comes from an authority of your own, name that "
          "one's file in SSL_CERT_FILE or AWS_CA_BUNDLE",
          host, end.detail);
    case HttpTrouble::kTimeout:
      return fmt::format("{} does not answer in time ({})", host, end.detail);
    default:
      return fmt::format("the connection to {} broke ({})", host, end.detail);
  }
}

std::string explain_redirect(const HttpHead& head) {
  const int status = head.response.status;
  if (!head.region.empty()) {
    return fmt::format("the server answers {}: the bucket is in region {}; set AWS_REGION to it", status,
                       head.region.substr(0, 64));
  }
  const std::string host = host_of(head.location);
  return fmt::format(
      "the server answers {} and points to {}; redirects are not followed: give the URL of the data itself", status,
      host.empty() ? "another place" : host);
}

bool is_encoded(const HttpHead& head) {
  return !head.content_encoding.empty() && head.content_encoding != "identity";
}

std::string explain_encoding(const HttpHead& head) {
  return fmt::format("the server sends content encoding {}, which was not asked for; switch it off there",
                     head.content_encoding.substr(0, 40));
}

}  // namespace foreload
