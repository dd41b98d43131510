// S3Store: a prefix of a bucket as an ObjectStore: keys are what follows the prefix. Signs its requests when there are
// credentials. Immutable; any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/credentials.h"
#include "store/http_client.h"
#include "store/object_store.h"
#include "store/s3_list.h"
#include "store/url.h"

namespace foreload {

// Which keys of a store to list; all are without the store's own prefix.
struct KeyRange {
  std::string prefix{};  // they begin with it
  std::string after{};   // they come behind it in byte order; empty: no bound
  std::string until{};   // and not behind this one; empty: no bound
};

class S3Store final : public ObjectStore {
 public:
  // kInvalid: the endpoint is no URL. REQUIRES: the path of `folder` is empty or ends with a slash.
  static Result<std::unique_ptr<S3Store>> open(const Url& folder, S3Access access);

  std::string display(std::string_view key) const override;
  HttpRequest get(std::string_view key, Bytes offset, Bytes length) const override;
  HttpRequest head(std::string_view key) const override;
  Error refused(std::string_view key, const HttpResponse& response) const override;

  // One page of keys. `token`: of the page before, or empty.
  HttpRequest list(const KeyRange& range, std::string_view token) const;
  // The URL of the bucket: with it two stores of the same name are told apart.
  const std::string& base() const { return base_; }
  const std::string& prefix() const { return folder_.path; }  // of all keys here

 private:
  S3Store(Url folder, S3Access access, std::string base)
      : folder_(std::move(folder)), access_(std::move(access)), base_(std::move(base)) {}
  HttpRequest signed_request(HttpRequest request) const;
  std::string url_of(std::string_view key) const {
    return base_ + percent_encode(folder_.path, true).append(percent_encode(key, true));
  }

  const Url folder_;
  const S3Access access_;
  const std::string base_;  // ends with a slash
};

// Calls `take` with every object of the range, in the server's order; its key is what follows the store's own prefix. A
// bounded range needs a server that lists in byte order, as S3 does. Blocks for a request per 1,000 objects.
Status list_objects(const S3Store& store, HttpClient& client, const KeyRange& range,
                    const std::function<Status(ListedObject)>& take);

}  // namespace foreload
