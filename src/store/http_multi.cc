#include "store/http_multi.h"

#include <curl/curl.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "store/http_handle.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestWait = 10s;  // libcurl counts milliseconds in an int

void check(CURLMcode code) {
  FORELOAD_CHECK(code == CURLM_OK, curl_multi_strerror(code));
}

}  // namespace

HttpMulti::HttpMulti(unsigned connections) : multi_(nullptr) {
  start_http_library();
  multi_ = curl_multi_init();
  FORELOAD_CHECK(multi_ != nullptr, "libcurl has memory for a handle");
  check(curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(connections)));
}

HttpMulti::~HttpMulti() {
  check(curl_multi_cleanup(multi_));
}

void HttpMulti::start(HttpTransfer& transfer) {
  check(curl_multi_add_handle(multi_, transfer.handle_->curl));
}

void HttpMulti::stop(HttpTransfer& transfer) {
  check(curl_multi_remove_handle(multi_, transfer.handle_->curl));
}

void HttpMulti::wait(std::vector<HttpEnded>& ended, Time deadline) {
  const std::size_t before = ended.size();
  int running = 0;
  check(curl_multi_perform(multi_, &running));
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CURL* curl = message->easy_handle;
    HttpTransfer* transfer = nullptr;
    FORELOAD_CHECK(curl_easy_getinfo(curl, CURLINFO_PRIVATE, &transfer) == CURLE_OK, "it was set");
    ended.push_back({transfer, transfer->end_of(code)});
    check(curl_multi_remove_handle(multi_, curl));  // `message` is gone with it
  }
  const Duration wait = std::min(deadline - now(), kLongestWait);
  if (ended.size() > before || wait <= 0ns) return;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  check(curl_multi_poll(multi_, nullptr, 0, static_cast<int>(milliseconds), nullptr));
}

void HttpMulti::wake() {
  check(curl_multi_wakeup(multi_));
}

}  // namespace foreload
