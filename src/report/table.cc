#include "report/table.h"

namespace foreload {

namespace {

Element head_of(const Table& content) {
  Element row("tr");
  for (const Column& column : content.columns) {
    Element cell("th");
    cell.set("scope", "col");
    if (column.is_number) cell.set("class", "number");
    row.add(cell.text(column.title));
  }
  return Element("thead").add(row);
}

Element cell_of(const Cell& cell, bool is_heading, bool is_number) {
  Element element(is_heading ? "th" : "td");
  if (is_heading) element.set("scope", "row");
  if (is_number) element.set("class", "number");
  if (cell.numbers.empty()) return element.text(cell.text);
  for (std::size_t i = 0; i < cell.numbers.size(); ++i) {
    if (i > 0) element.text("–");
    element.add(number_element(cell.numbers[i]));
  }
  return element;
}

Element body_of(const RowGroup& group, const std::vector<Column>& columns) {
  Element body("tbody");
  if (!group.title.empty()) {
    Element heading("th");
    heading.set("class", "group").set("scope", "rowgroup").set("colspan", std::to_string(columns.size()));
    body.add(Element("tr").add(heading.text(group.title)));
  }
  for (const Row& cells : group.rows) {
    Element row("tr");
    for (std::size_t i = 0; i < cells.size(); ++i) {
      row.add(cell_of(cells[i], i == 0, i < columns.size() && columns[i].is_number));
    }
    body.add(row);
  }
  return body;
}

}  // namespace

Element table(const Table& content) {
  Element drawn("table");
  drawn.add(Element("caption").text(content.caption)).add(head_of(content));
  for (const RowGroup& group : content.groups) drawn.add(body_of(group, content.columns));
  Element frame("div");
  return frame.set("class", "wide")
      .set("tabindex", "0")
      .set("role", "region")
      .set("aria-label", content.caption)
      .add(drawn);
}

Element folded_table(const std::string& summary, const Table& content) {
  Element details("details");
  return details.add(Element("summary").text(summary)).add(table(content));
}

}  // namespace foreload
