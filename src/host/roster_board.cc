#include "host/roster_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <span>

#include "base/claim_word.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMagic = 0x31307473526f4c46;  // "FLoRst01"
constexpr std::size_t kText = 512;
constexpr std::size_t kName = 264;
constexpr Bytes kPage = 4096;
constexpr ObjectKey kKey{ObjectKey::Kind::kRoster, 0, 0};

enum State : std::uint32_t { kMeeting = 0, kMet = 1, kFailed = 2 };

// What another process wrote, as far as it may be shown.
std::string shown(std::span<const char> from) {
  std::string text(from.begin(), std::ranges::find(from, '\0'));
  std::ranges::replace_if(
      text, [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, '?');
  return text;
}

void write_text(const std::string& text, std::span<char> into) {
  const std::size_t length = std::min(text.size(), into.size() - 1);
  std::memcpy(into.data(), text.data(), length);
  std::memset(into.data() + length, 0, into.size() - length);
}

}  // namespace

struct RosterBoard::Header {
  std::atomic<std::uint64_t> magic{0};
  std::atomic<std::uint64_t> agent{0};  // ClaimWord: who posts
  std::atomic<std::uint32_t> state{kMeeting};
  std::uint32_t hosts = 0;
  std::uint32_t self = 0;
  std::array<char, kText> text{};
};

struct RosterBoard::Entry {
  std::uint32_t learners = 0;
  Bytes memory = 0;
  Bytes disk = 0;
  std::array<char, kName> name{};
};

Bytes RosterBoard::region_bytes(std::size_t hosts) {
  return (sizeof(Header) + hosts * sizeof(Entry) + kPage - 1) / kPage * kPage;
}

RosterBoard::Header& RosterBoard::header() const {
  return *reinterpret_cast<Header*>(memory_->memory().bytes().data());
}

RosterBoard::Entry* RosterBoard::entries() const {
  return reinterpret_cast<Entry*>(memory_->memory().bytes().data() + sizeof(Header));
}

std::size_t RosterBoard::room() const {
  return (memory_->memory().bytes().size() - sizeof(Header)) / sizeof(Entry);
}

Result<RosterBoard> RosterBoard::post(std::shared_ptr<Member> member, std::size_t hosts) {
  const Bytes bytes = region_bytes(hosts);
  const auto fill = [&](const SharedMemory& memory) -> Status {
    FORELOAD_TRY(memory.reserve(0, bytes));
    Header* header = new (memory.bytes().data()) Header;
    header->magic = kMagic;
    return {};
  };
  FORELOAD_ASSIGN(auto memory,
                  member->open({.key = kKey, .bytes = bytes, .any_size = true, .reserve = bytes, .fill = fill}));
  RosterBoard board(std::move(memory));
  std::atomic<std::uint64_t>& agent = board.header().agent;
  const MemberId self = member->id();
  const ClaimWord mine{.phase = 1, .member = self.index, .member_generation = self.generation};
  std::uint64_t seen = agent.load();
  const bool taken = ClaimWord::unpack(seen).phase != 0 && member->control().is_alive(ClaimWord::unpack(seen).owner());
  if (taken || !agent.compare_exchange_strong(seen, mine.packed())) {
    return Error{Code::kMismatch, "another agent of this host talks to the other hosts already; one is enough"};
  }
  if (board.room() < hosts) {
    return Error{Code::kInvalid,
                 fmt::format("members of this host take part in a job of fewer hosts than {}: end them first, or give "
                             "this job another --host",
                             hosts)};
  }
  std::uint32_t failed = kFailed;
  board.header().state.compare_exchange_strong(failed, kMeeting);
  return board;
}

std::optional<RosterBoard> RosterBoard::find(Member& member) {
  for (const ObjectInfo& object : member.control().objects()) {
    if (!(object.key == kKey) || object.dropped || object.bytes < region_bytes(1)) continue;
    auto memory = member.fetch(object.id);
    if (!memory.ok()) continue;
    RosterBoard board(std::move(*memory));
    if (board.header().magic == kMagic) return board;
  }
  return std::nullopt;
}

void RosterBoard::say(const std::string& text) {
  if (header().state == kMeeting) write_text(text, header().text);
}

void RosterBoard::fail(const std::string& text) {
  say(text);
  std::uint32_t meeting = kMeeting;
  header().state.compare_exchange_strong(meeting, kFailed);
}

bool RosterBoard::has_failed() const {
  return header().state == kFailed;
}

bool RosterBoard::has_agent(const Control& control) const {
  const ClaimWord agent = ClaimWord::unpack(header().agent);
  return agent.phase != 0 && control.is_alive(agent.owner());
}

std::string RosterBoard::said() const {
  return shown(header().text);
}

Status RosterBoard::publish(const JobRoster& job) {
  if (const auto before = read()) {
    if (before->roster.hash() == job.roster.hash() && before->self == job.self) return {};
    return Error{Code::kMismatch,
                 "members of this host plan by another roster of hosts: end them first, or give this job another "
                 "--host"};
  }
  const std::span<const RosterHost> hosts = job.roster.hosts();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    Entry& entry = *new (entries() + i) Entry;
    entry.learners = hosts[i].learners;
    entry.memory = hosts[i].memory;
    entry.disk = hosts[i].disk;
    write_text(hosts[i].name, entry.name);
  }
  header().hosts = static_cast<std::uint32_t>(hosts.size());
  header().self = job.self;
  header().state.store(kMet, std::memory_order_release);
  return {};
}

std::optional<JobRoster> RosterBoard::read() const {
  if (header().state.load(std::memory_order_acquire) != kMet) return std::nullopt;
  const std::size_t count = header().hosts;
  const HostIndex self = header().self;
  if (count > room() || count > Roster::kMostHosts || self >= count) return std::nullopt;
  std::vector<RosterHost> hosts;
  for (std::size_t i = 0; i < count; ++i) {
    const Entry entry = entries()[i];  // a copy: its writer may change it
    hosts.push_back(
        {.name = shown(entry.name), .learners = entry.learners, .memory = entry.memory, .disk = entry.disk});
  }
  auto roster = Roster::create(std::move(hosts));
  return roster.ok() ? std::optional(JobRoster{std::move(*roster), self}) : std::nullopt;
}

}  // namespace foreload
