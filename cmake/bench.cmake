# foreload_bench(NAME SOURCES ...) builds bench/NAME from files of bench/. `make bench` runs them all.
if(FORELOAD_BENCHMARKS)
  add_custom_target(benchmarks)
endif()
function(foreload_bench name)
  if(NOT FORELOAD_BENCHMARKS)
    return()
  endif()
  cmake_parse_arguments(BENCH "" "" "SOURCES;LIBRARIES" ${ARGN})
  list(TRANSFORM BENCH_SOURCES PREPEND bench/)
  add_executable(bench_${name} ${BENCH_SOURCES})
  target_link_libraries(bench_${name} PRIVATE foreload foreload_flags ${FORELOAD_LIBRARIES} ${BENCH_LIBRARIES})
  foreload_headers(bench_${name} bench)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  add_dependencies(benchmarks bench_${name})
endfunction()

foreload_bench(analyze SOURCES analyze.cc)
foreload_bench(cluster SOURCES cluster.cc cluster_planning.cc)
foreload_bench(convert SOURCES convert.cc)
foreload_bench(eviction SOURCES eviction.cc)
foreload_bench(host SOURCES host.cc host_balance.cc host_jobs.cc host_members.cc)
foreload_bench(loader SOURCES loader.cc)
foreload_bench(prep SOURCES prep.cc)
foreload_bench(storage SOURCES storage.cc storage_disk.cc storage_model.cc storage_objects.cc)
if(TARGET foreload_peers_grpc)
  foreload_bench(peers_transport SOURCES peers_transport.cc LIBRARIES foreload_peers_grpc)
endif()
if(TARGET foreload_peers_mpi)
  foreload_bench(peers_mpi SOURCES peers_mpi.cc LIBRARIES foreload_peers_mpi)
endif()

if(FORELOAD_BENCHMARKS AND FORELOAD_APPS)
  add_dependencies(benchmarks foreload_cli)  # bench/analyze starts it
endif()
if(FORELOAD_BENCHMARKS AND FORELOAD_APPS AND TARGET foreload_peers_grpc)
  # Whole hosts, in networks of their own: this is how `make bench` starts them.
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bench/cluster_hosts
    CONTENT "#!/bin/sh
FORELOAD_CLI='$<TARGET_FILE:foreload_cli>' exec /usr/bin/python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/bench/cluster_hosts.py' \"$@\"
"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  add_dependencies(benchmarks foreload_cli)
endif()
if(FORELOAD_BENCHMARKS AND FORELOAD_APPS)
  # Real runs against their simulation.
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bench/simulate
    CONTENT "#!/bin/sh
FORELOAD_CLI='$<TARGET_FILE:foreload_cli>' exec /usr/bin/python3 -B '${CMAKE_CURRENT_SOURCE_DIR}/bench/simulate.py' \"$@\"
"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
