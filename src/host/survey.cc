#include "host/survey.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "host/stream_card.h"

namespace foreload {
namespace {

constexpr Duration kPatience = std::chrono::seconds(2);
constexpr unsigned kNoMember = kMostMembers;  // whoever looks is none

const MemberInfo* member_at(const std::vector<MemberInfo>& members, unsigned index) {
  for (const MemberInfo& member : members) {
    if (member.id.index == index) return &member;
  }
  return nullptr;
}

ArenaSurvey survey_arena(const ObjectInfo& object) {
  return {.id = object.id,
          .bytes = object.bytes,
          .reserved = object.reserved,
          .users = static_cast<unsigned>(std::popcount(object.users)),
          .holders = static_cast<unsigned>(std::popcount(object.holders))};
}

// Nothing: it has no learner, or can not be read.
std::optional<StreamSurvey> survey_stream(const ObjectInfo& object, const std::vector<MemberInfo>& members,
                                          const ObjectMemory& memory_of) {
  const MemberInfo* learner = member_at(members, static_cast<unsigned>(std::countr_zero(object.users)));
  if (learner == nullptr) return std::nullopt;
  const auto memory = memory_of(object);
  if (!memory) return std::nullopt;
  const auto card = read_card(memory->bytes(), memory->bytes().size());
  if (!card.ok()) return std::nullopt;
  auto region = Region::map_file(memory->file(), card->ring_offset(), card->ring_bytes(), "a stream");
  if (!region.ok()) return std::nullopt;
  const auto ring = Ring::attach(card->ring, std::move(*region));
  StreamSurvey stream{.id = object.id,
                      .process = learner->process,
                      .rank = card->rank,
                      .world = card->world,
                      .slots = ring->slots(),
                      .published = ring->published(),
                      .pace = ring->pace(Ring::kOwnReader),
                      .report = ring->report(),
                      .bytes = object.bytes};
  for (const MemberInfo& member : members) {
    const std::uint64_t samples = ring->prepared_by(member.id.index);
    if (samples > 0) stream.prepared_by.push_back({member.id.index, member.process, samples});
  }
  return stream;
}

// A learner that reads another job's stream waits for the batches of that one.
void tell_company(std::vector<StreamSurvey>& streams) {
  for (StreamSurvey& stream : streams) {
    const auto read = std::ranges::find(streams, stream.report.reads, &StreamSurvey::id);
    if (stream.report.reads == 0 || read == streams.end()) continue;
    stream.fed_by = read->process;
    stream.published = read->published;
  }
}

}  // namespace

std::optional<HostSurvey> survey_host(const std::string& name, const Control& control, const ObjectMemory& memory) {
  HostSurvey survey{
      .name = name, .budget = control.budget(), .cores = control.cores(), .cores_in_use = control.cores_in_use(now())};
  survey.members = control.members();
  std::erase_if(survey.members, [](const MemberInfo& member) { return !member.alive; });
  if (survey.members.empty()) return std::nullopt;
  for (const MemberInfo& member : survey.members) survey.memory.members += member.reserved;
  for (const ObjectInfo& object : control.objects()) {
    const bool is_arena = object.key.kind == ObjectKey::Kind::kArena;
    if (!is_arena && object.key.kind != ObjectKey::Kind::kRing) continue;
    (is_arena ? survey.memory.arenas : survey.memory.streams) += object.reserved;
    if (is_arena) {
      survey.arenas.push_back(survey_arena(object));
    } else if (auto stream = survey_stream(object, survey.members, memory)) {
      survey.streams.push_back(std::move(*stream));
    }
  }
  tell_company(survey.streams);
  return survey;
}

std::optional<HostSurvey> survey_host(Member& member) {
  const auto memory = [&member](const ObjectInfo& object) -> std::shared_ptr<const SharedMemory> {
    auto held = member.fetch(object.id);
    if (!held.ok()) return nullptr;
    return {*held, &(*held)->memory()};
  };
  return survey_host(member.name().text(), member.control(), memory);
}

Result<std::optional<Observer>> Observer::open(const std::string& host) {
  FORELOAD_ASSIGN(HostName name, HostName::parse(host));
  FORELOAD_ASSIGN(auto control, watch_host(name, kPatience));
  if (!control) return std::optional<Observer>();
  return std::optional<Observer>(Observer(std::move(name), std::move(*control)));
}

std::optional<HostSurvey> Observer::look() const {
  const auto memory = [this](const ObjectInfo& object) -> std::shared_ptr<const SharedMemory> {
    auto file = ask_holders(name_, object, kNoMember);
    if (!file) return nullptr;
    auto adopted = SharedMemory::adopt(std::move(*file), object.bytes, "a stream");
    return adopted.ok() ? std::make_shared<const SharedMemory>(std::move(*adopted)) : nullptr;
  };
  return survey_host(name_.text(), control_, memory);
}

}  // namespace foreload
