// MetricsServer: answers GET /metrics with a text that is made for each, and GET /healthz with "ok". One thread; nobody
// who connects can make it wait, keep more than a few kilobytes, or stay longer than `patience`. No encryption and no
// passwords: it is for loopback, or for networks that are trusted.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/thread.h"
#include "foreload/types.h"
#include "serve/listen_address.h"

namespace foreload {

struct MetricsServerOptions {
  unsigned connections = 32;  // at once; others wait
  Bytes head = 8_KiB;         // of a request
  Duration patience = std::chrono::seconds(5);
};

class MetricsServer {
 public:
  // Nothing: there is nothing to tell any more, which is status 503.
  using MakeText = std::function<std::optional<std::string>()>;  // called by the server's thread

  // What `make_text` uses must outlive it.
  static Result<std::unique_ptr<MetricsServer>> start(const ListenAddress& address, MakeText make_text,
                                                      const MetricsServerOptions& options = {});
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  const ListenAddress& address() const { return address_; }  // with the port that was chosen

 private:
  struct Guest {
    enum class Phase { kAsking, kAnswered, kLeaving };
    Descriptor socket;
    Time until{};
    Phase phase = Phase::kAsking;
    std::string received{};
    std::string answer{};
    std::size_t sent = 0;
  };

  MetricsServer(ListenAddress address, MakeText make_text, const MetricsServerOptions& options)
      : address_(address), make_text_(std::move(make_text)), options_(options) {}

  void run();
  void wait();
  void welcome();
  bool attend(Guest& guest);  // false: it is done with
  bool listen_to(Guest& guest);
  bool answer_to(Guest& guest);
  std::string answer(std::string_view head) const;

  ListenAddress address_;
  MakeText make_text_;
  MetricsServerOptions options_;
  Descriptor listener_;
  Descriptor wake_;
  std::vector<Guest> guests_;
  Time welcome_again_{};  // not before: the process has no descriptors left
  std::atomic<bool> stopping_{false};
  std::vector<Thread> threads_;  // one, when it serves
};

}  // namespace foreload
