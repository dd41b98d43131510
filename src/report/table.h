// A table of text and numbers; wider than its place, it scrolls.
#pragma once

#include <string>
#include <vector>

#include "report/element.h"
#include "report/number.h"

namespace foreload {

struct Column {
  std::string title;
  bool is_number = false;  // to the right, digits below each other
};

struct Cell {
  std::string text;
  std::vector<Number> numbers;  // instead of the text: one, or two with "–" between them
};

using Row = std::vector<Cell>;  // the first cell is its heading

struct RowGroup {
  std::string title;  // over its rows; may be empty
  std::vector<Row> rows;
};

struct Table {
  std::string caption;  // for those who can not see it
  std::vector<Column> columns;
  std::vector<RowGroup> groups;
};

Element table(const Table& content);

// The table behind a line that opens it.
Element folded_table(const std::string& summary, const Table& content);

}  // namespace foreload
