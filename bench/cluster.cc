// bench/cluster: many hosts, one cache.   cluster [--json]
#include <cstring>

#include "cluster_parts.h"

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    fmt::print(stderr, "cluster [--json]\n");
    return 2;
  }
  foreload::BenchReport report;
  if (const foreload::Status done = foreload::bench_planning(report); !done.ok()) {
    fmt::print(stderr, "bench/cluster: {}\n", done.error().message);
    return 2;
  }
  return report.print(json);
}
