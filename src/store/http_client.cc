#include "store/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/jitter.h"
#include "base/text.h"

namespace foreload {
namespace {

constexpr std::size_t kIdle = 16;

// Takes what fits.
class BodySink : public HttpSink {
 public:
  explicit BodySink(Bytes longest) : longest_(longest) {}

  bool write(const HttpHead&, std::span<const std::byte> bytes) override {
    if (bytes.size() > longest_ - body_.size()) return false;
    body_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  std::string take() { return std::move(body_); }

 private:
  Bytes longest_;
  std::string body_;
};

constexpr const char* kNoRanges =
    ": the server sends the whole object where a part was asked for; it has to support HTTP ranges";

// A long page about an error: what it begins with is enough.
bool is_refusal(const HttpEnd& end, const HttpHead& head) {
  return end.trouble == HttpTrouble::kStopped && head.response.status >= 400;
}

bool asks_for_range(const HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [](const HttpHeader& header) { return header.name == "Range"; });
}

// What more attempts would not change.
Status judge(const HttpEnd& end, const HttpHead& head, const HttpRequest& request, Bytes longest_body) {
  const std::string& url = request.url;
  const std::string shown = public_url(url);
  switch (end.trouble) {
    case HttpTrouble::kBadUrl:
      return Error{Code::kInvalid, fmt::format("{}: {}", shown, explain(end, url))};
    case HttpTrouble::kTls:
      return Error{Code::kIo, fmt::format("{}: {}", shown, explain(end, url))};
    case HttpTrouble::kStopped:
      if (is_refusal(end, head)) break;
      if (head.response.status == 200 && asks_for_range(request)) return Error{Code::kIo, shown + kNoRanges};
      return Error{Code::kInvalid, fmt::format("{}: the answer is longer than {}", shown, format_bytes(longest_body))};
    case HttpTrouble::kNone:
      break;
    default:
      return {};
  }
  const int status = head.response.status;
  if (status >= 300 && status < 400 && status != 304) {
    return Error{Code::kInvalid, fmt::format("{}: {}", shown, explain_redirect(head))};
  }
  if (is_encoded(head)) {
    return Error{Code::kInvalid, fmt::format("{}: {}", shown, explain_encoding(head))};
  }
  return {};
}

}  // namespace

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {}

Result<HttpResponse> HttpClient::send(const std::function<HttpRequest()>& make, Bytes longest_body) {
  const std::uint64_t key = jitter_key();
  auto transfer = take_transfer();
  for (unsigned attempt = 1;; ++attempt) {
    const HttpRequest request = make();
    BodySink sink(longest_body);
    transfer->prepare(request, sink);
    const HttpEnd end = transfer->perform();
    const HttpHead& head = transfer->head();
    FORELOAD_TRY(judge(end, head, request, longest_body));
    const bool answered = end.trouble == HttpTrouble::kNone || is_refusal(end, head);
    const bool again = !answered || may_pass(head.response.status);
    const auto pause = again ? pause_after(options_.retry, attempt, end.retry_after, key) : std::nullopt;
    if (pause) {
      std::this_thread::sleep_for(*pause);
      continue;
    }
    if (!answered) {
      return Error{Code::kIo, fmt::format("{}: after {}: {}", public_url(request.url), counted(attempt, "attempt"),
                                          explain(end, request.url))};
    }
    HttpResponse response = head.response;
    response.body = sink.take();
    give_back(std::move(transfer));
    return response;
  }
}

std::unique_ptr<HttpTransfer> HttpClient::take_transfer() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto transfer = std::move(idle_.back());
      idle_.pop_back();
      return transfer;
    }
  }
  return std::make_unique<HttpTransfer>(options_);
}

void HttpClient::give_back(std::unique_ptr<HttpTransfer> transfer) {
  MutexLock lock(mutex_);
  if (idle_.size() < kIdle) idle_.push_back(std::move(transfer));
}

}  // namespace foreload
