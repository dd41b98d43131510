// bench/prep: JPEG prep on one core against its limits and against others.
//   prep [--json] [--photos DIR] [--rounds N] [--images N] [--python PROGRAM]
#include <cstdlib>
#include <string>

#include "probe/prep_rates.h"
#include "report.h"

namespace foreload {
namespace {

int main_with(int argc, char** argv) {
  PrepRatesOptions options;
  bool json = false;
  const auto number = [](const char* text) { return static_cast<unsigned>(std::strtoul(text, nullptr, 10)); };
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--json") json = true;
    if (i + 1 == argc) break;
    if (flag == "--photos") options.photos = argv[++i];
    if (flag == "--rounds") options.rounds = number(argv[++i]);
    if (flag == "--images") options.images = number(argv[++i]);
    if (flag == "--python") options.python = argv[++i];
  }
  const auto report = measure_prep(options);
  if (!report) {
    fmt::print(stderr, "bench/prep: {}\n", report.error().message);
    return 2;
  }
  for (const std::string& reason : report->skipped) fmt::print(stderr, "bench/prep: not measured: {}\n", reason);
  BenchReport lines;
  for (const PrepFigure& figure : report->figures) {
    lines.add(figure.name, figure.value, figure.unit, figure.goal, figure.at_least, figure.how);
  }
  if (!json) fmt::print("images per second of one core: {}\n{}\n", fmt::join(report->rates, ", "), report->advice);
  return lines.print(json);
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  return foreload::main_with(argc, argv);
}
