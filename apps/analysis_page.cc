#include "analysis_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis_parts.h"
#include "base/text.h"

namespace foreload {

namespace {

constexpr double kNoWait = 0.005;

std::string cause_of(const std::string& bound) {
  if (bound == "fetch") return ": storage is too slow.";
  if (bound == "prep") return ": samples are not prepared fast enough.";
  return ".";
}

// The page in one sentence.
std::string finding_of(const JsonNode& analysis) {
  const JsonNode prediction = analysis["prediction"];
  const bool several = has_several_accelerators(analysis);
  const auto busy = prediction["utilisation"].number();
  if (busy) {
    const double wait = std::clamp(1 - *busy, 0.0, 1.0);
    const std::string who = several ? "Your accelerators" : "Your accelerator";
    if (wait < kNoWait) return who + (several ? " do" : " does") + " not wait for data.";
    return fmt::format("{} {} {} of the time{}", who, several ? "wait" : "waits", percent(wait),
                       cause_of(prediction["bound"].text()));
  }
  if (const auto rate = prediction["samples_per_s"].number()) {
    return fmt::format("Data can come at {} samples/s; what your accelerator takes is not known.", short_number(*rate));
  }
  return "Too little could be measured to say what your accelerator waits for.";
}

std::string range_text(const JsonNode& node) {
  const auto low = node["low"].number();
  const auto high = node["high"].number();
  return low && high ? fmt::format("{} to {}", short_number(*low), short_number(*high)) : std::string();
}

Element lead_of(const JsonNode& analysis) {
  const JsonNode prediction = analysis["prediction"];
  std::string text;
  const auto rate = prediction["samples_per_s"].number();
  const auto most = prediction["accelerator_samples_per_s"].number();
  if (rate) {
    text = fmt::format("The loader is predicted to deliver {} samples/s", short_number(*rate));
    if (most) text += fmt::format(" of the {} that could be trained on", short_number(*most));
    text += ".";
  }
  const auto first = prediction["first_epoch"]["samples_per_s"].number();
  if (rate && first && *first < 0.98 * *rate) {
    text += fmt::format(" The first epoch, in which nothing is cached yet, runs at {}.", short_number(*first));
  }
  const std::string assumes = prediction["assumes"].text();
  if (rate && !assumes.empty()) text += " Assumed: " + assumes + ".";
  return Element("p").set("class", "lead").text(text, 2 * kLongestText);
}

void add_key(Element& list, const std::string& name, const std::vector<Number>& numbers, const std::string& note) {
  if (numbers.empty()) return;
  Element value("dd");
  value.add(number_element(numbers[0]));
  if (!note.empty()) value.add(Element("small").text(note));
  list.add(Element("div").add(Element("dt").text(name)).add(value));
}

Element key_figures(const JsonNode& analysis) {
  const JsonNode prediction = analysis["prediction"];
  Element list("dl");
  list.set("class", "key");
  const std::string range = range_text(prediction);
  add_key(list, "Predicted rate", rate_of(prediction["samples_per_s"]),
          range.empty() ? "" : range + " by the 95\u00A0% ranges of the measurements");
  add_key(list, has_several_accelerators(analysis) ? "Accelerators busy" : "Accelerator busy",
          share_of(prediction["utilisation"]), "from the second epoch on");
  add_key(list, "In the first epoch", share_of(prediction["first_epoch"]["utilisation"]), "busy, with empty caches");
  const auto remedies = analysis["remedies"].items();
  if (!remedies.empty()) {
    const auto gain = remedies[0]["gain"].number();
    if (gain && *gain > 0) {
      add_key(list, "Largest gain", {remedies[0]["gain"].shown_as(gain_text(*gain))},
              with_capital(remedies[0]["title"].text()));
    }
  }
  return list;
}

// One bar of the time of an epoch, with its legend.
Element time_of(const std::string& name, const JsonNode& epoch) {
  struct Share {
    const char* field;
    const char* says;
    Tone tone;
  };
  const std::vector<Share> kShares = {{"busy", "busy", kBusyTone},
                                      {"prep_stall", "waits for prep", kPrepTone},
                                      {"fetch_stall", "waits for storage", kFetchTone}};
  std::vector<BarPart> parts;
  std::vector<LegendEntry> entries;
  for (const Share& share : kShares) {
    const auto size = epoch[share.field].number();
    if (!size) continue;
    parts.push_back({share.says, share.tone, *size});
    entries.push_back({share.says, share.tone, false, share_of(epoch[share.field])});
  }
  Element block("div");
  if (!epoch["busy"].number()) return block;  // without an accelerator there is no time of it
  Element heading("h3");
  heading.text(name);
  for (const Number& rate : rate_of(epoch["samples_per_s"])) heading.text(" · ").add(number_element(rate));
  return block.add(heading).add(stacked_bar(parts, 1, name)).add(legend(entries));
}

Element rates_of(const JsonNode& prediction) {
  struct Rate {
    const char* name;
    const char* says;
    Tone tone;
  };
  const std::vector<Rate> kRates = {
      {"fetch", "Fetching", kFetchTone}, {"prep", "Preparing", kPrepTone}, {"accelerator", "Accelerator", kBusyTone}};
  std::vector<BarRow> rows;
  for (const Rate& rate : kRates) {
    const JsonNode node = prediction[fmt::format("{}_samples_per_s", rate.name)];
    if (!node.number()) continue;
    const bool slowest = prediction["bound"].text() == rate.name;
    rows.push_back(
        {rate.says, {{rate.says, rate.tone, *node.number()}}, rate_of(node), slowest, slowest ? "decides" : ""});
  }
  Element block("div");
  if (rows.empty()) return block;
  return block.add(Element("h3").text("The slowest decides")).add(bar_rows(rows));
}

std::string footer_of(const JsonNode& analysis) {
  std::string text = "foreload " + analysis["version"].text();
  if (const auto seconds = analysis["seconds"].number())
    text += fmt::format(" · measured for {} s", short_number(*seconds));
  if (const auto bytes = analysis["bytes_read"].number()) text += fmt::format(" · {} read", bytes_text(*bytes));
  return text + " · This file needs no network and sends nothing.";
}

}  // namespace

std::vector<Number> rate_of(const JsonNode& node) {
  const auto rate = node.number();
  if (!rate) return {};
  return {node.shown_as(short_number(*rate) + "\u00A0samples/s")};
}

std::vector<Number> share_of(const JsonNode& node) {
  const auto share = node.number();
  if (!share) return {};
  return {node.shown_as(percent(*share))};
}

std::string bytes_text(double bytes) {
  if (bytes < 0 || bytes >= 0x1p63) return short_number(bytes) + " B";
  return format_bytes(static_cast<Bytes>(bytes));
}

std::string with_capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

bool has_several_accelerators(const JsonNode& analysis) {
  return analysis["job"]["accelerators"].number().value_or(1) * analysis["job"]["hosts"].number().value_or(1) > 1;
}

void add_header(Page& page, const JsonNode& analysis) {
  Element lead("div");
  lead.add(lead_of(analysis));
  const Element key = key_figures(analysis);
  if (!key.is_empty()) lead.add(key);
  const std::string uri = analysis["dataset"]["uri"].text();
  page.begin(uri.empty() ? "foreload analyze" : "foreload analyze · " + uri, finding_of(analysis), lead);
}

void add_time(Page& page, const JsonNode& analysis) {
  const JsonNode prediction = analysis["prediction"];
  Element epochs("div");
  epochs.set("class", "epochs");
  for (const Element& part :
       {time_of("Later epochs", prediction), time_of("First epoch", prediction["first_epoch"]), rates_of(prediction)}) {
    if (!part.is_empty()) epochs.add(part);
  }
  if (epochs.is_empty()) return;
  const bool shares = prediction["busy"].number().has_value();
  page.section("time", shares ? "Where the time goes" : "What each part can do",
               shares ? "Shares of the accelerator's time, as the model predicts them." : "", epochs);
}

std::string analysis_page(const Json& analysis) {
  const JsonNode document(analysis);
  Page page("Foreload: " + finding_of(document));
  add_header(page, document);
  add_time(page, document);
  add_remedies(page, document);
  add_what_if(page, document);
  add_raw_against_record(page, document);
  add_prices(page, document);
  add_check(page, document);
  add_measured(page, document);
  add_missing(page, document);
  add_facts(page, document);
  page.end(footer_of(document));
  return page.to_string();
}

}  // namespace foreload
