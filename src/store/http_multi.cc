// libcurl says which sockets it waits for and when it wants to be called; one epoll waits for all of them and for
// wake(). curl_multi_perform() would look at every transfer at every event.
#include "store/http_multi.h"

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/clock.h"
#include "store/http_handle.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestWait = 60s;  // epoll counts milliseconds in an int

void check(CURLMcode code) {
  FORELOAD_CHECK(code == CURLM_OK, curl_multi_strerror(code));
}

}  // namespace

HttpMulti::HttpMulti(unsigned connections) : timer_(kNever) {
  start_http_library();
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  woken_ = Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.fd = woken_.get()}};
  FORELOAD_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, woken_.get(), &event) == 0, "there are descriptors left");
  multi_ = curl_multi_init();
  FORELOAD_CHECK(multi_ != nullptr, "libcurl has memory for a handle");
  check(curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(connections)));
  check(curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket));
  check(curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this));
  check(curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer));
  check(curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this));
}

HttpMulti::~HttpMulti() {
  check(curl_multi_cleanup(multi_));
}

int HttpMulti::on_socket(void*, int fd, int what, void* self, void*) {
  const int epoll = static_cast<HttpMulti*>(self)->epoll_.get();
  epoll_event event{.events = 0, .data = {.fd = fd}};
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event);  // one that is closed already has left by itself
    return 0;
  }
  if (what != CURL_POLL_OUT) event.events |= EPOLLIN;
  if (what != CURL_POLL_IN) event.events |= EPOLLOUT;
  if (epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) == 0) return 0;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -1;
}

int HttpMulti::on_timer(void*, long milliseconds, void* self) {
  static_cast<HttpMulti*>(self)->timer_ = milliseconds < 0 ? kNever : now() + milliseconds * 1ms;
  return 0;
}

void HttpMulti::start(HttpTransfer& transfer) {
  check(curl_multi_add_handle(multi_, transfer.handle_->curl));
}

void HttpMulti::stop(HttpTransfer& transfer) {
  check(curl_multi_remove_handle(multi_, transfer.handle_->curl));
}

void HttpMulti::act(int fd, int events) {
  int running = 0;
  check(curl_multi_socket_action(multi_, fd, events, &running));
}

void HttpMulti::wait(std::vector<HttpEnded>& ended, Time deadline) {
  const Duration wait = std::clamp<Duration>(std::min(deadline, timer_) - now(), 0ns, kLongestWait);
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  std::array<epoll_event, 64> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), static_cast<int>(milliseconds));
  FORELOAD_CHECK(count >= 0 || errno == EINTR, "an epoll can be waited for");
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == woken_.get()) {
      std::uint64_t calls = 0;
      (void)!read(fd, &calls, sizeof(calls));
      continue;
    }
    const std::uint32_t what = events[i].events;
    act(fd, ((what & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) | ((what & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                ((what & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0));
  }
  if (timer_ <= now()) {
    timer_ = kNever;
    act(CURL_SOCKET_TIMEOUT, 0);
  }
  take_ended(ended);
}

void HttpMulti::take_ended(std::vector<HttpEnded>& ended) {
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
}

void HttpMulti::wake() {
  const std::uint64_t once = 1;
  (void)!write(woken_.get(), &once, sizeof(once));  // can only fail when it is set already
}

}  // namespace foreload
