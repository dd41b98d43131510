// The value of --subset: "0,5,7", "cats/1.jpg,dogs/2.jpg", or "@FILE" with one id or key per line.
#pragma once

#include <string>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

using Subset = decltype(SourceOptions::subset);

// Ids if all items are numbers, otherwise keys.
Result<Subset> parse_subset(const std::string& text);

}  // namespace foreload
