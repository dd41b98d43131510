// HttpMulti: many transfers at once on one thread, over connections that are kept open. Not thread-safe except wake().
#pragma once

#include <vector>

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
  void* multi_;
};

}  // namespace foreload
