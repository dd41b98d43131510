// The commands of `foreload`, one file each.
#pragma once

#include "command.h"

namespace foreload {

Command generate_command(CLI::App& app);
Command index_command(CLI::App& app);
Command convert_command(CLI::App& app);
Command run_command(CLI::App& app);
Command bench_command(CLI::App& app);
Command analyze_command(CLI::App& app);
Command simulate_command(CLI::App& app);
Command agent_command(CLI::App& app);
Command top_command(CLI::App& app);
Command doctor_command(CLI::App& app);

}  // namespace foreload
