# Transports between hosts: static libraries that only agents, their tests and their benchmarks link, never the library.
#   FORELOAD_GRPC   OFF leaves gRPC out, also where it is found
#   FORELOAD_MPI    the same for MPI

# What agents say to each other, and show: without any transport.
add_library(foreload_peers STATIC
  src/peers/answer.cc
  src/peers/arena_shelf.cc
  src/peers/credentials.cc
  src/peers/cutter.cc
  src/peers/disk_shelf.cc
  src/peers/host_port.cc
  src/peers/inventory.cc
  src/peers/meeting.cc
  src/peers/node_list.cc
  src/peers/noise_shelf.cc
  src/peers/office.cc
  src/peers/places.cc
  src/peers/surroundings.cc
  src/peers/wire.cc)
target_link_libraries(foreload_peers PUBLIC foreload_flags OpenSSL::Crypto)
foreload_headers(foreload_peers part)

option(FORELOAD_GRPC "Build peers over gRPC where it is found" ON)
pkg_check_modules(GRPC QUIET IMPORTED_TARGET grpc++>=1.51)
if(FORELOAD_GRPC AND GRPC_FOUND)
  add_library(foreload_peers_grpc STATIC
    src/peers/meet.cc
    src/peers/peer_rate.cc
    src/peers/peers_grpc_calls.cc
    src/peers/peers_grpc_client.cc
    src/peers/peers_grpc_lane.cc
    src/peers/peers_grpc_parts.cc
    src/peers/peers_grpc_server.cc)
  target_link_libraries(foreload_peers_grpc PUBLIC foreload_peers PkgConfig::GRPC)
  foreload_headers(foreload_peers_grpc part)
else()
  message(STATUS "no peers over gRPC: they need libgrpc++-dev 1.51, and FORELOAD_GRPC")
endif()

option(FORELOAD_MPI "Build peers over MPI where it is found" ON)
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface
find_package(MPI QUIET COMPONENTS CXX)
if(FORELOAD_MPI AND MPI_CXX_FOUND)
  add_library(foreload_peers_mpi STATIC
    src/peers/mpi_desk.cc src/peers/mpi_directory.cc src/peers/mpi_job.cc src/peers/mpi_reads.cc src/peers/peers_mpi.cc)
  target_link_libraries(foreload_peers_mpi PUBLIC foreload foreload_flags MPI::MPI_CXX)
else()
  message(STATUS "no peers over MPI: they need libopenmpi-dev, and FORELOAD_MPI")
endif()
