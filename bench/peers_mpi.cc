// bench/peers_mpi: samples of 110 KB from another process's memory by MpiPeers, against a bare loop of the same gets
// and the same xxh3.
//   peers_mpi [--json] [--rounds N]
// Starts itself again with mpirun, as a job of two processes on this machine: one reads, the other one has the samples.
#include "peers/peers_mpi.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/region.h"
#include "probe/child.h"
#include "probe/loader_rates.h"
#include "report.h"
#include "tier/shared_arena.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLength = 110'000;
constexpr std::uint64_t kSamples = 2000;
constexpr std::size_t kBatch = 32;   // wants of a fetch
constexpr std::size_t kFetches = 4;  // at once
const PeerKey kKey{.fingerprint = 1, .validators = 1, .roster = 1};

struct Settings {
  unsigned rounds = 7;
  bool json = false;
};

// Of one pass over all samples.
struct Spent {
  double wall = 0;
  double cpu = 0;  // of the reading process
};

class Shelf {
 public:
  Shelf() : region_(*Region::map(SharedArena::region_bytes(kOptions), "the samples")) {
    SampleId id = 0;
    const auto next = [&] { return id < kSamples ? std::optional(id++) : std::nullopt; };
    SharedArena::format(region_.bytes(), kOptions, next, [](SampleId) { return kLength; });
    arena_ = std::move(*SharedArena::open(region_.bytes(), kOptions, {}, [](MemberId) { return true; }));
    arena_->reserved_to(arena_->end());
    for (SampleId each = 0; each < kSamples; ++each) put(each);
  }
  std::span<const std::byte> memory() const { return region_.bytes(); }
  std::span<const std::byte> bytes_of(SampleId id) { return arena_->lease(id, kLength)->bytes(); }

 private:
  static constexpr SharedArenaOptions kOptions{.samples = kSamples, .homes = kSamples * ((kLength + 15) / 16 * 16)};
  void put(SampleId id) {
    std::span<std::byte> into;
    (void)arena_->begin(id, kLength, into);
    for (Bytes i = 0; i < into.size(); ++i) into[i] = static_cast<std::byte>(id * 7 + i * 13 + (i >> 8));
    (void)arena_->commit(id, kLength);
  }

  Region region_;
  std::unique_ptr<SharedArena> arena_;
};

// Every sample once, far from the one before.
SampleId nth(std::size_t i) {
  return i * 7919 % kSamples;
}

template <typename Work>
Spent measure(Work work) {
  const double cpu = cpu_seconds();
  const Time start = now();
  work();
  return {seconds(now() - start), cpu_seconds() - cpu};
}

class Reader {
 public:
  explicit Reader(MpiPeers& peers) : peers_(peers), into_(*Region::map(kSamples * kLength, "what is read")) {
    std::ranges::fill(into_.bytes(), std::byte{1});
  }
  std::span<std::byte> into(std::size_t i) const { return into_.bytes().subspan(i * kLength, kLength); }

  // In batches, four at once. False: not all came.
  bool ours() {
    std::size_t asked = 0;
    std::size_t here = 0;
    std::size_t ended = 0;
    std::vector<PeerEnd> ends;
    std::vector<PeerWant> wants;
    while (ended < kSamples) {
      while (asked < kSamples && asked - ended < kBatch * kFetches) {
        wants.clear();
        for (std::size_t n = 0; n < kBatch && asked < kSamples; ++n, ++asked) {
          wants.push_back({.id = nth(asked), .into = into(asked), .token = asked});
        }
        peers_.fetch(1, kKey, wants, now() + 60s);
      }
      ends.clear();
      peers_.wait(ends, now() + 60s);
      ended += ends.size();
      here += static_cast<std::size_t>(
          std::ranges::count_if(ends, [](const PeerEnd& end) { return end.result == PeerResult::kHere; }));
    }
    return here == kSamples;
  }

 private:
  MpiPeers& peers_;
  Region into_;
};

// A dynamic window as MpiPeers has it. All of its calls are in MPI's thread.
class BareLoop {
 public:
  void open(Shelf& shelf) {
    std::vector<MPI_Aint> mine(kSamples);
    for (SampleId id = 0; id < kSamples; ++id) MPI_Get_address(shelf.bytes_of(id).data(), &mine[id]);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window_);
    MPI_Win_attach(window_, const_cast<std::byte*>(shelf.memory().data()),
                   static_cast<MPI_Aint>(shelf.memory().size()));
    theirs_ = mine;
    MPI_Bcast(theirs_.data(), static_cast<int>(kSamples), MPI_AINT, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
  }
  std::uint64_t run(const Reader& reader) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::span<std::byte> into = reader.into(i);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Rget(into.data(), kLength, MPI_BYTE, 1, theirs_[nth(i)], kLength, MPI_BYTE, window_, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      sum += hash_bytes(into);
    }
    return sum;
  }
  void close() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<MPI_Aint> theirs_;
};

using Figures = nlohmann::json;

Result<Figures> compare(MpiPeers& peers, const BareLoop& bare, Shelf& shelf, unsigned rounds) {
  Reader reader(peers);
  std::uint64_t expected = 0;
  for (SampleId id = 0; id < kSamples; ++id) expected += hash_bytes(shelf.bytes_of(id));  // both have the same
  std::vector<double> rates;
  std::vector<double> cpu;
  std::vector<double> walls;
  for (unsigned round = 0; round <= rounds; ++round) {
    bool right = true;
    const Spent ours = measure([&] { right = reader.ours(); });
    Spent theirs;
    peers.in_mpi([&] { theirs = measure([&] { right = bare.run(reader) == expected && right; }); });
    if (!right) return Error{Code::kIo, "not all samples came, or not as they are"};
    if (round == 0) continue;  // first touches
    rates.push_back(theirs.wall / ours.wall);
    cpu.push_back(ours.cpu / theirs.cpu);
    walls.push_back(1e6 * ours.wall / static_cast<double>(kSamples));
  }
  return Figures{{"ratio", median(rates)}, {"cpu", median(cpu)}, {"us", median(walls)}};
}

// One sample at a time, from a host that has had nothing to do for a while; and what both spend doing nothing.
Result<Figures> rested(MpiPeers& peers) {
  std::vector<std::byte> into(kLength);
  std::vector<double> waits;
  for (SampleId id = 0; id < 50; ++id) {
    std::this_thread::sleep_for(30ms);
    const PeerWant want{.id = id, .into = into};
    std::vector<PeerEnd> ends;
    const Time start = now();
    peers.fetch(1, kKey, std::span(&want, 1), start + 60s);
    peers.wait(ends, start + 60s);
    if (ends.empty() || ends[0].result != PeerResult::kHere) return Error{Code::kIo, "a sample did not come"};
    waits.push_back(1e3 * seconds(now() - start));
  }
  std::this_thread::sleep_for(100ms);
  const double cpu = cpu_seconds();
  std::this_thread::sleep_for(3s);
  const double idle = (cpu_seconds() - cpu) / 3;
  std::ranges::sort(waits);
  return Figures{{"median", waits[waits.size() / 2]}, {"worst", waits.back()}, {"idle", idle}};
}

// A process of the job. The one that reads prints its figures.
int serve(bool rates, unsigned rounds) {
  const auto fail = [](const Error& error) {
    fmt::print(stderr, "bench/peers_mpi: {}\n", error.message);
    return 2;
  };
  auto opened = MpiPeers::open();
  if (!opened.ok()) return fail(opened.error());
  MpiPeers& peers = **opened;
  Shelf shelf;
  BareLoop bare;
  if (rates) peers.in_mpi([&] { bare.open(shelf); });
  if (const Status done = peers.expose(kKey, shelf.memory(), kSamples); !done.ok()) return fail(done.error());
  if (const auto met = peers.exchange("", now() + 60s); !met.ok()) return fail(met.error());
  Result<Figures> figures = Figures();
  if (peers.host() == 0) figures = rates ? compare(peers, bare, shelf, rounds) : rested(peers);
  if (!figures.ok()) return fail(figures.error());
  if (const auto met = peers.exchange("", now() + 600s); !met.ok()) return fail(met.error());
  if (rates) peers.in_mpi([&] { bare.close(); });
  if (peers.host() == 0) fmt::print("{}\n", figures->dump());
  return 0;
}

Result<Figures> run_job(const std::vector<std::string>& options, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
                                      "2"};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  FORELOAD_ASSIGN(const std::string text, output_of(command));
  Figures figures = Figures::parse(text, nullptr, false);
  if (!figures.is_object()) return Error{Code::kIo, "the job reported nothing"};
  return figures;
}

void rate_row(unsigned rounds, BenchReport& report) {
  const auto job = run_job({}, {"--job", "rates", std::to_string(rounds)});
  if (!job.ok()) return report.skip("cluster/mpi", job.error().message);
  report.add("cluster/mpi", (*job)["ratio"], "ratio", 0.75, true,
             fmt::format("rate of MpiPeers over a bare loop of the same gets and the same xxh3, {} x 110 KB, two "
                         "processes, median of {} rounds in turn: {:.1f} us per sample; both threads together take "
                         "{:.2f} of the bare loop's CPU",
                         kSamples, rounds, (*job)["us"].get<double>(), (*job)["cpu"].get<double>()));
}

void rest_rows(BenchReport& report) {
  // What a network without remote reads of memory comes down to.
  const std::vector<std::string> sockets = {
      "--mca", "osc", "pt2pt", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"};
  const auto job = run_job(sockets, {"--job", "rested", "0"});
  if (!job.ok()) return report.skip("cluster/mpi_idle", job.error().message);
  report.add("cluster/mpi_idle", (*job)["idle"], "core", 0.03, false, "a process without work, over 3 s");
  report.note(
      "cluster/mpi_rested", (*job)["median"], "ms",
      fmt::format("a sample of 110 KB over sockets from a host that has rested, median of 50; the worst: {:.1f} ms",
                  (*job)["worst"].get<double>()));
}

Result<Settings> parse(const std::vector<std::string>& words) {
  Settings settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--json") {
      settings.json = true;
    } else if (words[i] == "--rounds" && i + 1 < words.size()) {
      settings.rounds = std::max(1u, static_cast<unsigned>(std::strtoul(words[++i].c_str(), nullptr, 10)));
    } else {
      return Error{Code::kInvalid, words[i] + " is not understood: [--json] [--rounds N]"};
    }
  }
  return settings;
}

}  // namespace
}  // namespace foreload

int main(int argc, char** argv) {
  const std::vector<std::string> words{argv + 1, argv + argc};
  if (words.size() == 3 && words[0] == "--job") {
    return foreload::serve(words[1] == "rates", static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)));
  }
  const auto settings = foreload::parse(words);
  if (!settings.ok()) {
    fmt::print(stderr, "bench/peers_mpi: {}\n", settings.error().message);
    return 2;
  }
  foreload::BenchReport report;
  foreload::rate_row(settings->rounds, report);
  foreload::rest_rows(report);
  return report.print(settings->json);
}
