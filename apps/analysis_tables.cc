// What the prediction stands on: measurements, what is missing, the check against reality, dataset and machine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis_parts.h"
#include "report/table.h"

namespace foreload {

namespace {

std::string group_title(const std::string& group) {
  if (group == "storage") return "Storage";
  if (group == "cache") return "Caches";
  if (group == "prep") return "Prep";
  if (group == "accelerator") return "Accelerator";
  if (group == "network") return "Network";
  return group.empty() ? "Other" : group;
}

// How far the ends of the range are from the value.
std::string spread_of(const JsonNode& row) {
  const auto value = row["value"].number();
  const auto low = row["low"].number();
  const auto high = row["high"].number();
  if (!value || !low || !high || *value == 0) return "–";
  return "±\u00A0" + percent(std::max(std::abs(*high - *value), std::abs(*value - *low)) / std::abs(*value));
}

Cell number_cell(const JsonNode& node, const std::string& unit = {}) {
  const auto number = node.number();
  if (!number) return {"–", {}};
  return {"", {node.shown_as(short_number(*number) + (unit.empty() ? "" : "\u00A0" + unit))}};
}

Cell range_cell(const JsonNode& row) {
  const auto low = row["low"].number();
  const auto high = row["high"].number();
  if (!low || !high) return {"–", {}};
  return {"", {row["low"].shown_as(short_number(*low)), row["high"].shown_as(short_number(*high))}};
}

// A difference of two measurements that is not there.
bool is_invisible(const JsonNode& row) {
  return row["unit"].text() == "ms" && row["value"].number() == 0.0;
}

Row measured_row(const JsonNode& row) {
  if (is_invisible(row)) {
    return {{row["name"].text(), {}},    {"too small to see", {}}, {"–", {}}, {"–", {}},
            number_cell(row["windows"]), {row["how"].text(), {}}};
  }
  return {{row["name"].text(), {}},
          number_cell(row["value"], row["unit"].text()),
          range_cell(row),
          {spread_of(row), {}},
          number_cell(row["windows"]),
          {row["how"].text(), {}}};
}

// The groups in the order in which they come.
std::vector<std::string> groups_of(const std::vector<JsonNode>& rows) {
  std::vector<std::string> groups;
  for (const JsonNode& row : rows) {
    const std::string group = row["group"].text();
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

// In bytes: gets a line of its own.
constexpr std::size_t kLongFact = 28;

class Facts {
 public:
  explicit Facts(const std::string& title) : title_(title) { list_.set("class", "facts"); }

  void text(const std::string& name, const JsonNode& node) {
    const std::string text = node.text();
    if (!text.empty()) add(name, Element("dd").text(text), text.size() > kLongFact);
  }
  void number(const std::string& name, const JsonNode& node, std::string (*shown)(double)) {
    const auto number = node.number();
    if (number) add(name, Element("dd").add(number_element(node.shown_as(shown(*number)))));
  }
  // Into `content`, if there is any.
  void end(Element& content) const {
    if (list_.is_empty()) return;
    content.add(Element("h3").text(title_)).add(list_);
  }

 private:
  void add(const std::string& name, const Element& value, bool is_long = false) {
    Element fact("div");
    if (is_long) fact.set("class", "long");
    list_.add(fact.add(Element("dt").text(name)).add(value));
  }

  std::string title_;
  Element list_{"dl"};
};

void add_dataset(Element& content, const JsonNode& dataset) {
  Facts facts("Dataset");
  facts.text("Where", dataset["uri"]);
  facts.text("Form", dataset["form"]);
  facts.number("Samples", dataset["samples"], whole_number);
  facts.number("Bytes", dataset["bytes"], bytes_text);
  facts.number("Mean sample", dataset["mean_bytes"], bytes_text);
  const JsonNode sizes = dataset["sizes"];
  facts.number("Smallest", sizes["smallest"], bytes_text);
  facts.number("A tenth is smaller than", sizes["p10"], bytes_text);
  facts.number("Half is smaller than", sizes["median"], bytes_text);
  facts.number("A tenth is larger than", sizes["p90"], bytes_text);
  facts.number("One in a hundred is larger than", sizes["p99"], bytes_text);
  facts.number("Largest", sizes["largest"], bytes_text);
  facts.text("Fingerprint", dataset["fingerprint"]);
  facts.end(content);
}

void add_machine(Element& content, const JsonNode& machine) {
  Facts facts("Machine");
  facts.text("Processor", machine["cpu"]);
  facts.number("Cores", machine["cores"], whole_number);
  facts.number("Memory", machine["memory_bytes"], bytes_text);
  facts.end(content);
}

void add_job(Element& content, const JsonNode& job) {
  Facts facts("Job");
  facts.text("Accelerator", job["accelerator"]);
  facts.number("Accelerators per host", job["accelerators"], whole_number);
  facts.number("Hosts", job["hosts"], whole_number);
  facts.number("Threads", job["threads"], whole_number);
  facts.number("Memory for the loader", job["memory_bytes"], bytes_text);
  facts.number("Share of the dataset that is cached", job["cached_share"], percent);
  facts.text("Output", job["dtype"]);
  facts.text("Chain", job["chain"]);
  facts.end(content);
}

}  // namespace

void add_check(Page& page, const JsonNode& analysis) {
  RowGroup points;
  for (const JsonNode& point : analysis["check"].items()) {
    points.rows.push_back({{point["point"].text(), {}},
                           number_cell(point["predicted"], "samples/s"),
                           number_cell(point["measured"], "samples/s"),
                           {"–", share_of(point["off"])}});
  }
  if (points.rows.empty()) return;
  const Table content{"Predicted against measured",
                      {{"point", false}, {"predicted", true}, {"measured", true}, {"off by", true}},
                      {points}};
  page.section("check", "Predicted against measured",
               "The loader was run for real at these points, after it was predicted.", table(content));
}

void add_measured(Page& page, const JsonNode& analysis) {
  const auto rows = analysis["measured"].items();
  if (rows.empty()) return;
  Table content{
      "What was measured",
      {{"", false}, {"median", true}, {"95\u00A0% range", true}, {"sure to", true}, {"windows", true}, {"how", false}},
      {}};
  for (const std::string& name : groups_of(rows)) {
    RowGroup group{group_title(name), {}};
    for (const JsonNode& row : rows) {
      if (row["group"].text() == name) group.rows.push_back(measured_row(row));
    }
    content.groups.push_back(group);
  }
  page.section("measured", "What was measured",
               "The median of repeated short windows, and the range in which it lies with 95\u00A0% confidence.",
               table(content));
}

void add_missing(Page& page, const JsonNode& analysis) {
  Element list("ul");
  list.set("class", "missing");
  for (const JsonNode& missing : analysis["missing"].items()) {
    Element item("li");
    item.add(Element("b").text(missing["what"].text()));
    const std::string why = missing["why"].text();
    if (!why.empty()) item.text(": " + why, 2 * kLongestText);
    list.add(item);
  }
  if (list.is_empty()) return;
  page.section("missing", "What could not be measured", "", list);
}

void add_facts(Page& page, const JsonNode& analysis) {
  Element content("div");
  add_dataset(content, analysis["dataset"]);
  add_machine(content, analysis["machine"]);
  add_job(content, analysis["job"]);
  if (content.is_empty()) return;
  page.section("facts", "Dataset, machine, job", "", content);
}

}  // namespace foreload
