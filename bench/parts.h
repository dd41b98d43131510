// For benchmarks that consist of parts: which of them are wanted, and how they are run.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "foreload/result.h"
#include "report.h"

namespace foreload {

template <typename Bench>
struct BenchPart {
  const char* name;
  Status (*run)(const Bench&);
};

struct BenchSettings {
  std::string work = "build/bench-data";  // folder for its data
  std::vector<std::string> only{};        // parts; none: all
  unsigned rounds = 5;
  bool json = false;

  bool wants(const std::string& part) const { return only.empty() || std::ranges::find(only, part) != only.end(); }
};

template <typename Bench>
Result<BenchSettings> parse_settings(const std::vector<std::string>& words, std::span<const BenchPart<Bench>> parts) {
  BenchSettings settings;
  bool names = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool known = std::ranges::any_of(parts, [&](const auto& part) { return words[i] == part.name; });
    if (words[i] == "--json") {
      settings.json = true;
    } else if (words[i] == "--rounds" && i + 1 < words.size()) {
      settings.rounds = std::max(1u, static_cast<unsigned>(std::strtoul(words[++i].c_str(), nullptr, 10)));
    } else if (words[i] == "--work" && i + 1 < words.size()) {
      settings.work = words[++i];
    } else if (words[i] == "--only") {
      names = true;
    } else if (names && known) {
      settings.only.push_back(words[i]);
    } else {
      std::string all;
      for (const auto& part : parts) all += fmt::format("{}{}", all.empty() ? "" : ", ", part.name);
      return Error{Code::kInvalid,
                   fmt::format("{} is not understood: [--json] [--rounds N] [--work DIR] [--only PART...], parts: {}",
                               words[i], all)};
    }
  }
  return settings;
}

template <typename Bench>
Status run_parts(const BenchSettings& settings, std::span<const BenchPart<Bench>> parts, const Bench& bench) {
  for (const auto& part : parts) {
    if (settings.wants(part.name)) FORELOAD_TRY(part.run(bench));
  }
  return {};
}

// The whole program but for what it does beside its parts. `run` makes the Bench and runs the parts.
template <typename Bench, typename Run>
int bench_main(const std::string& name, const std::vector<std::string>& words, std::span<const BenchPart<Bench>> parts,
               const Run& run) {
  const auto fail = [&](const Error& error) {
    fmt::print(stderr, "{}: {}\n", name, error.message);
    return 2;
  };
  const auto settings = parse_settings(words, parts);
  if (!settings.ok()) return fail(settings.error());
  BenchReport report;
  const Status done = run(*settings, report);
  return done.ok() ? report.print(settings->json) : fail(done.error());
}

}  // namespace foreload
