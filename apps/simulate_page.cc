// The page of a simulation: how the systems compare, where the time goes, and the sweeps, in the look of analyze.
#include <fmt/format.h>

#include <algorithm>

#include "analysis_parts.h"
#include "report/bars.h"
#include "report/table.h"
#include "simulate_parts.h"

namespace foreload {
namespace {

JsonNode last_epoch(const JsonNode& system) {
  const auto epochs = system["epochs"].items();
  return epochs.empty() ? system["nothing"] : epochs.back();
}

// The fastest of those that load.
std::string finding_of(const JsonNode& simulation) {
  std::string name;
  double best = 0;
  for (const JsonNode& system : simulation["systems"].items()) {
    const double rate = last_epoch(system)["samples_per_s"].number().value_or(0);
    if (system["name"].text() == "none" || rate <= best) continue;
    best = rate;
    name = system["name"].text();
  }
  if (name.empty()) return "Simulated set-ups.";
  return fmt::format("{} delivers {} samples/s.", with_capital(name), short_number(best));
}

BarRow row_of(const JsonNode& system) {
  const JsonNode epoch = last_epoch(system);
  const double rate = epoch["samples_per_s"].number().value_or(0);
  const double busy = epoch["utilisation"].number().value_or(0);
  const double whole = busy > 0 ? rate / busy : rate;
  BarRow row{system["name"].text(),
             {{"delivered", kBusyTone, rate},
              {"lost to prep", kPrepTone, epoch["stall"]["prep"].number().value_or(0) * whole},
              {"lost to storage", kFetchTone, epoch["stall"]["fetch"].number().value_or(0) * whole}},
             rate_of(epoch["samples_per_s"]),
             false,
             ""};
  if (busy == 0) row.parts.resize(1);
  for (const Number& share : share_of(epoch["utilisation"])) row.numbers.push_back(share);
  return row;
}

void add_systems(Page& page, const JsonNode& simulation) {
  std::vector<BarRow> bars;
  std::vector<Row> rows;
  for (const JsonNode& system : simulation["systems"].items()) {
    const JsonNode epoch = last_epoch(system);
    bars.push_back(row_of(system));
    Row row{{system["name"].text(), {}}};
    row.push_back({"–", rate_of(epoch["samples_per_s"])});
    row.push_back({"–", share_of(epoch["utilisation"])});
    row.push_back({"–", share_of(epoch["stall"]["fetch"])});
    row.push_back({"–", share_of(epoch["stall"]["prep"])});
    for (const char* const place : {"memory", "disk", "peer", "source"}) {
      const JsonNode bytes = epoch["bytes"][place];
      row.push_back(bytes.number() ? Cell{"", {bytes.shown_as(bytes_text(*bytes.number()))}} : Cell{"–", {}});
    }
    rows.push_back(row);
  }
  if (rows.empty()) return;
  Element content("div");
  content.add(bar_rows(bars));
  content.add(table({"Systems in the last epoch",
                     {{"system", false},
                      {"rate", true},
                      {"busy", true},
                      {"waits for storage", true},
                      {"waits for prep", true},
                      {"memory", true},
                      {"disk", true},
                      {"peers", true},
                      {"storage", true}},
                     {{"", rows}}}));
  page.section("systems", "Systems",
               "The last epoch, when caches are as full as they get. Bytes are those of all hosts.", content);
}

void add_presets(Page& page, const JsonNode& simulation) {
  std::vector<RowGroup> groups;
  for (const JsonNode& preset : simulation["presets"].items()) {
    RowGroup group{preset["name"].text() + ": " + preset["source"].text(), {}};
    for (const JsonNode& row : preset["rows"].items()) {
      group.rows.push_back({{row["what"].text(), {}},
                            {row["published_text"].text(), {}},
                            {row["simulated_text"].text(), {}},
                            {row["basis"].text(), {}},
                            {row["foreload_text"].text(), {}}});
    }
    if (!group.rows.empty()) groups.push_back(group);
  }
  if (groups.empty()) return;
  page.section(
      "presets", "Published figures", "A fitted figure says nothing by itself: something was chosen by it.",
      table({"Published figures",
             {{"figure", false}, {"published", true}, {"simulated", true}, {"basis", false}, {"Foreload", true}},
             groups}));
}

void add_setup(Page& page, const JsonNode& simulation) {
  std::vector<Row> rows;
  for (const auto& [name, value] : simulation["setup"].members()) {
    const auto number = value.number();
    rows.push_back({{name, {}}, number ? Cell{"", {value.shown_as(short_number(*number))}} : Cell{"no limit", {}}});
  }
  if (rows.empty()) return;
  page.section("setup", "The cluster", "",
               table({"The cluster", {{"parameter", false}, {"value", true}}, {{"", rows}}}));
}

}  // namespace

std::string simulation_page(const Json& simulation) {
  const JsonNode root(simulation);
  Page page("Simulation");
  page.begin("foreload simulate", finding_of(root),
             Element("p")
                 .set("class", "lead")
                 .text("A cluster under a virtual clock, with the plans and policies of the "
                       "runtime. Nothing was measured."));
  add_systems(page, root);
  add_what_if(page, root);
  add_presets(page, root);
  add_setup(page, root);
  page.end("foreload " FORELOAD_VERSION " · This file needs no network and sends nothing.");
  return page.to_string();
}

}  // namespace foreload
