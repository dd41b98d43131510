# The command-line tool. One file per command.
if(NOT FORELOAD_APPS)
  return()
endif()
find_package(CLI11 REQUIRED)

# Both programs below have all commands.
add_library(foreload_commands OBJECT
  apps/accelerator.cc
  apps/agent.cc
  apps/analysis_curves.cc
  apps/analysis_json.cc
  apps/analysis_page.cc
  apps/analysis_remedies.cc
  apps/analysis_summary.cc
  apps/analysis_tables.cc
  apps/analyze.cc
  apps/analyze_check.cc
  apps/analyze_words.cc
  apps/background.cc
  apps/bench.cc
  apps/command.cc
  apps/convert.cc
  apps/doctor.cc
  apps/explain.cc
  apps/explain_json.cc
  apps/explain_report.cc
  apps/generate.cc
  apps/help_layout.cc
  apps/host_report.cc
  apps/index.cc
  apps/json_node.cc
  apps/loader_flags.cc
  apps/nearest.cc
  apps/number_flag.cc
  apps/order_flags.cc
  apps/progress.cc
  apps/run.cc
  apps/signal_watch.cc
  apps/signals.cc
  apps/simulate.cc
  apps/simulate_json.cc
  apps/simulate_page.cc
  apps/simulate_presets.cc
  apps/stream_hash.cc
  apps/streams.cc
  apps/subset.cc
  apps/token_flags.cc
  apps/top.cc
  apps/warm_flags.cc)
target_link_libraries(foreload_commands PUBLIC foreload foreload_flags foreload_peers CLI11::CLI11 nlohmann_json::nlohmann_json)
target_compile_definitions(foreload_commands PUBLIC FORELOAD_VERSION="${PROJECT_VERSION}")
# Nothing in apps/ is hot, and the headers of CLI11 and nlohmann-json take long to optimise.
target_compile_options(foreload_commands PUBLIC -O1)
foreload_headers(foreload_commands app)

function(foreload_program target name)
  add_executable(${target} apps/main.cc ${ARGN})
  target_link_libraries(${target} PRIVATE foreload_commands)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endfunction()

# The command has no transport between hosts: their hundred libraries would make each start longer. `foreload agent` is
# foreload-agent, where there is one.
foreload_program(foreload_cli foreload apps/agent_no_mpi.cc apps/agent_no_peers.cc)
if(TARGET foreload_peers_grpc OR TARGET foreload_peers_mpi)
  foreload_program(foreload_agent foreload-agent)
  target_sources(foreload_cli PRIVATE apps/become.cc)
  target_compile_definitions(foreload_cli PRIVATE FORELOAD_AGENT="foreload-agent")
  add_dependencies(foreload_cli foreload_agent)
  foreach(transport grpc mpi)
    string(REPLACE grpc peers source agent_${transport})
    if(TARGET foreload_peers_${transport})
      string(TOUPPER ${transport} upper)
      set_property(SOURCE apps/doctor.cc APPEND PROPERTY COMPILE_DEFINITIONS FORELOAD_HAS_${upper})
      target_sources(foreload_agent PRIVATE apps/${source}.cc)
      target_link_libraries(foreload_agent PRIVATE foreload_peers_${transport})
    else()
      string(REPLACE agent_ agent_no_ source ${source})
      target_sources(foreload_agent PRIVATE apps/${source}.cc)
    endif()
  endforeach()
endif()

# What `make demo` shows.
add_executable(foreload_demo apps/accelerator.cc apps/demo.cc apps/streams.cc)
target_link_libraries(foreload_demo PRIVATE foreload foreload_flags)
set_target_properties(foreload_demo PROPERTIES OUTPUT_NAME foreload-demo)
