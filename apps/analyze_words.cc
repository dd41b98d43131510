#include "analyze_words.h"

#include <algorithm>
#include <array>

#include "base/machine.h"
#include "base/text.h"

namespace foreload {
namespace {

// Of analyze, and not of run.
constexpr std::array kOwn{"URI",      "--json",   "--help",   "--prices", "--check",
                          "--report", "--record", "--chrome", "--network"};

std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
}

std::vector<Setting> flags_of(const CLI::App& command) {
  std::vector<Setting> flags;
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of(*option);
    if (option->count() == 0 || std::ranges::find(kOwn, name) != kOwn.end()) continue;
    if (option->get_items_expected_max() == 0) {
      flags.push_back({name, ""});
      continue;
    }
    std::string value;
    for (const std::string& word : option->results()) value += (value.empty() ? "" : ",") + word;
    flags.push_back({name, shell_word(value)});
  }
  return flags;
}

std::string literal(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) made += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return made + "\"";
}

std::vector<Setting> arguments_of(const PlannedJob& job) {
  const LoaderOptions& options = job.options();
  std::vector<Setting> arguments{{"batch_size", std::to_string(options.batch)}};
  if (options.shuffle) arguments.push_back({"shuffle", "True"});
  if (options.memory > 0) arguments.push_back({"memory", literal(std::to_string(options.memory >> 20) + "MiB")});
  if (options.workers) arguments.push_back({"workers", std::to_string(*options.workers)});
  if (!options.disk.empty()) arguments.push_back({"disk", literal(options.disk)});
  if (!options.host.empty()) arguments.push_back({"host", literal(options.host)});
  if (options.dtype != DType::kF32) arguments.push_back({"dtype", literal(dtype_name(options.dtype))});
  if (!options.chain.empty()) arguments.push_back({"transform", literal(chain_text(options.chain))});
  return arguments;
}

// The chain without normalising, if that is all that keeps its pictures from being bytes.
std::string bytes_chain(const PlannedJob& job) {
  std::vector<Transform> chain = job.chain();
  const auto removed = std::erase_if(chain, [](const Transform& transform) { return transform.name == "normalize"; });
  const auto erases = std::ranges::any_of(chain, [](const Transform& t) { return t.name == "random_erasing"; });
  if (!job.is_image() || removed == 0 || chain.empty() || erases) return "";
  return chain_text(chain);
}

}  // namespace

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string converted_name(const std::string& uri) {
  const bool plain = uri.find_first_of(":{}*?[]\"'\\ $`") == std::string::npos;
  const std::string_view path = trimmed(uri, "/");
  if (!plain || path.empty() || path.ends_with(".tar") || path.ends_with(".")) return "records";
  return uri.substr(0, uri.find_last_not_of('/') + 1) + "-records";
}

JobText words_of(const CLI::App& command, const PlannedJob& job) {
  const std::vector<std::string>& datasets = job.options().dataset;
  JobText words;
  std::string list;
  for (const std::string& dataset : datasets) {
    words.uri += (words.uri.empty() ? "" : " ") + shell_word(dataset);
    list += (list.empty() ? "" : ", ") + literal(dataset);
  }
  words.python_uri = datasets.size() == 1 ? list : "[" + list + "]";
  words.flags = flags_of(command);
  words.arguments = arguments_of(job);
  words.converted = datasets.size() == 1 ? converted_name(datasets[0]) : "records";
  const std::string bytes = bytes_chain(job);
  if (!bytes.empty()) {
    words.bytes_flags = {{"--dtype", "u8"}, {"--chain", shell_word(bytes)}};
    words.bytes_arguments = {{"dtype", literal("u8")}, {"transform", literal(bytes)}};
  }
  words.has_host = !job.options().host.empty();
  words.memory = job.budget();
  words.machine_memory = available_memory();
  words.budget = [&job](Bytes kept) { return job.budget_for(kept); };
  return words;
}

}  // namespace foreload
