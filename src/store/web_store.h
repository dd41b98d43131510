// A folder of a web server as an ObjectStore: keys are paths below it.
#pragma once

#include <memory>

#include "store/object_store.h"
#include "store/url.h"

namespace foreload {

// REQUIRES: http or https; the path is empty or ends with a slash.
std::unique_ptr<ObjectStore> open_web_store(const Url& folder);

}  // namespace foreload
