// What to do about it, and what it costs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis_parts.h"
#include "report/table.h"

namespace foreload {

namespace {

Element gain_of(const JsonNode& remedy) {
  const auto gain = remedy["gain"].number();
  const bool helps = gain && *gain >= 0.0005;
  Element block("div");
  block.set("class", helps ? "gain" : "gain none");
  if (gain) block.add(number_element(remedy["gain"].shown_as(gain_text(*gain))));
  for (const Number& rate : rate_of(remedy["samples_per_s"])) {
    block.add(Element("small").text("then ").add(number_element(rate)));
  }
  if (remedy["no_stall"].is_true()) block.add(Element("small").text("no stall"));
  return block;
}

Element remedy_of(const JsonNode& remedy) {
  Element content("div");
  content.add(Element("h3").text(with_capital(remedy["title"].text())));
  const std::string says = remedy["says"].text();
  if (!says.empty()) content.add(Element("p").text(with_capital(says), 2 * kLongestText));
  const std::string command = remedy["command"].text();
  if (!command.empty()) content.add(command_block(command, Language::kShell));
  const std::string python = remedy["python"].text();
  if (!python.empty()) content.add(command_block(python, Language::kPython));
  return Element("li").add(gain_of(remedy)).add(content);
}

// "per_million_samples" → "per million samples".
std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string heading_of(const std::string& field, const std::string& currency) {
  if (field == "memory_gb") return "memory, GB";
  if (field == "utilisation") return "busy";
  if (field == "samples_per_s") return "samples/s";
  const bool price = field.starts_with("per_") || field.ends_with("_price") || field == "price";
  return spaced(field) + (price && !currency.empty() ? ", " + currency : "");
}

// The fields of both, in the order in which they come.
std::vector<std::string> fields_of(const std::vector<JsonNode>& setups) {
  std::vector<std::string> fields;
  for (const JsonNode& setup : setups) {
    for (const auto& [name, node] : setup.members()) {
      const bool known = std::find(fields.begin(), fields.end(), name) != fields.end();
      if (!known && (node.number() || !node.text().empty())) fields.push_back(name);
    }
  }
  return fields;
}

Cell cell_of(const std::string& field, const JsonNode& node) {
  const auto number = node.number();
  if (!number) return {node.text().empty() ? "–" : node.text(), {}};
  return {"", {node.shown_as(field == "utilisation" ? percent(*number) : short_number(*number))}};
}

}  // namespace

void add_remedies(Page& page, const JsonNode& analysis) {
  if (!analysis["remedies"].is_there()) return;
  Element list("ol");
  list.set("class", "remedies");
  for (const JsonNode& remedy : analysis["remedies"].items()) list.add(remedy_of(remedy));
  if (list.is_empty()) {
    const bool waits = analysis["prediction"]["utilisation"].number().value_or(0) < 0.995;
    page.section("remedies", "What to change", "",
                 Element("p").text(waits ? "No change was found that makes this job faster." : "Nothing."));
    return;
  }
  page.section("remedies", "What to change", "Largest gain first, each against the rate that is predicted as it is.",
               list);
}

void add_prices(Page& page, const JsonNode& analysis) {
  const JsonNode prices = analysis["prices"];
  const std::vector<JsonNode> setups = {prices["here"], prices["cheapest"]};
  const auto fields = fields_of(setups);
  if (fields.empty()) return;
  Table content{"Prices", {{"", false}}, {{}}};
  for (const std::string& field : fields)
    content.columns.push_back({heading_of(field, prices["currency"].text()), true});
  constexpr std::array<const char*, 2> kNames = {"As it is", "Cheapest that keeps the accelerator busy"};
  for (std::size_t i = 0; i < setups.size(); ++i) {
    if (!setups[i].is_there()) continue;
    Row row = {{kNames[i], {}}};
    for (const std::string& field : fields) row.push_back(cell_of(field, setups[i][field]));
    content.groups[0].rows.push_back(row);
  }
  page.section("prices", "What it costs", "By the prices that were given.", table(content));
}

}  // namespace foreload
