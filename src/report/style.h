// The style sheet and the script of every page, and their SHA-256 in base64, by which the page's policy knows them.
// `page_test` says what the hash has to be when one of them changes.
#pragma once

#include <string_view>

namespace foreload {

extern const std::string_view kPageStyle;
extern const std::string_view kPageStyleHash;
extern const std::string_view kPageScript;
extern const std::string_view kPageScriptHash;

}  // namespace foreload
