# Tests of the peer transports.
if(TARGET foreload_peers_grpc)
  set(tests answer_test.cc credentials_test.cc host_port_test.cc meeting_test.cc node_list_test.cc office_test.cc places_test.cc refusals_test.cc wire_test.cc)
  # Debian's gRPC is not instrumented: TSan does not see how it orders what its threads do, and would invent races.
  if(NOT FORELOAD_SANITIZE STREQUAL "thread")
    list(APPEND tests meet_test.cc peers_grpc_later_test.cc peers_grpc_process_test.cc peers_grpc_test.cc peers_grpc_trust_test.cc)
  endif()
  foreload_unit_test(peers SOURCES ${tests} LIBRARIES foreload_peers_grpc)
endif()
