// ObjectStore: a place of objects that are read over HTTP: a web server's folder, or a bucket. Knows how to ask for
// an object; sending is the business of HttpClient and ObjectReader. Immutable, so any thread may use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "foreload/result.h"
#include "foreload/source.h"
#include "store/http.h"

namespace foreload {

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual std::string display(std::string_view key) const = 0;  // for messages: no secrets
  // Requests are made anew for every attempt, because signatures expire. REQUIRES: length > 0.
  virtual HttpRequest get(std::string_view key, Bytes offset, Bytes length) const = 0;
  virtual HttpRequest head(std::string_view key) const = 0;
  // What a complete answer other than 200 and 206 means, and what to do. kNotFound: there is no such object.
  virtual Error refused(std::string_view key, const HttpResponse& response) const;
};

HttpHeader range_header(Bytes offset, Bytes length);  // REQUIRES: length > 0

// Size and validator of the object that a response tells of: the validator stands where a file has its time. It is a
// hash of the ETag, or of Last-Modified when there is none; 0: the server names neither.
FileStamp stamp_of(const HttpResponse& response);
// The same of an ETag alone, with or without its quotes: listings and headers differ in them.
std::int64_t validator_of(std::string_view etag);

}  // namespace foreload
