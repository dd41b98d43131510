// MpiJob: this process in its MPI job: the window over which arenas are read, and the notes that tell about them. No
// call waits for other hosts but start() and leave(). One thread: the one that started it makes all calls of MPI.
#pragma once

#include <mpi.h>

#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foreload/result.h"
#include "peers/mpi_directory.h"

namespace foreload {

std::string mpi_text(int code);  // of an error

class MpiJob {
 public:
  static constexpr std::size_t kMostExchanged = 4096;

  // Waits for all processes of the job. Once per process: MPI can not be started again.
  static Result<std::unique_ptr<MpiJob>> start();
  // Without leave() the launcher ends the whole job when this process ends.
  ~MpiJob() = default;
  // Ends MPI if all others leave, too, by `until`. REQUIRES: nothing is being read.
  bool leave(Time until);

  HostIndex host() const { return host_; }
  HostIndex hosts() const { return hosts_; }
  MPI_Win window() const { return window_; }
  MpiDirectory& directory() { return directory_; }
  const std::vector<bool>& neighbours() const { return neighbours_; }  // by host: on the same machine

  Status expose(const PeerKey& key, std::span<const std::byte> memory, std::uint64_t samples);
  // Asks all to stop reading it. True: nobody does any more, and it is no part of the window. Ask again.
  bool withdraw(const PeerKey& key);

  struct Exchange {
    std::vector<char> mine;
    std::vector<char> all;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  // Everybody's bytes: all hosts begin their exchanges in the same order. It stays until it has ended.
  Exchange* begin_exchange(std::string_view mine);
  bool has_ended(Exchange* exchange, std::vector<std::string>& all);  // it is gone then

  void send(HostIndex host, const MpiNote& note);
  bool poll();  // takes what came; something did
  // Until when somebody waits for this host.
  Time hurried_until() const { return hurried_until_; }

 private:
  struct Exposed {
    MpiNote note;
    std::vector<bool> readers;  // by host; those who have not released it
    Time asked{};               // when they were told that it leaves; 0: they were not
  };
  struct Outgoing {
    MpiNote note;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MpiJob(HostIndex host, HostIndex hosts) : host_(host), hosts_(hosts), directory_(hosts) {}
  Status open_window();
  void find_neighbours();
  void receive();
  void take(HostIndex from, const MpiNote& note);

  const HostIndex host_;
  const HostIndex hosts_;
  MPI_Comm notes_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  MpiDirectory directory_;
  std::vector<bool> neighbours_;
  MpiNote incoming_;
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  std::list<Outgoing> outgoing_;
  std::list<Exchange> exchanges_;
  std::vector<Exposed> exposed_;
  std::uint64_t serials_ = 0;
  Time hurried_until_{};
};

}  // namespace foreload
