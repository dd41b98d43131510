# Tests of the peer transports.

if(TARGET foreload_peers_grpc)
  foreload_unit_test(peers
    SOURCES answer_test.cc credentials_test.cc peers_grpc_process_test.cc peers_grpc_test.cc
            peers_grpc_trust_test.cc wire_test.cc
    LIBRARIES foreload_peers_grpc)
endif()
