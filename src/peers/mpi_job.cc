// Arenas come and go with datasets, on every host at its own time, but to make a window takes all hosts at once. So
// there is one dynamic window for ever, to which arenas are attached, and hosts tell each other of theirs by notes:
//
//   host A: attach, "exposed" ──► all        B reads with gets, A's threads have no part in it
//   host A: "leaving" ──► all                B ends the gets that are on their way, then "released" ──► A: detach
//
// Nobody waits for a note: a host that is stopped only keeps an arena attached that another would like to take back.
// Notes are short enough for MPIs to send them at once: longer ones are announced first and wait for answers of both
// sides, which Open MPI may keep until something else is sent. Whoever waits for others asks them again; to a host that
// is stopped these would pile up, so what has not left is not sent again.
#include "peers/mpi_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 1;
constexpr Duration kHurried = 10ms;  // so long a host is quick after somebody asked
constexpr Duration kLook = 1ms;
constexpr Duration kAskAgain = 100ms;  // notes were seen to rest inside of MPI until others were sent

// Whatever fails here is a bug, or the job is ending: MPI has no way back from either.
void must(int code) {
  FORELOAD_CHECK(code == MPI_SUCCESS, "MPI's own calls succeed");
}

bool test(MPI_Request& request) {
  int ended = 0;
  must(MPI_Test(&request, &ended, MPI_STATUS_IGNORE));
  return ended != 0;
}

}  // namespace

std::string mpi_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return {text, static_cast<std::size_t>(length)};
}

Result<std::unique_ptr<MpiJob>> MpiJob::start() {
  int before = 0;
  must(MPI_Initialized(&before));
  if (before != 0) return Error{Code::kInvalid, "MPI was started in this process before: it can be only once"};
  int level = 0;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level); code != MPI_SUCCESS) {
    return Error{Code::kIo, fmt::format("cannot start MPI: {}; is this process started by mpirun?", mpi_text(code))};
  }
  if (level < MPI_THREAD_FUNNELED) return Error{Code::kInvalid, "this MPI allows no second thread in its processes"};
  int rank = 0;
  int size = 0;
  must(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  must(MPI_Comm_size(MPI_COMM_WORLD, &size));
  std::unique_ptr<MpiJob> job(new MpiJob(static_cast<HostIndex>(rank), static_cast<HostIndex>(size)));
  FORELOAD_TRY(job->open_window());
  return job;
}

Status MpiJob::open_window() {
  must(MPI_Comm_dup(MPI_COMM_WORLD, &notes_));
  must(MPI_Comm_set_errhandler(notes_, MPI_ERRORS_RETURN));
  find_neighbours();
  receive();
  if (hosts_ == 1) return {};  // Open MPI has no window for one
  if (const int code = MPI_Win_create_dynamic(MPI_INFO_NULL, notes_, &window_); code != MPI_SUCCESS) {
    return Error{
        Code::kIo,
        fmt::format("MPI has no dynamic windows here: {}. Over sockets Open MPI needs mpirun --mca osc pt2pt; or "
                    "use --transport grpc",
                    mpi_text(code))};
  }
  must(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN));
  must(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_));
  return {};
}

void MpiJob::find_neighbours() {
  MPI_Comm machine = MPI_COMM_NULL;
  must(MPI_Comm_split_type(notes_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine));
  int size = 0;
  must(MPI_Comm_size(machine, &size));
  std::vector<HostIndex> ranks(static_cast<std::size_t>(size));
  must(MPI_Allgather(&host_, 1, MPI_UINT32_T, ranks.data(), 1, MPI_UINT32_T, machine));
  must(MPI_Comm_free(&machine));
  neighbours_.resize(hosts_);
  for (const HostIndex host : ranks) neighbours_[host] = true;
}

bool MpiJob::leave(Time until) {
  for (HostIndex host = 0; host < hosts_; ++host) send(host, {.kind = MpiNote::kBye});
  while (byes_ < hosts_ || !outgoing_.empty()) {
    if (now() >= until) return false;
    if (!poll()) std::this_thread::sleep_for(kLook);
  }
  must(MPI_Cancel(&receiving_));
  must(MPI_Wait(&receiving_, MPI_STATUS_IGNORE));
  if (window_ != MPI_WIN_NULL) {
    must(MPI_Win_unlock_all(window_));
    must(MPI_Win_free(&window_));
  }
  must(MPI_Comm_free(&notes_));
  must(MPI_Finalize());
  return true;
}

Status MpiJob::expose(const PeerKey& key, std::span<const std::byte> memory, std::uint64_t samples) {
  if (hosts_ == 1) return {};  // to nobody
  for (const Exposed& other : exposed_) {
    if (other.note.key == key) return Error{Code::kInvalid, "these samples are exposed already: withdraw them first"};
  }
  if (exposed_.size() == kMostExposed) {
    return Error{Code::kNoMemory, fmt::format("MPI lets other hosts read {} arenas at most. They read the samples of "
                                              "this one from the source",
                                              kMostExposed)};
  }
  void* start = const_cast<std::byte*>(memory.data());  // it is only read
  if (const int code = MPI_Win_attach(window_, start, static_cast<MPI_Aint>(memory.size())); code != MPI_SUCCESS) {
    return Error{Code::kNoMemory, fmt::format("MPI cannot let other hosts read {} bytes of samples: {}. They read them "
                                              "from the source",
                                              memory.size(), mpi_text(code))};
  }
  MPI_Aint address = 0;
  must(MPI_Get_address(start, &address));
  const MpiNote note{.kind = MpiNote::kExposed,
                     .serial = ++serials_,
                     .key = key,
                     .address = static_cast<std::uint64_t>(address),
                     .bytes = memory.size(),
                     .samples = samples};
  exposed_.push_back({.note = note, .readers = std::vector<bool>(hosts_, true)});
  for (HostIndex host = 0; host < hosts_; ++host) send(host, note);
  return {};
}

bool MpiJob::withdraw(const PeerKey& key) {
  const auto found = std::find_if(exposed_.begin(), exposed_.end(), [&](auto& each) { return each.note.key == key; });
  if (found == exposed_.end()) return true;
  found->note.kind = MpiNote::kLeaving;
  const bool ask = now() - found->asked > kAskAgain;
  bool is_read = false;
  for (HostIndex host = 0; host < hosts_; ++host) {
    if (!found->readers[host]) continue;
    is_read = true;
    if (ask) send(host, found->note);
  }
  if (ask) found->asked = now();
  if (is_read) return false;
  must(MPI_Win_detach(window_, reinterpret_cast<void*>(found->note.address)));
  exposed_.erase(found);
  return true;
}

void MpiJob::say(std::string_view text) {
  FORELOAD_CHECK(spoken_ == heard_, "one exchange at a time");
  mine_[++spoken_ % 2] = text;
  asked_ = now();
  for (HostIndex host = 0; host < hosts_; ++host) send_mine(host, spoken_);
}

void MpiJob::send_mine(HostIndex host, std::uint64_t serial) {
  const std::string& text = mine_[serial % 2];
  send(host, {.kind = MpiNote::kSaid, .serial = serial, .bytes = text.size()}, text);
}

bool MpiJob::hear(std::vector<std::string>& all) {
  const bool ask = now() - asked_ > kAskAgain;
  bool all_came = true;
  for (HostIndex host = 0; host < hosts_; ++host) {
    if (said_[host][spoken_ % 2]) continue;
    all_came = false;
    if (ask) send(host, {.kind = MpiNote::kSayAgain, .serial = spoken_});
  }
  if (ask) asked_ = now();
  if (!all_came) return false;
  for (Texts& texts : said_) all.push_back(*std::exchange(texts[spoken_ % 2], std::nullopt));
  heard_ = spoken_;
  return true;
}

void MpiJob::send(HostIndex host, const MpiNote& note, std::string_view text) {
  FORELOAD_CHECK(text.size() <= kMostSaid, "hosts exchange little");
  const bool waits = std::any_of(outgoing_.begin(), outgoing_.end(), [&](const Outgoing& out) {
    return out.host == host && out.message.note.kind == note.kind && out.message.note.serial == note.serial;
  });
  if (waits) return;
  Outgoing& out = outgoing_.emplace_back();
  out.host = host;
  out.message.note = note;
  std::copy(text.begin(), text.end(), out.message.text.begin());
  must(MPI_Isend(&out.message, static_cast<int>(sizeof note + text.size()), MPI_BYTE, static_cast<int>(host), kTag,
                 notes_, &out.request));
}

void MpiJob::receive() {
  must(MPI_Irecv(&incoming_, sizeof incoming_, MPI_BYTE, MPI_ANY_SOURCE, kTag, notes_, &receiving_));
}

bool MpiJob::poll() {
  outgoing_.remove_if([](Outgoing& out) { return test(out.request); });
  int came = 0;
  MPI_Status status;
  must(MPI_Test(&receiving_, &came, &status));
  if (came == 0) return false;
  int bytes = 0;
  must(MPI_Get_count(&status, MPI_BYTE, &bytes));
  const Message message = incoming_;
  receive();
  take(static_cast<HostIndex>(status.MPI_SOURCE), message, static_cast<std::size_t>(bytes));
  return true;
}

void MpiJob::take(HostIndex from, const Message& message, std::size_t bytes) {
  const MpiNote& note = message.note;
  const std::size_t text = note.kind == MpiNote::kSaid ? note.bytes : 0;
  if (text > kMostSaid || bytes != sizeof note + text) return;
  switch (note.kind) {
    case MpiNote::kExposed:
      return directory_.exposed(from, note);
    case MpiNote::kLeaving:
      if (directory_.leaving(from, note.serial)) send(from, {.kind = MpiNote::kReleased, .serial = note.serial});
      return;
    case MpiNote::kReleased:
      for (Exposed& exposed : exposed_) {
        if (exposed.note.serial == note.serial) exposed.readers[from] = false;
      }
      return;
    case MpiNote::kHurry:
      hurried_until_ = now() + kHurried;
      return;
    case MpiNote::kSaid:
      if (note.serial == heard_ + 1 || note.serial == heard_ + 2) {
        said_[from][note.serial % 2] = std::string(message.text.data(), text);
      }
      return;
    case MpiNote::kSayAgain:
      if (note.serial == spoken_ || note.serial + 1 == spoken_) send_mine(from, note.serial);
      return;
    case MpiNote::kBye:
      ++byes_;
      return;
    default:
      return;
  }
}

}  // namespace foreload
