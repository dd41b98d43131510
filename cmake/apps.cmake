# The command-line tool. One file per command.
if(NOT FORELOAD_APPS)
  return()
endif()
find_package(CLI11 REQUIRED)

add_executable(foreload_cli
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
  apps/main.cc
  apps/nearest.cc
  apps/number_flag.cc
  apps/order_flags.cc
  apps/progress.cc
  apps/run.cc
  apps/signal_watch.cc
  apps/signals.cc
  apps/stream_hash.cc
  apps/streams.cc
  apps/subset.cc
  apps/token_flags.cc
  apps/top.cc
  apps/warm_flags.cc)
if(TARGET foreload_peers_grpc)
  target_sources(foreload_cli PRIVATE apps/agent_peers.cc)
  target_link_libraries(foreload_cli PRIVATE foreload_peers_grpc)
  set_property(SOURCE apps/doctor.cc APPEND PROPERTY COMPILE_DEFINITIONS FORELOAD_HAS_GRPC)
else()
  target_sources(foreload_cli PRIVATE apps/agent_no_peers.cc)
endif()
if(TARGET foreload_peers_mpi)
  target_sources(foreload_cli PRIVATE apps/agent_mpi.cc)
  target_link_libraries(foreload_cli PRIVATE foreload_peers_mpi)
  set_property(SOURCE apps/doctor.cc APPEND PROPERTY COMPILE_DEFINITIONS FORELOAD_HAS_MPI)
else()
  target_sources(foreload_cli PRIVATE apps/agent_no_mpi.cc)
endif()
target_link_libraries(foreload_cli PRIVATE foreload foreload_flags foreload_peers CLI11::CLI11 nlohmann_json::nlohmann_json)
target_compile_definitions(foreload_cli PRIVATE FORELOAD_VERSION="${PROJECT_VERSION}")
# Nothing in apps/ is hot, and the headers of CLI11 and nlohmann-json take long to optimise.
target_compile_options(foreload_cli PRIVATE -O1)
set_target_properties(foreload_cli PROPERTIES OUTPUT_NAME foreload INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

# What `make demo` shows.
add_executable(foreload_demo apps/accelerator.cc apps/demo.cc apps/streams.cc)
target_link_libraries(foreload_demo PRIVATE foreload foreload_flags)
set_target_properties(foreload_demo PROPERTIES OUTPUT_NAME foreload-demo)
