#include "loader/company.h"

#include <algorithm>

#include "base/clock.h"
#include "base/hash.h"
#include "plan/assignment.h"

namespace foreload {
namespace {

constexpr int kTurns = 32;  // somebody else began at the same moment, so often

}  // namespace

std::array<std::uint64_t, 2> content_of(const LoaderOptions& options, const Source& source, const Stream& stream,
                                        const ChainOptions& chain) {
  std::array<std::uint64_t, 2> content{};
  for (std::size_t half = 0; half < content.size(); ++half) {
    Hasher hash(half + 1);
    hash.add(source.fingerprint()).add(source.validators()).add(options.seed);
    hash.add(plan_hash(stream.schedule().options(), stream.assignment().shape()));
    hash.add(options.rank).add(options.world).add(options.held_batches);
    hash.add(stream.balanced() != nullptr ? stream.balanced()->assignment().roster().hash() : 0);
    hash.add(static_cast<std::uint64_t>(options.on_error)).add(options.limits.replacements);
    hash.add(chain_text(chain.transforms));
    hash.add(static_cast<std::uint64_t>(chain.dtype)).add(static_cast<std::uint64_t>(chain.layout));
    hash.add(static_cast<std::uint64_t>(chain.decode));
    hash.add(chain.limits.sample_bytes).add(chain.limits.pixels).add(chain.limits.scans);
    content[half] = hash.value();
  }
  return content;
}

Company::Company(std::shared_ptr<Member> member, ObjectId own, const StreamCard& card)
    : member_(std::move(member)), own_(own), card_(card) {}

std::optional<Company::Joined> Company::join(const Wanted& wanted, Ring& own, const TensorSpec& spec) {
  Control& control = member_->control();
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::vector<Control::Lead> leads = control.leads(card_.content[0]);
    for (const Control::Lead& lead : leads) {
      if (lead.object == own_) continue;
      auto desk = read(lead.object, spec);
      const auto number = desk.ok() ? attach(**desk, wanted) : std::nullopt;
      if (number) return Joined{std::move(*desk), *number};
    }
    own.begin(wanted.number, wanted.end);
    // A host whose lock is held by somebody who is stopped: then this one goes on alone.
    const auto leading = control.lead(own_, leads);
    if (!leading.ok() || *leading) return std::nullopt;
    own.end();
  }
  own.begin(wanted.number, wanted.end);
  return std::nullopt;
}

void Company::leave() {
  member_->control().end_lead(own_);
}

std::optional<std::uint64_t> Company::attach(LeaseDesk& desk, const Wanted& wanted) {
  Ring& ring = desk.ring();
  if (!ring.is_fed(now())) return std::nullopt;
  if (ring.attach(desk.reader(), wanted.number, false)) return wanted.number;
  if (!wanted.follow) return std::nullopt;
  constexpr std::uint64_t kFurthest = std::uint64_t{1} << 48;  // another process wrote it
  const std::uint64_t epoch = (std::min(ring.opened(), kFurthest) + wanted.epoch_batches - 1) / wanted.epoch_batches;
  const std::uint64_t number = epoch * wanted.epoch_batches;
  if (number < wanted.number || number >= std::min(wanted.end, kFurthest)) return std::nullopt;
  return ring.attach(desk.reader(), number, true) ? std::optional(number) : std::nullopt;
}

// Another process wrote all this: it must be what the own stream would be.
Result<std::shared_ptr<LeaseDesk>> Company::read(ObjectId object, const TensorSpec& spec) {
  FORELOAD_ASSIGN(auto memory, member_->fetch(object));
  const std::span<const std::byte> bytes = memory->memory().bytes();
  FORELOAD_ASSIGN(const StreamCard card, read_card(bytes, bytes.size()));
  RingOptions expected = card_.ring;
  expected.slots = card.ring.slots;
  if (card.content != card_.content || card.ring != expected) {
    return Error{Code::kMismatch, "a stream of another job has other batches than it says"};
  }
  const int file = memory->memory().file();
  const Bytes size = card.ring_bytes();
  FORELOAD_ASSIGN(Region region, Region::map_file(file, card.ring_offset(), size, "the batches of another job"));
  FORELOAD_ASSIGN(Region view, Region::map_copy(file, card.ring_offset(), size, "the batches of another job"));
  auto ring = Ring::attach(card.ring, std::move(region));
  ring->set_view(std::move(view));
  // Batches that somebody keeps keep the memory.
  ring->set_member(
      member_->id(), &member_->control().work_signal(),
      [member = member_, kept = std::move(memory)](MemberId id) { return member->control().is_alive(id); });
  const auto reader = ring->add_reader();
  if (!reader) return Error{Code::kNoMemory, "the stream has as many readers as it can have"};
  return std::make_shared<LeaseDesk>(std::move(ring), *reader, spec, object);
}

}  // namespace foreload
