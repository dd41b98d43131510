// report_tool: the page of an analysis, for tests that look at it.
//
//   report_tool ANALYSIS.json PAGE.html
#include <fmt/core.h>

#include <fstream>
#include <string>

#include "../apps/analysis_page.h"

namespace foreload {
namespace {

int write_page(const std::string& from, const std::string& to) {
  std::ifstream file(from);
  const Json analysis = Json::parse(file, nullptr, false);
  if (analysis.is_discarded()) {
    fmt::print(stderr, "report_tool: {} is no JSON\n", from);
    return 1;
  }
  std::ofstream page(to, std::ios::binary);
  page << analysis_page(analysis) << std::flush;
  if (page) return 0;
  fmt::print(stderr, "report_tool: can not write {}\n", to);
  return 1;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "report_tool ANALYSIS.json PAGE.html\n");
    return 2;
  }
  return foreload::write_page(argv[1], argv[2]);
}
