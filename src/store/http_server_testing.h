// For tests: an HTTP server on loopback, in threads of this process, whose answers the test makes up.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "store/object_store.h"

namespace foreload {

struct TestRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  // names in lower case
  unsigned number = 0;                         // of all requests, from 1 on

  // Of "Range: bytes=FIRST-LAST"; the whole when there is none.
  std::pair<Bytes, Bytes> range(Bytes size) const {
    const auto found = headers.find("range");
    if (found == headers.end()) return {0, size - 1};
    const std::string& text = found->second;
    const std::size_t dash = text.find('-');
    return {std::stoull(text.substr(6, dash - 6)), std::min<Bytes>(std::stoull(text.substr(dash + 1)), size - 1)};
  }
};

struct TestReply {
  std::string bytes;  // head and body, as they go over the wire
  std::chrono::milliseconds delay{0};
  bool close = false;                  // after the last byte
  bool reset = false;                  // instead of closing
  std::chrono::milliseconds stall{0};  // in the middle of the bytes
};

class TestServer {
 public:
  using Handler = std::function<TestReply(const TestRequest&)>;

  explicit TestServer(Handler handler) : handler_(std::move(handler)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener_, 256) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      std::perror("loopback server");
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    add_thread([this] { accept_all(); });
  }
  ~TestServer() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      for (const int client : clients_) shutdown(client, SHUT_RDWR);
    }
    shutdown(listener_, SHUT_RDWR);
    threads_.front().reset();  // nobody is accepted any more, so no thread is added
    for (auto& thread : threads_) thread.reset();
    close(listener_);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  std::string url(const std::string& path = "/") const { return fmt::format("http://127.0.0.1:{}{}", port_, path); }
  unsigned requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  unsigned connections() const {
    MutexLock lock(mutex_);
    return connections_;
  }

 private:
  void add_thread(std::function<void()> body) {
    threads_.push_back(std::make_unique<Thread>(std::move(*Thread::start("test-server", std::move(body)))));
  }

  void accept_all() {
    for (;;) {
      const int client = accept(listener_, nullptr, nullptr);
      if (client < 0) return;
      const int on = 1;
      setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      MutexLock lock(mutex_);
      if (stopping_) {
        close(client);
        return;
      }
      ++connections_;
      clients_.push_back(client);
      add_thread([this, client] { serve(client); });
    }
  }

  void serve(int client) {
    std::string buffer;
    while (auto request = read_request(client, buffer)) {
      const TestReply reply = handler_(*request);
      if (!pause(reply.delay) || !send_all(client, reply)) break;
      if (reply.reset) {
        const linger now{.l_onoff = 1, .l_linger = 0};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
      }
      if (reply.reset || reply.close) break;
    }
    MutexLock lock(mutex_);
    std::erase(clients_, client);
    close(client);
  }

  std::optional<TestRequest> read_request(int client, std::string& buffer) {
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      char part[4096];
      const ssize_t got = recv(client, part, sizeof(part), 0);
      if (got <= 0) return std::nullopt;
      buffer.append(part, static_cast<std::size_t>(got));
    }
    TestRequest request;
    const std::size_t first = buffer.find(' ');
    request.method = buffer.substr(0, first);
    request.target = buffer.substr(first + 1, buffer.find(' ', first + 1) - first - 1);
    for (std::size_t at = buffer.find("\r\n"); at < end;) {
      const std::size_t next = buffer.find("\r\n", at + 2);
      const std::string line = buffer.substr(at + 2, next - at - 2);
      std::string name = line.substr(0, line.find(':'));
      for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
      request.headers[name] = line.substr(std::min(line.size(), name.size() + 2));
      at = next;
    }
    buffer.erase(0, end + 4);
    MutexLock lock(mutex_);
    request.number = ++requests_;
    return request;
  }

  // In short steps, so that a test can end meanwhile.
  bool pause(std::chrono::milliseconds time) {
    for (; time.count() > 0; time -= std::chrono::milliseconds(5)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      MutexLock lock(mutex_);
      if (stopping_) return false;
    }
    return true;
  }

  bool send_all(int client, const TestReply& reply) {
    const std::size_t middle = reply.stall.count() > 0 ? reply.bytes.size() / 2 : reply.bytes.size();
    for (std::size_t at = 0; at < reply.bytes.size();) {
      if (at == middle && !pause(reply.stall)) return false;
      const std::size_t end = at < middle ? middle : reply.bytes.size();
      const ssize_t sent = send(client, reply.bytes.data() + at, end - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  Handler handler_;
  int listener_;
  unsigned port_ = 0;
  mutable Mutex mutex_;
  bool stopping_ FORELOAD_GUARDED_BY(mutex_) = false;
  unsigned requests_ FORELOAD_GUARDED_BY(mutex_) = 0;
  unsigned connections_ FORELOAD_GUARDED_BY(mutex_) = 0;
  std::vector<int> clients_ FORELOAD_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Thread>> threads_;  // the first accepts, and adds the others
};

inline std::string http_reply(int status, const std::string& headers, const std::string& body) {
  return fmt::format("HTTP/1.1 {} Status\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), headers, body);
}

// The right answer to a ranged GET of an object with this content.
inline std::string object_reply(const TestRequest& request, const std::string& content,
                                const std::string& etag = "\"v1\"") {
  const auto [first, last] = request.range(content.size());
  return http_reply(206,
                    fmt::format("ETag: {}\r\nContent-Range: bytes {}-{}/{}\r\n", etag, first, last, content.size()),
                    content.substr(first, last - first + 1));
}

// A store without signatures, as a web server's folder is one.
class TestStore : public ObjectStore {
 public:
  explicit TestStore(std::string url) : url_(std::move(url)) {}
  std::string display(std::string_view key) const override { return url_ + std::string(key); }
  HttpRequest get(std::string_view key, Bytes offset, Bytes length) const override {
    return {.url = url_ + std::string(key),
            .headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + length - 1)}}};
  }
  HttpRequest head(std::string_view key) const override { return {.method = "HEAD", .url = url_ + std::string(key)}; }

 private:
  std::string url_;
};

}  // namespace foreload
