// What every benchmark prints: figures with their goals, as text or as the JSON list of `--json`.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace foreload {

class BenchReport {
 public:
  // `at_least`: larger is better; otherwise smaller is.
  void add(const std::string& name, double value, const std::string& unit, double goal, bool at_least,
           const std::string& how) {
    const bool ok = at_least ? value >= goal : value <= goal;
    const std::string wanted = fmt::format("{} {}", at_least ? "≥" : "≤", goal);
    rows_.push_back({{"name", name}, {"value", value}, {"unit", unit}, {"goal", wanted}, {"ok", ok}, {"how", how}});
    missed_ = missed_ || !ok;
  }

  // A figure without a goal.
  void note(const std::string& name, double value, const std::string& unit, const std::string& how) {
    rows_.push_back({{"name", name}, {"value", value}, {"unit", unit}, {"goal", "-"}, {"ok", true}, {"how", how}});
  }

  // A figure that can not be measured here, and why: its goal is neither met nor missed.
  void skip(const std::string& name, const std::string& why) {
    rows_.push_back(
        {{"name", name}, {"value", nullptr}, {"unit", "-"}, {"goal", "-"}, {"ok", true}, {"how", "skipped: " + why}});
  }

  std::string to_json() const { return rows_.dump(1, ' ', false, nlohmann::json::error_handler_t::replace); }
  // The exit code: 1 when a goal was missed.
  int print(bool json) const {
    if (json) {
      fmt::print("{}\n", to_json());
    } else {
      for (const auto& row : rows_) {
        const bool skipped = row["value"].is_null();
        const std::string value = skipped ? "-" : fmt::format("{:.4g}", row["value"].get<double>());
        fmt::print("{:<4} {:<46} {:>12} {:<10} goal {:<8} {}\n",
                   skipped                 ? "-"
                   : row["ok"].get<bool>() ? "ok"
                                           : "MISS",
                   row["name"].get<std::string>(), value, row["unit"].get<std::string>(),
                   row["goal"].get<std::string>(), row["how"].get<std::string>());
      }
    }
    return missed_ ? 1 : 0;
  }

 private:
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  bool missed_ = false;
};

}  // namespace foreload
