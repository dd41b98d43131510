// What libcurl writes to during a transfer. For http_transfer.cc and http_multi.cc only.
#pragma once

#include <array>
#include <cstddef>

#include "store/http_transfer.h"

struct curl_slist;

namespace foreload {

struct HttpHandle {
  void* curl = nullptr;
  curl_slist* headers = nullptr;
  HttpSink* sink = nullptr;
  HttpHead head;
  std::size_t header_bytes = 0;
  bool has_body = false;          // some of it came
  bool stopped = false;           // by the sink
  std::array<char, 512> error{};  // libcurl wants at least 256
};

// Before anything else of libcurl. Any thread, any number of times.
void start_http_library();

}  // namespace foreload
