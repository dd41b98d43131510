// What would be if: curves over one quantity each, and choices beside each other.
//
// A curve shows delivered samples/s. What is missing up to the rate that the accelerator could take is filled with its
// causes: shares of time are proportional to lost samples, so waiting for prep and waiting for storage lie above each
// other between the two lines.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis_parts.h"
#include "report/line_chart.h"
#include "report/table.h"

namespace foreload {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// One point or option: how its rate is made up.
struct Makeup {
  double rate = kUnknown;
  double lost_to_prep = kUnknown;
  double lost_to_fetch = kUnknown;
  double ceiling = kUnknown;  // what the accelerator could take
};

Makeup makeup_of(const JsonNode& node) {
  Makeup makeup;
  makeup.rate = node["samples_per_s"].number().value_or(kUnknown);
  const double busy = node["utilisation"].number().value_or(kUnknown);
  if (!(busy > 0)) return makeup;
  makeup.ceiling = makeup.rate / busy;
  makeup.lost_to_prep = node["prep_stall"].number().value_or(0) * makeup.ceiling;
  makeup.lost_to_fetch = node["fetch_stall"].number().value_or(0) * makeup.ceiling;
  return makeup;
}

// "48 GB", "1 core".
std::string with_unit(double x, std::string unit) {
  const bool plural = unit.ends_with('s') && unit.find('/') == std::string::npos;
  if (x == 1 && plural) unit.pop_back();
  return short_number(x) + (unit.empty() ? "" : "\u00A0" + unit);
}

// Short, because the unit of x stands beside it.
std::string read_out(const JsonNode& point, double x, double rate) {
  std::string text = fmt::format("{}: {} samples/s", short_number(x), short_number(rate));
  if (const auto busy = point["utilisation"].number()) text += fmt::format(", {} busy", percent(*busy));
  return text;
}

void add_marks(LineChart& chart, const JsonNode& what_if, const std::string& unit) {
  if (const auto here = what_if["here"].number()) chart.marks.push_back({*here, "you are here", true});
  if (const auto knee = what_if["knee"]["x"].number()) {
    chart.marks.push_back({*knee, "knee: " + with_unit(*knee, unit), false});
  }
}

LineChart chart_of(const JsonNode& what_if) {
  const std::string unit = what_if["x_unit"].text();
  ChartLine delivered{"samples/s delivered", kBusyTone, {}};
  ChartLine ceiling{"samples/s that the accelerator could take", Tone::kQuiet, {}};
  ChartArea prep{"lost to waiting for prep", kPrepTone, {}};
  ChartArea fetch{"lost to waiting for storage", kFetchTone, {}};
  for (const JsonNode& point : what_if["points"].items()) {
    const double x = point["x"].number().value_or(kUnknown);
    const Makeup makeup = makeup_of(point);
    delivered.points.push_back({x, makeup.rate, read_out(point, x, makeup.rate)});
    ceiling.points.push_back({x, makeup.ceiling, ""});
    const double between = makeup.rate + makeup.lost_to_prep;
    prep.points.push_back({x, makeup.rate, between});
    fetch.points.push_back({x, between, between + makeup.lost_to_fetch});
  }
  LineChart chart{what_if["title"].text() + ": samples/s by " + unit, unit, {prep, fetch}, {delivered, ceiling}, {}};
  add_marks(chart, what_if, unit);
  return chart;
}

// Of a point or an option: rate, and shares of time.
void add_cells(Row& row, const JsonNode& node) {
  const auto rate = node["samples_per_s"].number();
  row.push_back(rate ? Cell{"", {node["samples_per_s"].shown_as(short_number(*rate))}} : Cell{"–", {}});
  for (const char* const field : {"utilisation", "fetch_stall", "prep_stall"})
    row.push_back({"–", share_of(node[field])});
}

Element folded_numbers(const std::string& caption, const Column& first, const std::vector<Row>& rows) {
  return folded_table(
      "Numbers", {caption,
                  {first, {"samples/s", true}, {"busy", true}, {"waits for storage", true}, {"waits for prep", true}},
                  {{"", rows}}});
}

Element numbers_of(const JsonNode& what_if) {
  std::vector<Row> rows;
  for (const JsonNode& point : what_if["points"].items()) {
    const auto x = point["x"].number();
    Row row = {x ? Cell{"", {point["x"].shown_as(short_number(*x))}} : Cell{"–", {}}};
    add_cells(row, point);
    rows.push_back(row);
  }
  return folded_numbers(what_if["title"].text(), {what_if["x_unit"].text(), true}, rows);
}

Element figure_of(const JsonNode& what_if, const LineChart& chart) {
  Element caption("figcaption");
  caption.add(Element("h3").text(with_capital(what_if["title"].text())));
  const std::string says = what_if["knee"]["says"].text();
  if (!says.empty()) caption.add(Element("p").text(with_capital(says)));
  Element figure("figure");
  figure.set("data-what-if", what_if["name"].text());
  return figure.add(caption).add(line_chart(chart)).add(numbers_of(what_if));
}

std::string mark_of(const JsonNode& option) {
  if (option["here"].is_true()) return option["measured"].is_true() ? "now, measured" : "now";
  return option["measured"].is_true() ? "measured" : "";
}

BarRow row_of(const JsonNode& option) {
  const Makeup makeup = makeup_of(option);
  BarRow row{option["label"].text(),
             {{"delivered", kBusyTone, makeup.rate},
              {"lost to prep", kPrepTone, makeup.lost_to_prep},
              {"lost to storage", kFetchTone, makeup.lost_to_fetch}},
             rate_of(option["samples_per_s"]),
             option["here"].is_true(),
             mark_of(option)};
  const auto busy = option["utilisation"].number();
  if (busy) row.numbers.push_back(option["utilisation"].shown_as(percent(*busy) + " busy"));
  return row;
}

Element choices_of(const JsonNode& analysis) {
  Element all("div");
  all.set("class", "choices");
  for (const JsonNode& choice : analysis["choices"].items()) {
    std::vector<BarRow> rows;
    std::vector<Row> numbers;
    for (const JsonNode& option : choice["options"].items()) {
      rows.push_back(row_of(option));
      numbers.push_back({{option["label"].text(), {}}});
      add_cells(numbers.back(), option);
    }
    if (rows.empty()) continue;
    Element block("div");
    block.set("data-choice", choice["name"].text());
    block.add(Element("h3").text(with_capital(choice["title"].text()))).add(bar_rows(rows));
    all.add(block.add(folded_numbers(choice["title"].text(), {"", false}, numbers)));
  }
  return all;
}

struct Form {
  const char* field;
  const char* label;
  Tone tone;
};

// One kind of cost, for every form that was tried.
BarGroup group_of(const JsonNode& tried, const char* title, const char* field, std::string (*shown)(double)) {
  const std::vector<Form> kForms = {{"raw", "raw files", Tone::kQuiet},
                                    {"record", "records", Tone::kFourth},
                                    {"crop_addressable", "crop-addressable", Tone::kFourth}};
  BarGroup group{title, {}};
  for (const Form& form : kForms) {
    const JsonNode node = tried[form.field][field];
    if (const auto number = node.number()) {
      group.rows.push_back(
          {form.label, {{form.label, form.tone, *number}}, {node.shown_as(shown(*number))}, false, ""});
    }
  }
  return group;
}

}  // namespace

void add_what_if(Page& page, const JsonNode& analysis) {
  Element charts("div");
  charts.set("class", "charts");
  Element legend("div");
  for (const JsonNode& what_if : analysis["what_if"].items()) {
    if (what_if["points"].items().empty()) continue;
    const LineChart chart = chart_of(what_if);
    if (legend.is_empty()) legend.add(legend_of(chart));
    charts.add(figure_of(what_if, chart));
  }
  const Element choices = choices_of(analysis);
  if (charts.is_empty() && choices.is_empty()) return;
  Element content("div");
  content.add(legend);
  if (!charts.is_empty()) content.add(charts);
  if (!choices.is_empty()) content.add(choices);
  page.section("what-if", "What if",
               "One thing changes, everything else stays as it is. All of it is predicted, unless it says measured.",
               content);
}

void add_raw_against_record(Page& page, const JsonNode& analysis) {
  const JsonNode tried = analysis["raw_against_record"];
  if (!tried.is_there()) return;
  std::vector<BarGroup> groups = {group_of(tried, "Requests to storage", "requests", whole_number),
                                  group_of(tried, "Bytes from storage", "bytes", bytes_text),
                                  group_of(tried, "Seconds of CPU", "cpu_seconds", short_number),
                                  group_of(tried, "Samples per second", "samples_per_s", short_number)};
  std::erase_if(groups, [](const BarGroup& group) { return group.rows.empty(); });
  if (groups.empty()) return;
  std::string intro = "Measured on the same samples in every form.";
  if (const auto samples = tried["samples"].number()) {
    intro = fmt::format("Measured on the same {} samples in every form.", whole_number(*samples));
  }
  page.section("forms", "Raw files against records", intro, bar_groups(groups));
}

}  // namespace foreload
