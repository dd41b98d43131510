// Three sources of hosts, each a function that gives their addresses; then, alike for all: which of them is this one,
// where it listens, and how many learners it has. Where only host 0 is known (a rendezvous), the others listen at the
// address with which they reach it. They do so at a fixed port, so that a host that is started again is where it was,
// and firewalls can be told; only beside host 0, on its machine, it is any free one.
#include "peers/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "peers/host_port.h"
#include "peers/node_list.h"

namespace foreload {
namespace {

constexpr std::size_t kMostShown = 8;       // hosts in an error
constexpr std::size_t kLongestShown = 100;  // of a text in an error

// Where hosts may be.
struct Hosts {
  std::vector<HostPort> addresses{};
  std::uint32_t count = 0;  // more than addresses: only host 0 is known
  std::string source{};     // for people

  bool is_rendezvous() const { return addresses.size() < count; }
};

Error invalid(std::string message) {
  return {Code::kInvalid, std::move(message)};
}

std::string shown(std::string_view text) {
  return text.size() <= kLongestShown ? std::string(text) : std::string(text.substr(0, kLongestShown)) + "...";
}

std::string listed(const Hosts& hosts) {
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.addresses.size(), kMostShown); ++i) {
    text += fmt::format("{}{} = {}", i == 0 ? "" : ", ", i, hosts.addresses[i].text());
  }
  if (hosts.count > kMostShown) text += fmt::format(", ... of {}", hosts.count);
  return text;
}

// Of a variable of the environment.
Result<std::uint32_t> number_of(const std::string& name, const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) {
    return invalid(fmt::format("the environment has {}=\"{}\", which is no number", name, shown(text)));
  }
  return value;
}

Result<std::optional<std::uint32_t>> number_in(const Surroundings& around, const std::string& name) {
  const auto text = around.variable(name);
  if (!text) return std::optional<std::uint32_t>();
  FORELOAD_ASSIGN(const std::uint32_t value, number_of(name, *text));
  return std::optional(value);
}

Result<Hosts> hosts_of_list(const std::string& text) {
  Hosts hosts{.source = "--peers"};
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = trimmed(rest.substr(0, comma));
    more = comma != std::string_view::npos;
    rest = more ? rest.substr(comma + 1) : std::string_view();
    auto address = HostPort::parse(entry, kPeerPort);
    if (!address) return invalid(fmt::format("--peers: \"{}\": {}", shown(entry), address.error().message));
    if (address->port == 0) return invalid(fmt::format("--peers: \"{}\": others must know the port", shown(entry)));
    const auto known = std::find(hosts.addresses.begin(), hosts.addresses.end(), *address);
    if (known != hosts.addresses.end()) {
      return invalid(
          fmt::format("--peers: {} stands there twice; every host has an address of its own", known->text()));
    }
    hosts.addresses.push_back(std::move(*address));
    if (hosts.addresses.size() > Roster::kMostHosts) {
      return invalid(fmt::format("--peers: there are more than {} hosts", Roster::kMostHosts));
    }
  }
  hosts.count = static_cast<std::uint32_t>(hosts.addresses.size());
  return hosts;
}

Result<std::uint32_t> groups_of_torchrun(const Surroundings& around) {
  FORELOAD_ASSIGN(const auto groups, number_in(around, "GROUP_WORLD_SIZE"));
  FORELOAD_ASSIGN(const auto world, number_in(around, "WORLD_SIZE"));
  FORELOAD_ASSIGN(const auto local, number_in(around, "LOCAL_WORLD_SIZE"));
  std::uint32_t count = groups.value_or(0);
  if (!groups && world && local && *local != 0 && *world % *local == 0) count = *world / *local;
  if (count == 0 || count > Roster::kMostHosts) {
    return invalid(
        "torchrun's environment does not say how many hosts there are: it has neither GROUP_WORLD_SIZE nor a "
        "WORLD_SIZE that LOCAL_WORLD_SIZE divides; give --peers HOST,HOST,... on all hosts");
  }
  return count;
}

Result<Hosts> hosts_of_torchrun(const std::string& master, const Surroundings& around) {
  FORELOAD_ASSIGN(const std::uint32_t count, groups_of_torchrun(around));
  const std::string host = master.find(':') != std::string::npos ? "[" + master + "]" : master;
  auto address = HostPort::parse(host, kPeerPort);
  if (!address) {
    return invalid(fmt::format("the environment has MASTER_ADDR=\"{}\": {}", shown(master), address.error().message));
  }
  return Hosts{.addresses = {std::move(*address)}, .count = count, .source = "torchrun's environment"};
}

Result<Hosts> hosts_of_slurm(const std::string& variable, const std::string& list) {
  auto names = expand_node_list(list, Roster::kMostHosts);
  if (!names) {
    return invalid(fmt::format("the environment has {}=\"{}\": {}; give --peers HOST,HOST,... instead", variable,
                               shown(list), names.error().message));
  }
  Hosts hosts{.count = static_cast<std::uint32_t>(names->size()), .source = variable};
  for (std::string& name : *names) hosts.addresses.push_back({.host = std::move(name), .port = kPeerPort});
  return hosts;
}

Result<Hosts> find_hosts(const PlacesOptions& options, const Surroundings& around) {
  if (!options.peers.empty()) return hosts_of_list(options.peers);
  const auto master = around.variable("MASTER_ADDR");
  if (master && around.variable("GROUP_RANK")) return hosts_of_torchrun(*master, around);
  for (const char* variable : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (const auto list = around.variable(variable)) return hosts_of_slurm(variable, *list);
  }
  return invalid(
      "nobody says where the hosts of the job are: give --peers HOST,HOST,... on all hosts, or start under torchrun "
      "(GROUP_RANK, MASTER_ADDR) or Slurm (SLURM_JOB_NODELIST)");
}

bool is_here(const HostPort& address, const Surroundings& around, const std::vector<std::string>& own) {
  const auto found = around.look_up(address.host);
  return std::any_of(found.begin(), found.end(), [&](const std::string& each) {
    return is_loopback_address(each) || std::find(own.begin(), own.end(), each) != own.end();
  });
}

Result<HostIndex> self_by_address(const Hosts& hosts, const Surroundings& around) {
  const auto own = around.addresses();
  std::vector<HostIndex> here;
  for (HostIndex i = 0; i < hosts.addresses.size(); ++i) {
    if (is_here(hosts.addresses[i], around, own)) here.push_back(i);
  }
  if (here.size() == 1) return here.front();
  return invalid(fmt::format("which host is this? {} of {} ({}) {} of this machine; say it with --host-index",
                             here.empty() ? "none" : fmt::format("{}", here.size()), hosts.source, listed(hosts),
                             here.size() > 1 ? "are addresses" : "is an address"));
}

Result<HostIndex> find_self(const PlacesOptions& options, const Hosts& hosts, const Surroundings& around) {
  const auto beyond = [&](std::string_view name, HostIndex host) {
    return invalid(fmt::format("{} is {}, but {} has hosts 0 to {} ({})", name, host, hosts.source, hosts.count - 1,
                               listed(hosts)));
  };
  if (options.host) return *options.host < hosts.count ? Result(*options.host) : beyond("--host-index", *options.host);
  for (const char* name : {"GROUP_RANK", "SLURM_NODEID"}) {
    FORELOAD_ASSIGN(const auto found, number_in(around, name));
    if (!found) continue;
    if (*found >= hosts.count) return beyond(name, *found);
    if (hosts.is_rendezvous() || is_here(hosts.addresses[*found], around, around.addresses())) return *found;
    if (around.look_up(hosts.addresses[*found].host).empty()) return *found;
    return invalid(
        fmt::format("by {} this is host {}, but its address in {}, {}, is another machine's; write the hosts "
                    "in the launcher's order, or give --host-index",
                    name, *found, hosts.source, hosts.addresses[*found].text()));
  }
  return self_by_address(hosts, around);
}

Result<std::uint32_t> checked_learners(std::string_view source, std::uint32_t learners) {
  if (learners <= Roster::kMostLearners) return learners;
  return invalid(fmt::format("{}: {} learners; at most {}", source, learners, Roster::kMostLearners));
}

Result<std::uint32_t> find_learners(const PlacesOptions& options, const Surroundings& around) {
  if (options.learners) return checked_learners("--learners", *options.learners);
  FORELOAD_ASSIGN(const auto local, number_in(around, "LOCAL_WORLD_SIZE"));
  if (local) return checked_learners("LOCAL_WORLD_SIZE", *local);
  FORELOAD_ASSIGN(const auto node, number_in(around, "SLURM_NODEID"));
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}) {
    const auto counts = around.variable(name);
    if (!counts) continue;
    auto count = count_of_node(*counts, node.value_or(0));
    if (count) return checked_learners(name, *count);
    return invalid(fmt::format("the environment has {}=\"{}\": {}; give --learners, how many ranks train on this host",
                               name, shown(*counts), count.error().message));
  }
  return invalid(
      "how many ranks train on this host? Neither LOCAL_WORLD_SIZE nor SLURM_STEP_TASKS_PER_NODE says it; give "
      "--learners (0: it only lends its memory)");
}

bool is_any(const std::string& host) {
  return host == "0.0.0.0" || host == "::";
}

std::string any_like(const std::string& host) {
  return host.find(':') != std::string::npos ? "::" : "0.0.0.0";
}

bool is_only_loopback(const std::string& host, const Surroundings& around) {
  const auto found = around.look_up(host);
  return !found.empty() && std::all_of(found.begin(), found.end(), is_loopback_address);
}

bool is_written_loopback(const std::string& host) {
  return is_loopback_address(host) || host == "localhost";
}

// Many machines call themselves 127.0.1.1. Who listens there is not found by others, unless they are all here.
HostPort listen_at(const HostPort& own, const Hosts& hosts, const Surroundings& around) {
  if (is_written_loopback(own.host) || !is_only_loopback(own.host, around)) return own;
  const bool all_here = std::all_of(hosts.addresses.begin(), hosts.addresses.end(),
                                    [&](const HostPort& each) { return is_only_loopback(each.host, around); });
  return all_here ? own : HostPort{.host = any_like(own.host), .port = own.port};
}

// Host 0 of a rendezvous.
Status place_first(const std::optional<HostPort>& listen, const Hosts& hosts, Places& places) {
  const HostPort& own = hosts.addresses.front();
  places.name = own.text();
  if (listen && listen->port != own.port) {
    return invalid(
        fmt::format("--listen {}: this is host 0, which the others look for at {}; listen at port {}, or "
                    "give --peers HOST:PORT,... on all hosts",
                    listen->text(), own.text(), own.port));
  }
  const HostPort all{.host = any_like(own.host), .port = own.port};
  places.listen = (listen ? *listen : is_written_loopback(own.host) ? own : all).text();
  return {};
}

// Another host of a rendezvous.
Status place_other(const std::optional<HostPort>& listen, const Hosts& hosts, const Surroundings& around,
                   Places& places) {
  const HostPort& first = hosts.addresses.front();
  places.addresses.front() = first.text();
  if (listen && !is_any(listen->host)) {
    places.name = places.listen = listen->text();
    return {};
  }
  auto own = around.way_to(first.host);
  if (!own) {
    return Error{own.error().code, fmt::format("host 0 is looked for at {} ({}): {}; correct MASTER_ADDR, or give "
                                               "--peers HOST,HOST,... on all hosts",
                                               first.text(), hosts.source, own.error().message)};
  }
  const auto theirs = around.look_up(first.host);
  const bool beside = is_loopback_address(*own) || std::find(theirs.begin(), theirs.end(), *own) != theirs.end();
  const HostPort reached{.host = *own, .port = listen ? listen->port : beside ? std::uint16_t{0} : kPeerPort};
  places.name = reached.text();
  places.listen = listen ? listen->text() : reached.text();
  return {};
}

Status place(const PlacesOptions& options, const Hosts& hosts, const Surroundings& around, Places& places) {
  std::optional<HostPort> listen;
  if (!options.listen.empty()) {
    auto parsed = HostPort::parse(options.listen, kPeerPort);
    if (!parsed) return invalid(fmt::format("--listen {}: {}", shown(options.listen), parsed.error().message));
    listen = std::move(*parsed);
  }
  if (hosts.is_rendezvous() && places.self == 0) return place_first(listen, hosts, places);
  if (hosts.is_rendezvous()) return place_other(listen, hosts, around, places);
  for (HostIndex i = 0; i < hosts.count; ++i) {
    if (i != places.self) places.addresses[i] = hosts.addresses[i].text();
  }
  const HostPort& own = hosts.addresses[places.self];
  places.name = own.text();
  places.listen = (listen ? *listen : listen_at(own, hosts, around)).text();
  return {};
}

}  // namespace

Result<Places> find_places(const PlacesOptions& options, const Surroundings& around) {
  FORELOAD_ASSIGN(const Hosts hosts, find_hosts(options, around));
  Places places;
  places.addresses.resize(hosts.count);
  FORELOAD_ASSIGN(places.self, find_self(options, hosts, around));
  FORELOAD_ASSIGN(places.learners, find_learners(options, around));
  FORELOAD_TRY(place(options, hosts, around, places));
  return places;
}

}  // namespace foreload
