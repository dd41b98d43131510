// HttpClient: single requests that block, with retries: listings, heads, small reads. Any thread; connections are
// kept for the next request. The bytes of samples come through ObjectReader.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "foreload/result.h"
#include "store/http.h"
#include "store/http_transfer.h"

namespace foreload {

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options = {});

  // The complete answer, whatever its status, except: those that may pass (see may_pass) are asked again, and returned
  // after the last attempt; 3xx is an error. `make` is called for every attempt. kIo: no answer; kInvalid: no URL, a
  // redirect, a body longer than `longest_body`, a content encoding.
  Result<HttpResponse> send(const std::function<HttpRequest()>& make, Bytes longest_body);

 private:
  std::unique_ptr<HttpTransfer> take_transfer();
  void give_back(std::unique_ptr<HttpTransfer> transfer);

  HttpOptions options_;
  Mutex mutex_;
  std::vector<std::unique_ptr<HttpTransfer>> idle_ FORELOAD_GUARDED_BY(mutex_);  // at most kIdle
};

}  // namespace foreload
