# How agents reach other hosts: one static library per transport, for the agent, its tests and benches only. Nothing of
# them is in libforeload.

# MPI: on when it is found.
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface
find_package(MPI QUIET COMPONENTS CXX)
option(FORELOAD_MPI "Peers over MPI" ${MPI_CXX_FOUND})
if(FORELOAD_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
  add_library(foreload_peers_mpi STATIC
    src/peers/mpi_desk.cc src/peers/mpi_directory.cc src/peers/mpi_job.cc src/peers/mpi_reads.cc src/peers/peers_mpi.cc)
  target_link_libraries(foreload_peers_mpi PUBLIC foreload foreload_flags MPI::MPI_CXX)
else()
  message(STATUS "No MPI (libopenmpi-dev): agents have no transport mpi")
endif()
