#include "probe/storage_objects.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

namespace foreload {
namespace {

constexpr const char* kPython = "/usr/bin/python3";

}  // namespace

Result<ObjectsServer> ObjectsServer::start(const ObjectsOptions& options) {
  if (::access(options.script.c_str(), R_OK) != 0) {
    return Error{Code::kNotFound, fmt::format("there is no {}: start it from the project's folder", options.script)};
  }
  FORELOAD_ASSIGN(Child child,
                  Child::start({kPython, options.script, options.folder, "--bucket", kBucket, "--latency",
                                std::to_string(options.latency), "--bandwidth", std::to_string(options.bandwidth)}));
  const std::string url = child.read_line();
  if (!url.starts_with("http://")) return Error{Code::kIo, fmt::format("{} did not start", options.script)};
  return ObjectsServer(std::move(child), url.substr(0, url.rfind('/')));
}

void ObjectsServer::serve_s3() const {
  ::setenv("AWS_ENDPOINT_URL", endpoint_.c_str(), 1);
  ::setenv("AWS_ACCESS_KEY_ID", "bench", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "bench", 1);
  ::setenv("AWS_REGION", "us-east-1", 1);
}

Result<std::uint64_t> ObjectsServer::gets() const {
  constexpr const char* kAsk = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
  FORELOAD_ASSIGN(const std::string text, output_of({kPython, "-c", kAsk, endpoint_ + "/__stats"}));
  const auto stats = nlohmann::json::parse(text, nullptr, false);
  if (!stats.is_object() || !stats.contains("gets")) return Error{Code::kIo, "the object store has no statistics"};
  return stats["gets"].get<std::uint64_t>();
}

}  // namespace foreload
