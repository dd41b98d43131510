// Who asks an S3 store, where that store is and in which region: from the environment variables and files that other
// tools use. Secrets are held here and in what sigv4 makes of them; they are never part of a message.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "foreload/result.h"

namespace foreload {

struct Credentials {
  std::string access_key{};
  std::string secret_key{};
  std::string session_token{};

  bool are_there() const { return !access_key.empty(); }  // otherwise requests are not signed: public buckets
};

struct S3Access {
  Credentials credentials{};
  std::string region = "us-east-1";
  std::string endpoint{};  // http(s)://host[:port][/path]; empty: Amazon's
};

// The value of a variable; nothing when it is not set or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

// Credentials: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; then the profile AWS_PROFILE (default) of
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials) and of AWS_CONFIG_FILE (~/.aws/config); otherwise none. Region:
// AWS_REGION, AWS_DEFAULT_REGION, the profile. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL.
// Files that can not be read are an error only where the environment has no keys.
// kInvalid: half a pair, a profile that does not exist, or one that gets its keys in a way that is not known here.
Result<S3Access> find_s3_access(const Environment& environment);

}  // namespace foreload
