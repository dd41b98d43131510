// HttpTransfer: one request and its answer, on one handle of libcurl that is used again for the next. http and https
// only, no redirects, certificates always verified, the URL sent as it is. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "foreload/types.h"
#include "policy/retrying.h"
#include "store/http.h"

namespace foreload {

struct HttpOptions {
  Duration connect_timeout = std::chrono::seconds(10);
  Duration stall_timeout = std::chrono::seconds(30);  // fewer than 1 KiB/s for so long; whole seconds
  RetryOptions retry{};
  // Certificates to trust. Empty: AWS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE, else the system's.
  std::string ca_file{};
};

// Why there is no complete answer.
enum class HttpTrouble {
  kNone,
  kBadUrl,
  kName,     // the host's name is not known
  kConnect,  // refused or not reachable
  kTls,      // the host did not prove who it is
  kTimeout,
  kBroken,   // reset, closed early, no HTTP
  kStopped,  // the sink said stop
};

struct HttpHead {
  HttpResponse response;  // without body
  std::string location{};
  std::string region{};            // x-amz-bucket-region
  std::string content_encoding{};  // never asked for
};

struct HttpEnd {
  HttpTrouble trouble = HttpTrouble::kNone;
  std::string detail{};    // in libcurl's words
  Duration retry_after{};  // what the server asks for; 0: nothing
};

class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // The next bytes of the body. False: break the transfer off.
  virtual bool write(const HttpHead& head, std::span<const std::byte> bytes) = 0;
};

struct HttpHandle;

class HttpTransfer {
 public:
  explicit HttpTransfer(const HttpOptions& options);
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;
  ~HttpTransfer();

  // `sink` must live until the transfer has ended. REQUIRES: the last one has.
  void prepare(const HttpRequest& request, HttpSink& sink);
  HttpEnd perform();  // blocks

  const HttpHead& head() const;  // of the last answer

 private:
  friend class HttpMulti;
  HttpEnd end_of(int code);
  std::unique_ptr<HttpHandle> handle_;
};

// Without userinfo and query: fit for messages.
std::string public_url(std::string_view url);
std::string host_of(std::string_view url);
// One sentence without the URL: what happened, and what to do.
std::string explain(const HttpEnd& end, std::string_view url);
// Of a 3xx answer.
std::string explain_redirect(const HttpHead& head);
// Of one whose bytes are not the object's.
bool is_encoded(const HttpHead& head);
std::string explain_encoding(const HttpHead& head);

}  // namespace foreload
