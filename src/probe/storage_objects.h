// An object store on this machine that is slow on request: the stub of the tests, in a process of its own.
#pragma once

#include <string>

#include "foreload/result.h"
#include "foreload/types.h"
#include "probe/child.h"

namespace foreload {

struct ObjectsOptions {
  std::string script{};  // tests/object_store_stub.py
  std::string folder{};  // its files are the objects
  double latency = 0;    // seconds, per request
  double bandwidth = 0;  // bytes/s over all connections
};

class ObjectsServer {
 public:
  static constexpr const char* kBucket = "data";

  static Result<ObjectsServer> start(const ObjectsOptions& options);

  // Makes this process's s3:// URLs lead here.
  void serve_s3() const;
  Result<std::uint64_t> gets() const;  // GET requests so far

 private:
  ObjectsServer(Child child, std::string endpoint) : child_(std::move(child)), endpoint_(std::move(endpoint)) {}

  Child child_;
  std::string endpoint_;
};

}  // namespace foreload
