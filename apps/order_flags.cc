#include "order_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/files.h"
#include "number_flag.h"
#include "source/warnings.h"

namespace foreload {
namespace {

constexpr Bytes kMostWeightBytes = 1_GiB;
constexpr std::size_t kLongestShown = 40;

// All of the text is a finite number, as every locale writes it: "0.25", "1e-3".
std::optional<double> as_number(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

void OrderFlags::declare(CLI::App& command, LoaderOptions& options) {
  command.add_option("--weights", weights_,
                     "File with one number per line and sample: draw with replacement, by weight");
  add_number(command, "--epoch-samples", options.epoch_samples,
             "Draws per epoch, with --weights; 0: as many as samples");
  add_number(command, "--echo", options.echo, "How often each sample comes in an epoch, augmented anew", {.least = 1});
  add_number(command, "--echo-window", options.echo_window,
             "So many samples are repeated together, with --echo; 0: a global batch");
  command.add_option("--reshuffle", reshuffle_,
                     "Share of samples (0 … 1) that an epoch deals to any rank; the others stay; default: all");
  add_number(command, "--homes", options.homes,
             "Parts of a global batch that keep their samples, with --reshuffle; 0: one per rank");
}

Status OrderFlags::apply(LoaderOptions& options) const {
  if (!weights_.empty()) {
    FORELOAD_ASSIGN(options.weights, read_weights(weights_));
  }
  if (reshuffle_.empty()) return {};
  const std::optional<double> share = as_number(reshuffle_);
  if (!share || *share < 0 || *share > 1) {
    return Error{Code::kInvalid,
                 fmt::format("--reshuffle \"{}\" is no share from 0 to 1", printable(reshuffle_, kLongestShown))};
  }
  options.reshuffle = *share;
  return {};
}

Result<std::vector<double>> read_weights(const std::string& path) {
  FORELOAD_ASSIGN(const std::string text, read_whole_file(path, kMostWeightBytes));
  std::vector<double> weights;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, length);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<double> weight = as_number(line);
    if (!weight || *weight < 0) {
      return Error{Code::kInvalid,
                   fmt::format("--weights {}: line {} is \"{}\", and each line should be one number of at least 0",
                               path, weights.size() + 1, printable(std::string(line), kLongestShown))};
    }
    weights.push_back(*weight);
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
  if (weights.empty()) return Error{Code::kInvalid, fmt::format("--weights {} is empty", path)};
  return weights;
}

}  // namespace foreload
