// The parts of the page of an analysis. Each takes the whole document and adds its sections, or none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "json_node.h"
#include "report/bars.h"
#include "report/page.h"

namespace foreload {

// Time of the accelerator looks the same wherever it appears.
inline constexpr Tone kBusyTone = Tone::kFirst;
inline constexpr Tone kPrepTone = Tone::kSecond;
inline constexpr Tone kFetchTone = Tone::kThird;

// apps/analysis_page.cc
void add_header(Page& page, const JsonNode& analysis);
void add_time(Page& page, const JsonNode& analysis);

// apps/analysis_remedies.cc
void add_remedies(Page& page, const JsonNode& analysis);
void add_prices(Page& page, const JsonNode& analysis);

// apps/analysis_curves.cc
void add_what_if(Page& page, const JsonNode& analysis);
void add_raw_against_record(Page& page, const JsonNode& analysis);

// apps/analysis_tables.cc
void add_check(Page& page, const JsonNode& analysis);
void add_measured(Page& page, const JsonNode& analysis);
void add_missing(Page& page, const JsonNode& analysis);
void add_facts(Page& page, const JsonNode& analysis);

// "812 samples/s"; nothing where there is no number.
std::vector<Number> rate_of(const JsonNode& node);
std::vector<Number> share_of(const JsonNode& node);
std::string bytes_text(double bytes);
std::string with_capital(std::string text);
// "Your accelerator", "Your accelerators".
bool has_several_accelerators(const JsonNode& analysis);

}  // namespace foreload
