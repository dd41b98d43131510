#include <fmt/format.h>

#include "progress.h"
#include "report/number.h"
#include "signals.h"
#include "simulate_parts.h"

namespace foreload {
namespace {

std::string published_text(const PresetRow& row) {
  if (row.measure == Measure::kMisses) return percent(row.published);
  const char* const unit = row.measure == Measure::kRate ? "/s" : "x";
  if (row.published_to > 0) return fmt::format("{:g}–{:g}{}", row.published, row.published_to, unit);
  return fmt::format("{:g}{}", row.published, unit);
}

std::string figure_text(const PresetRow& row, double figure) {
  if (row.measure == Measure::kMisses) return percent(figure);
  return row.measure == Measure::kRate ? short_number(figure) + "/s" : fmt::format("{:.2f}x", figure);
}

Json row_json(const PresetRow& row, const Reproduced& made) {
  return {
      {"what", row.what},
      {"measure", measure_name(row.measure)},
      {"system", row.system},
      {"baseline", row.measure == Measure::kSpeedUp || row.measure == Measure::kReads ? Json(row.baseline) : Json()},
      {"changes", row.changes},
      {"published", row.published},
      {"published_to", row.published_to > 0 ? Json(row.published_to) : Json()},
      {"published_text", published_text(row)},
      {"basis", basis_name(row.basis)},
      {"simulated", made.simulated},
      {"simulated_text", figure_text(row, made.simulated)},
      {"ratio", ratio_to_published(row, made.simulated)},
      {"foreload", made.foreload},
      {"foreload_text", figure_text(row, made.foreload)},
      {"epoch_s", made.seconds},
      {"foreload_epoch_s", made.foreload_seconds},
      {"foreload_ahead_or_equal", made.ahead}};
}

}  // namespace

RunOptions run_until_signal() {
  return {.stop = [] { return caught_signal() != 0; }};
}

void list_presets(const Output& output) {
  for (const Preset& preset : presets()) {
    output.line("{:<26}{}", preset.name, preset.says);
    output.line("{:<26}{}", "", preset.source);
  }
}

Json presets_json() {
  Json list = Json::array();
  for (const Preset& preset : presets()) {
    list.push_back({{"name", preset.name},
                    {"says", preset.says},
                    {"source", preset.source},
                    {"setup", preset.setup},
                    {"assumed", preset.assumed}});
  }
  return list;
}

Result<Json> run_preset(const Preset& preset, const Output& output) {
  output.line("{}: {}", preset.name, preset.says);
  output.line("  {}", preset.source);
  output.line("  {}", preset.setup);
  output.line("  assumed: {}", preset.assumed);
  Progress progress(preset.name, "rows", preset.rows.size());
  Json rows = Json::array();
  for (const PresetRow& row : preset.rows) {
    progress.set(rows.size(), row.what);
    FORELOAD_ASSIGN(const Reproduced made, reproduce(preset, row, run_until_signal()));
    output.line("  {:<44} published {:>9}  simulated {:>9}  ({})  foreload {:>9}", row.what, published_text(row),
                figure_text(row, made.simulated), basis_name(row.basis), figure_text(row, made.foreload));
    rows.push_back(row_json(row, made));
  }
  return Json{{"name", preset.name},   {"says", preset.says},       {"source", preset.source},
              {"setup", preset.setup}, {"assumed", preset.assumed}, {"rows", std::move(rows)}};
}

}  // namespace foreload
