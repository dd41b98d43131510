// HTTP as the object stores need it: single requests that block, with retries. The bytes of samples come through
// ObjectReader, which keeps many requests in flight. No redirects, http and https only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method = "GET";  // or HEAD
  std::string url;             // complete and encoded
  std::vector<HttpHeader> headers{};
};

struct HttpResponse {
  int status = 0;
  Bytes content_length = 0;  // as the server says
  std::string content_range{};
  std::string content_type{};
  std::string etag{};
  std::string last_modified{};
  std::string body{};
};

}  // namespace foreload
