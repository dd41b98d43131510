// For messages about a prefix or pattern of a bucket that nothing fits: what there is instead.
#pragma once

#include <string>

#include "store/url.h"

namespace foreload {

// "; s3://bucket/ has set/, train-000.tar": a few names of the nearest folder around, or at, `folder` that has any.
// Empty when there are none or they can not be listed. Blocks for a few requests.
std::string what_is_beside(const Url& folder);

}  // namespace foreload
