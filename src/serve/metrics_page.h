// A page of metrics as Prometheus reads it (text format 0.0.4).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace foreload {

enum class MetricKind { kCounter, kGauge };

// As it may stand between quotes.
std::string metric_label(std::string_view text);

class MetricsPage {
 public:
  explicit MetricsPage(std::string_view host) : host_(fmt::format("host=\"{}\"", metric_label(host))) {}

  // What follows is of this family.
  void family(std::string_view name, MetricKind kind, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   kind == MetricKind::kCounter ? "counter" : "gauge");
  }
  // `labels` begins with a comma, or is empty.
  void series(std::string_view labels, double value) {
    fmt::format_to(std::back_inserter(text_), "{}{{{}{}}} {}\n", name_, host_, labels, std::max(value, 0.0));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string host_;
  std::string_view name_;
  std::string text_;
};

}  // namespace foreload
