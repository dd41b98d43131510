// MpiJob: this process in its MPI job: the window over which arenas are read, and the notes that tell about them. No
// call waits for other hosts but start() and leave(). One thread: the one that started it makes all calls of MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <list>
#include <memory>
#include <optional>
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
  static constexpr std::size_t kMostSaid = 1024;   // bytes; see mpi_job.cc
  static constexpr std::size_t kMostExposed = 32;  // Open MPI takes 64, and does not come back from the next

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

  // An exchange: says something to all hosts, this one included. REQUIRES: the one before was heard.
  void say(std::string_view text);
  bool hear(std::vector<std::string>& all);  // what each host said, by host; false: not all have. Ask again

  // One like it that the network has not taken yet will do.
  void send(HostIndex host, const MpiNote& note, std::string_view text = {});
  std::size_t unsent() const { return outgoing_.size(); }  // notes that the network has not taken
  bool poll();                                             // takes what came; something did
  // Until when somebody waits for this host.
  Time hurried_until() const { return hurried_until_; }

 private:
  struct Exposed {
    MpiNote note;
    std::vector<bool> readers;  // by host; those who have not released it
    Time asked{};               // when they were told that it leaves; 0: they were not
  };
  struct Message {
    MpiNote note;
    std::array<char, kMostSaid> text{};
  };
  struct Outgoing {
    HostIndex host = 0;
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MpiJob(HostIndex host, HostIndex hosts) : host_(host), hosts_(hosts), directory_(hosts), said_(hosts) {}
  Status open_window();
  void find_neighbours();
  void send_mine(HostIndex host, std::uint64_t serial);
  void receive();
  void take(HostIndex from, const Message& message, std::size_t bytes);

  const HostIndex host_;
  const HostIndex hosts_;
  MPI_Comm notes_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  MpiDirectory directory_;
  std::vector<bool> neighbours_;
  Message incoming_;
  MPI_Request receiving_ = MPI_REQUEST_NULL;
  std::list<Outgoing> outgoing_;
  // A host may be one exchange ahead of others, never two: so this and the next are kept, by serial % 2.
  using Texts = std::array<std::optional<std::string>, 2>;
  std::array<std::string, 2> mine_;
  std::vector<Texts> said_;   // by host
  std::uint64_t spoken_ = 0;  // the last exchange in which this host said something
  std::uint64_t heard_ = 0;   // the last that has ended
  Time asked_{};              // when those were asked again whose texts have not come
  unsigned byes_ = 0;
  std::vector<Exposed> exposed_;
  std::uint64_t serials_ = 0;
  Time hurried_until_{};
};

}  // namespace foreload
