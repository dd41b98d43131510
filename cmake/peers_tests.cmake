# Tests of the peer transports.
if(TARGET foreload_peers_grpc)
  set(tests answer_test.cc credentials_test.cc disk_shelf_test.cc host_port_test.cc meeting_test.cc node_list_test.cc office_test.cc places_test.cc refusals_test.cc wire_test.cc)
  # Debian's gRPC is not instrumented: TSan does not see how it orders what its threads do, and would invent races.
  if(NOT FORELOAD_SANITIZE STREQUAL "thread")
    list(APPEND tests cutter_test.cc ../prep/jpeg_samples.cc meet_test.cc peers_grpc_later_test.cc peer_rate_test.cc peers_grpc_process_test.cc peers_grpc_test.cc peers_grpc_trust_test.cc)
  endif()
  foreload_unit_test(peers SOURCES ${tests} LIBRARIES foreload_peers_grpc)
endif()

# MPI: what needs no MPI is a unit test as any other.
add_executable(peers_mpi_unit_test
  src/peers/mpi_desk.cc src/peers/mpi_directory.cc src/peers/mpi_desk_test.cc src/peers/mpi_directory_test.cc)
foreach(part IN ITEMS base plan policy store source tier)
  target_link_libraries(peers_mpi_unit_test PRIVATE foreload_${part})
endforeach()
target_link_libraries(peers_mpi_unit_test PRIVATE GTest::gtest_main ${FORELOAD_LIBRARIES})
add_dependencies(unit_tests peers_mpi_unit_test)
add_test(NAME peers_mpi_unit_test COMMAND peers_mpi_unit_test)
set_tests_properties(peers_mpi_unit_test PROPERTIES LABELS unit)

# Jobs of real processes: only in the release build, because Open MPI leaks at its end and its threads are not
# instrumented. 77: there is no mpirun.
if(TARGET foreload_peers_mpi AND FORELOAD_APPS AND NOT FORELOAD_SANITIZE)
  find_program(FORELOAD_INTERPRETER python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  add_executable(peers_mpi_test src/peers/mpi_exchange_test.cc src/peers/peers_mpi_test.cc)
  target_link_libraries(peers_mpi_test PRIVATE foreload_peers_mpi GTest::gtest)
  target_compile_options(peers_mpi_test PRIVATE -O1)
  add_test(NAME peers_mpi COMMAND ${FORELOAD_INTERPRETER} -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/peers_mpi_test.py $<TARGET_FILE:peers_mpi_test>)
  add_test(NAME cluster_mpi COMMAND ${FORELOAD_INTERPRETER} -B ${CMAKE_CURRENT_SOURCE_DIR}/tests/cluster_mpi_test.py $<TARGET_FILE:foreload_cli>)
  # Alone: Open MPI has files in /dev/shm meanwhile, and others judge what is left there.
  set_tests_properties(peers_mpi cluster_mpi PROPERTIES LABELS program SKIP_RETURN_CODE 77 TIMEOUT 600 RUN_SERIAL ON)
endif()
