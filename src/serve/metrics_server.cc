// The thread sleeps until a socket has something for it or a guest's time is over; then it does for every guest what
// can be done without waiting. A guest asks, is answered, and leaves: its connection is closed when it has closed its
// own side, because closing before it has read the answer could take that away.
#include "serve/metrics_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/check.h"
#include "base/clock.h"
#include "serve/metrics.h"
#include "serve/scrape_request.h"

namespace foreload {
namespace {

constexpr Duration kWelcomePause = std::chrono::milliseconds(100);

bool is_for_later(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const ListenAddress& address, MakeText make_text,
                                                            const MetricsServerOptions& options) {
  FORELOAD_ASSIGN(Descriptor listener, address.listen());
  FORELOAD_ASSIGN(const ListenAddress chosen, ListenAddress::of_socket(listener.get()));
  std::unique_ptr<MetricsServer> server(new MetricsServer(chosen, std::move(make_text), options));
  server->listener_ = std::move(listener);
  server->wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->wake_.valid()) return errno_error("no event descriptor can be had", errno);
  MetricsServer* running = server.get();
  FORELOAD_ASSIGN(Thread thread, Thread::start("fl-metrics", [running] { running->run(); }));
  server->threads_.push_back(std::move(thread));
  return server;
}

MetricsServer::~MetricsServer() {
  stopping_ = true;
  if (wake_.valid()) FORELOAD_CHECK(::eventfd_write(wake_.get(), 1) == 0, "an event descriptor takes one more");
  threads_.clear();
}

void MetricsServer::run() {
  while (!stopping_) {
    wait();
    welcome();
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      guest = attend(*guest) ? guest + 1 : guests_.erase(guest);
    }
  }
}

void MetricsServer::wait() {
  std::vector<pollfd> polled{{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  Time until = kNever;
  if (now() < welcome_again_) {
    until = welcome_again_;
  } else if (guests_.size() < options_.connections) {
    polled.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  }
  for (const Guest& guest : guests_) {
    const short event = guest.phase == Guest::Phase::kAnswered ? POLLOUT : POLLIN;
    polled.push_back({.fd = guest.socket.get(), .events = event, .revents = 0});
    until = std::min(until, guest.until);
  }
  const Duration left = until == kNever ? Duration::zero() : std::max(until - now(), Duration::zero());
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  const int timeout = until == kNever ? -1 : static_cast<int>(std::min<std::int64_t>(rounded, 60'000));
  (void)::poll(polled.data(), polled.size(), timeout);  // an interrupted wait is a short one
}

void MetricsServer::welcome() {
  if (now() < welcome_again_) return;
  while (guests_.size() < options_.connections) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      guests_.push_back({.socket = std::move(socket), .until = now() + options_.patience});
      continue;
    }
    // A listener that nobody can be taken from stays readable.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      welcome_again_ = now() + kWelcomePause;
    return;
  }
}

bool MetricsServer::attend(Guest& guest) {
  if (now() >= guest.until) return false;
  if (guest.phase == Guest::Phase::kAsking && !listen_to(guest)) return false;
  if (guest.phase == Guest::Phase::kAnswered && !answer_to(guest)) return false;
  if (guest.phase != Guest::Phase::kLeaving) return true;
  std::array<char, 4096> ignored;
  const ssize_t got = ::recv(guest.socket.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  return got > 0 || (got < 0 && is_for_later(errno));
}

bool MetricsServer::listen_to(Guest& guest) {
  std::array<char, 4096> buffer;
  const std::size_t room = options_.head - guest.received.size();
  const ssize_t got = ::recv(guest.socket.get(), buffer.data(), std::min(room, buffer.size()), MSG_DONTWAIT);
  if (got == 0) return false;
  if (got < 0) return is_for_later(errno);
  const std::size_t searched = guest.received.size();
  guest.received.append(buffer.data(), static_cast<std::size_t>(got));
  const auto end = head_end(guest.received, searched);
  if (!end && guest.received.size() < options_.head) return true;
  guest.answer = end ? answer(std::string_view(guest.received).substr(0, *end))
                     : http_bytes({.status = 431, .body = "the request is too long\n"});
  guest.received = {};
  guest.phase = Guest::Phase::kAnswered;
  return true;
}

bool MetricsServer::answer_to(Guest& guest) {
  const std::string_view left = std::string_view(guest.answer).substr(guest.sent);
  const ssize_t sent = ::send(guest.socket.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return is_for_later(errno);
  guest.sent += static_cast<std::size_t>(sent);
  if (guest.sent < guest.answer.size()) return true;
  guest.answer = {};
  guest.phase = Guest::Phase::kLeaving;
  return ::shutdown(guest.socket.get(), SHUT_WR) == 0;
}

std::string MetricsServer::answer(std::string_view head) const {
  switch (asked_for(head)) {
    case Asked::kHealth:
      return http_bytes({.body = "ok\n"});
    case Asked::kUnknown:
      return http_bytes({.status = 404, .body = "there are /metrics and /healthz\n"});
    case Asked::kOtherMethod:
      return http_bytes({.status = 405, .body = "use GET\n"});
    case Asked::kMalformed:
      return http_bytes({.status = 400, .body = "this is no request of HTTP/1.1\n"});
    case Asked::kMetrics:
      break;
  }
  const auto text = make_text_();
  if (!text) return http_bytes({.status = 503, .body = "the host has ended\n"});
  return http_bytes({.type = kMetricsType, .body = *text});
}

}  // namespace foreload
