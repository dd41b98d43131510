// The report of `foreload analyze` for people: the document of its --json as one HTML file (report/page.h).
#pragma once

#include <string>

#include "command.h"

namespace foreload {

// What is missing, null or of another kind is left out. Every number of the document that the page shows stands in an
// element with `data-json`, its JSON pointer, and `value`, all its digits.
std::string analysis_page(const Json& analysis);

}  // namespace foreload
