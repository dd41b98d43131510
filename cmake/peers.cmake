# Transports between hosts: static libraries that only agents, their tests and their benchmarks link, never the library.
#   FORELOAD_GRPC   OFF leaves gRPC out, also where it is found

# What is said between hosts needs no transport to be fuzzed.
if(TARGET fuzz_peer_wire)
  target_sources(fuzz_peer_wire PRIVATE src/peers/answer.cc src/peers/wire.cc)
endif()

option(FORELOAD_GRPC "Build peers over gRPC where it is found" ON)
pkg_check_modules(GRPC QUIET IMPORTED_TARGET grpc++>=1.51)
if(FORELOAD_GRPC AND GRPC_FOUND)
  add_library(foreload_peers_grpc STATIC
    src/peers/answer.cc
    src/peers/credentials.cc
    src/peers/peers_grpc_calls.cc
    src/peers/peers_grpc_client.cc
    src/peers/peers_grpc_parts.cc
    src/peers/peers_grpc_server.cc
    src/peers/wire.cc)
  target_link_libraries(foreload_peers_grpc PUBLIC foreload_flags PkgConfig::GRPC OpenSSL::Crypto)
  foreload_bench(peers_transport SOURCES peers_transport.cc LIBRARIES foreload_peers_grpc)
  if(FORELOAD_TESTS)
    set(tests answer_test.cc credentials_test.cc wire_test.cc)
    # Debian's gRPC is not instrumented: TSan does not see how it orders what its threads do, and would invent races.
    if(NOT FORELOAD_SANITIZE STREQUAL "thread")
      list(APPEND tests peers_grpc_process_test.cc peers_grpc_test.cc peers_grpc_trust_test.cc)
    endif()
    foreload_unit_test(peers SOURCES ${tests} LIBRARIES foreload_peers_grpc)
  endif()
else()
  message(STATUS "no peers over gRPC: they need libgrpc++-dev 1.51, and FORELOAD_GRPC")
endif()
