// ClusterSetup: a cluster and a job on it, in numbers: what `foreload simulate` is told and a simulation runs on. Plain
// values, equal on all hosts; every one has a name, by which flags, files and sweeps reach it (parameters()).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"

namespace foreload {

struct ClusterSetup {
  // Hosts
  std::uint64_t hosts = 1;
  std::uint64_t learners = 1;  // of a host
  std::uint64_t cores = 4;     // of a host, for prep
  Bytes memory = 64'000'000'000;
  Bytes cache = 32'000'000'000;  // of the memory, for samples
  Bytes disk = 0;                // for samples, of a host
  double memory_rate = 10e9;     // bytes per second, all rates are
  double disk_rate = 2e9;

  // Storage that all hosts share; infinite: no limit
  double storage_rate = 1e9;  // of all clients together
  double storage_host_rate = std::numeric_limits<double>::infinity();
  double storage_requests = std::numeric_limits<double>::infinity();  // per second, of all clients together
  double storage_latency = 0.001;                                     // seconds
  std::uint64_t storage_on_network = 1;                               // 1: its bytes go through the hosts' links, too

  // Network
  double network_rate = 1.25e9;  // of a host, in each direction
  double bisection = std::numeric_limits<double>::infinity();
  double network_latency = 20e-6;

  // Data
  std::uint64_t samples = 100'000;
  double sample_bytes = 110'000;  // mean
  double spread = 0;              // of the logarithm of a sample's length

  // Job
  std::uint64_t batch = 64;  // of a learner
  std::uint64_t epochs = 3;
  std::uint64_t seed = 0;
  std::uint64_t jobs = 1;  // that train on the same data, each on its part of every host's learners
  double accelerator = std::numeric_limits<double>::infinity();  // samples per second of one
  double prep = std::numeric_limits<double>::infinity();         // samples per second of one core
  Bytes gradient = 0;                                            // bytes that learners reduce after every step
  double jitter = 0;                                             // of a step's compute: its standard deviation
  double stragglers = 0;                                         // share of hosts that are slow throughout
  double straggler_factor = 2;                                   // how often a step of theirs takes as long
  std::uint64_t prefetch = 0;                                    // batches ahead of the learner; 0: as the system does
  std::uint64_t echo = 2;                                        // of the system `echo`
  double reshuffle = 0.1;                                        // of the system `partial`

  std::uint64_t world() const { return hosts * learners; }
  std::uint64_t job_world() const { return world() / jobs; }
  std::uint64_t global_batch() const { return batch * job_world(); }  // of one job
  double dataset_bytes() const { return static_cast<double>(samples) * sample_bytes; }
};

// What a number means: how it is written and shown.
enum class Quantity { kCount, kBytes, kByteRate, kRate, kSeconds, kShare };

struct Parameter {
  const char* name;
  Quantity quantity;
  std::variant<std::uint64_t ClusterSetup::*, double ClusterSetup::*> field;
  double least;
  double most;
  const char* says;
};

std::span<const Parameter> parameters();
const Parameter* find_parameter(std::string_view name);
double value_of(const ClusterSetup& setup, const Parameter& parameter);
std::string text_of(const Parameter& parameter, double value);  // "1.25 GB/s"

// "32GB", "1GB/s", "5ms", "920", "none" (no limit). kInvalid names the parameter and what is wrong.
Status set_parameter(ClusterSetup& setup, std::string_view name, std::string_view text);
Status set_value(ClusterSetup& setup, const Parameter& parameter, double value);

// Lines "name = value"; '#' begins a comment, [sections] only group. The error names `file` and the line.
Status read_cluster(ClusterSetup& setup, std::string_view text, const std::string& file);

// Whether such a cluster can be. kInvalid says what can not, and what to do.
Status check_cluster(const ClusterSetup& setup);

// Lengths of the samples: pure in the setup.
std::vector<std::uint32_t> sample_lengths(const ClusterSetup& setup);

}  // namespace foreload
