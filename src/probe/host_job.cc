#include "probe/host_job.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "loader/seams.h"
#include "probe/loader_rates.h"
#include "probe/sleeping_op.h"

namespace foreload {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

constexpr Duration kLongestWarming = 30s;

// One job's side of the conversation.
class Server {
 public:
  explicit Server(Loader loader) : loader_(std::move(loader)) {}

  Result<Json> answer(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "step") return step();
    if (what == "epoch") return epoch();
    if (what == "warm") return warm();
    double number = 0;
    if (what == "rate" && words >> number) return rate(number);
    if (what == "take" && words >> number) return take(static_cast<std::uint64_t>(number));
    return Error{Code::kInvalid, fmt::format("\"{}\" is no request", line)};
  }

 private:
  Result<Json> step() {
    held_.reset();
    while (!held_) {  // an epoch's end is no batch
      FORELOAD_ASSIGN(held_, loader_.next());
    }
    return Json{{"samples", held_->size()}};
  }

  Result<Json> epoch() {
    for (const Epoch running = loader_.position().epoch; loader_.position().epoch == running;) {
      FORELOAD_TRY(loader_.next());
    }
    return stats();
  }

  Result<Json> warm() {
    const Time until = now() + kLongestWarming;
    while (!loader_.stats().filled) {
      if (now() > until) return Error{Code::kIo, "the cache is not filled in time"};
      std::this_thread::sleep_for(10ms);
    }
    return stats();
  }

  Result<Json> rate(double duration) {
    FORELOAD_ASSIGN(const double found, loader_rate(loader_, Duration(static_cast<std::int64_t>(1e9 * duration))));
    wait_until_idle();
    return Json{{"rate", found}};
  }

  Result<Json> take(std::uint64_t batches) {
    FORELOAD_TRY(samples_of(loader_.stats().ring_slots));  // what was prepared while nobody asked is no rate
    const Time start = now();
    FORELOAD_ASSIGN(const std::uint64_t samples, samples_of(batches));
    const double found = static_cast<double>(samples) / seconds(now() - start);
    wait_until_idle();
    return Json{{"rate", found}};
  }

  Result<std::uint64_t> samples_of(std::uint64_t batches) {
    std::uint64_t samples = 0;
    while (batches > 0) {
      FORELOAD_ASSIGN(const auto batch, loader_.next());
      if (!batch) continue;  // an epoch's end
      samples += batch->size();
      --batches;
    }
    return samples;
  }

  Json stats() const {
    const LoaderStats all = loader_.stats();
    Bytes source = 0;
    for (const EpochStats& each : all.epochs) source += each.source_bytes;
    return {{"source", source}, {"cached", all.cached_bytes}, {"capacity", all.cache_capacity}};
  }

  Loader loader_;
  std::optional<Batch> held_;
};

void say(const Json& answer) {
  std::cout << answer.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

Result<Loader> open_job(const std::string& text) {
  FORELOAD_ASSIGN(const HostJob job, parse_job(text));
  return open_with_seams(job.loader, {.slots = job.slots, .host_cores = job.host_cores});
}

}  // namespace

std::string job_text(const HostJob& job) {
  const LoaderOptions& options = job.loader;
  return Json{{"dataset", options.dataset},
              {"index_folder", options.source.index_folder},
              {"batch", options.batch},
              {"seed", options.seed},
              {"chain", chain_text(options.chain)},
              {"memory", options.memory},
              {"workers", options.workers ? Json(*options.workers) : Json()},
              {"held_batches", options.held_batches},
              {"host", options.host},
              {"rank", options.rank},
              {"world", options.world},
              {"io", options.io},
              {"storage", options.storage},
              {"slots", job.slots},
              {"host_cores", job.host_cores}}
      .dump();
}

Result<HostJob> parse_job(const std::string& text) {
  const Json read = Json::parse(text, nullptr, false);
  if (!read.is_object()) return Error{Code::kInvalid, "this is no job: " + text};
  HostJob job;
  LoaderOptions& options = job.loader;
  options.dataset = read.value("dataset", options.dataset);
  options.source.index_folder = read.value("index_folder", "");
  options.batch = read.value("batch", options.batch);
  options.seed = read.value("seed", options.seed);
  FORELOAD_ASSIGN(options.chain, parse_chain(read.value("chain", "")));
  options.memory = read.value("memory", options.memory);
  if (read.contains("workers") && read["workers"].is_number()) options.workers = read["workers"].get<unsigned>();
  options.held_batches = read.value("held_batches", options.held_batches);
  options.host = read.value("host", "");
  options.rank = read.value("rank", options.rank);
  options.world = read.value("world", options.world);
  options.io = read.value("io", "");
  options.storage = read.value("storage", "");
  options.rewrite = Rewrite::kOff;  // a host does not rewrite
  job.slots = read.value("slots", 0u);
  job.host_cores = read.value("host_cores", 0u);
  return job;
}

int serve_job(const std::string& text) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  add_sleeping_op();
  auto loader = open_job(text);
  if (!loader.ok()) {
    say({{"error", loader.error().message}});
    return 1;
  }
  Server server(std::move(*loader));
  say({{"opened", 1}});
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = server.answer(line);
    say(answer.ok() ? *answer : Json{{"error", answer.error().message}});
  }
  return 0;
}

Result<double> number_in(const std::string& answer, const std::string& name) {
  const Json read = Json::parse(answer, nullptr, false);
  if (read.is_object() && read.contains("error")) return Error{Code::kIo, read.value("error", "")};
  if (read.is_object() && read.contains(name) && read[name].is_number()) return read[name].get<double>();
  return Error{Code::kIo, fmt::format("a process answers \"{}\" where {} was asked for", answer, name)};
}

}  // namespace foreload
