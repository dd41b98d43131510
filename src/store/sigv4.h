// AWS Signature Version 4 for S3, for requests without a body. Pure: the time is an argument.
#pragma once

#include <cstdint>
#include <string_view>

#include "store/credentials.h"
#include "store/http.h"

namespace foreload {

// Adds x-amz-date, x-amz-content-sha256, x-amz-security-token and Authorization; signs the host and all headers that
// are there already. REQUIRES: the URL is complete, its path and query are encoded; credentials.are_there().
void sign_v4(HttpRequest& request, const Credentials& credentials, std::string_view region, std::int64_t unix_seconds);

}  // namespace foreload
