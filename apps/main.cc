#include <algorithm>
#include <span>
#include <string_view>

#include "become.h"
#include "commands.h"
#include "help_layout.h"

namespace {

// To serve other hosts, or to measure the way to them.
[[maybe_unused]] bool needs_transport(std::span<char* const> words) {
  if (words.size() < 2) return false;
  const std::string_view command(words[1]);
  return command == "agent" ||
         (command == "analyze" &&
          std::ranges::any_of(words.subspan(2), [](std::string_view word) { return word.starts_with("--peers"); }));
}

}  // namespace

int main(int argc, char** argv) {
#ifdef FORELOAD_AGENT
  if (needs_transport(std::span(argv, static_cast<std::size_t>(argc)))) foreload::become(FORELOAD_AGENT, argv);
#endif
  CLI::App app("Loads training data without stalls.", "foreload");
  app.formatter(std::make_shared<foreload::HelpLayout>());  // before the commands: they inherit it
  app.set_version_flag("--version", "foreload " FORELOAD_VERSION);
  app.footer("Every command explains itself: foreload COMMAND --help");
  const std::vector<foreload::Command> commands{
      foreload::generate_command(app), foreload::index_command(app),   foreload::convert_command(app),
      foreload::run_command(app),      foreload::analyze_command(app), foreload::bench_command(app),
      foreload::simulate_command(app), foreload::agent_command(app),   foreload::top_command(app),
      foreload::doctor_command(app),
  };
  return foreload::run_command_line(app, commands, argc, argv);
}
