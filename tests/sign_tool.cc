// Signs requests for tests/signing_test.py: one per line, fields with tabs between:
//   time  region  access-key  secret-key  session-token  method  base-url  key  query  range
// and prints the URL and the Authorization header of each. The key is encoded here, the query is taken as it is.
#include <fmt/core.h>

#include <iostream>
#include <string>
#include <vector>

#include "store/sigv4.h"
#include "store/url.h"

namespace {

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != 10) return 2;
    foreload::HttpRequest request{fields[5], fields[6] + foreload::percent_encode(fields[7], true), {}};
    if (!fields[8].empty()) request.url += "?" + fields[8];
    if (!fields[9].empty()) request.headers.push_back({"Range", fields[9]});
    foreload::sign_v4(request, {fields[2], fields[3], fields[4]}, fields[1], std::stoll(fields[0]));
    fmt::print("{}\t{}\n", request.url, request.headers.back().value);
  }
  return 0;
}
