#include "host/survey.h"

#include <bit>

namespace foreload {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);
constexpr unsigned kNoMember = kMostMembers;  // whoever looks is none

std::uint32_t process_of(const std::vector<MemberInfo>& members, unsigned index) {
  for (const MemberInfo& member : members) {
    if (member.id.index == index) return member.process;
  }
  return 0;
}

}  // namespace

Result<std::optional<Observer>> Observer::open(const std::string& host) {
  FORELOAD_ASSIGN(HostName name, HostName::parse(host));
  FORELOAD_ASSIGN(auto control, watch_host(name, kPatience));
  if (!control) return std::optional<Observer>();
  return std::optional<Observer>(Observer(std::move(name), std::move(*control)));
}

const Observer::Watched* Observer::watch(const ObjectInfo& object) {
  const auto known = watched_.find(object.id);
  if (known != watched_.end()) return known->second ? &*known->second : nullptr;
  auto& watched = watched_[object.id];
  auto file = ask_holders(name_, object, kNoMember);
  if (!file) return nullptr;
  auto memory = SharedMemory::adopt(std::move(*file), object.bytes, "a stream");
  if (!memory.ok()) return nullptr;
  const auto card = read_card(memory->bytes(), object.bytes);
  if (!card.ok()) return nullptr;
  auto region = Region::map_file(memory->file(), card->ring_offset(), object.bytes - card->ring_offset(), "a stream");
  if (!region.ok()) return nullptr;
  watched.emplace(Watched{*card, Ring::attach(card->ring, std::move(*region))});
  return &*watched;
}

std::optional<HostSurvey> Observer::look() {
  HostSurvey survey{.name = name_.text(), .budget = control_.budget(), .cores = control_.cores()};
  survey.members = control_.members();
  std::erase_if(survey.members, [](const MemberInfo& member) { return !member.alive; });
  if (survey.members.empty()) return std::nullopt;
  std::map<ObjectId, std::optional<Watched>> still;
  for (const ObjectInfo& object : control_.objects()) {
    if (object.key.kind == ObjectKey::Kind::kArena) {
      survey.arenas.push_back({.id = object.id,
                               .bytes = object.bytes,
                               .reserved = object.reserved,
                               .users = static_cast<unsigned>(std::popcount(object.users)),
                               .holders = static_cast<unsigned>(std::popcount(object.holders))});
      continue;
    }
    const Watched* watched = object.users == 0 ? nullptr : watch(object);
    if (watched == nullptr) continue;
    const Ring& ring = *watched->ring;
    StreamSurvey stream{.id = object.id,
                        .process = process_of(survey.members, static_cast<unsigned>(std::countr_zero(object.users))),
                        .rank = watched->card.rank,
                        .world = watched->card.world,
                        .slots = ring.slots(),
                        .published = ring.published(),
                        .pace = ring.pace(),
                        .report = ring.report(),
                        .bytes = object.bytes};
    for (const MemberInfo& member : survey.members) {
      const std::uint64_t samples = ring.prepared_by(member.id.index);
      if (samples > 0) stream.prepared_by.push_back({member.process, samples});
    }
    survey.streams.push_back(std::move(stream));
    still[object.id] = std::move(watched_[object.id]);
  }
  watched_ = std::move(still);
  return survey;
}

}  // namespace foreload
