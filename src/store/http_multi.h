// HttpMulti: many transfers at once on one thread, over connections that are kept open. The cost of an event does not
// depend on how many transfers there are. Not thread-safe except wake().
#pragma once

#include <vector>

#include "base/files.h"
#include "foreload/types.h"
#include "store/http_transfer.h"

namespace foreload {

struct HttpEnded {
  HttpTransfer* transfer = nullptr;
  HttpEnd end;
};

class HttpMulti {
 public:
  explicit HttpMulti(unsigned connections);  // that are kept
  HttpMulti(const HttpMulti&) = delete;
  HttpMulti& operator=(const HttpMulti&) = delete;
  ~HttpMulti();  // REQUIRES: nothing is under way

  // REQUIRES: it is prepared, and lives until it has ended or was stopped.
  void start(HttpTransfer& transfer);
  void stop(HttpTransfer& transfer);  // its sink hears nothing more
  // Moves bytes. Appends what has ended; waits until something happens, `deadline` or wake().
  void wait(std::vector<HttpEnded>& ended, Time deadline);
  void wake();  // any thread

 private:
  static int on_socket(void* curl, int fd, int what, void* self, void* known);
  static int on_timer(void* multi, long milliseconds, void* self);
  void act(int fd, int events);
  void take_ended(std::vector<HttpEnded>& ended);

  void* multi_ = nullptr;
  Descriptor epoll_;
  Descriptor woken_;
  Time timer_;  // when libcurl wants to be called
};

}  // namespace foreload
