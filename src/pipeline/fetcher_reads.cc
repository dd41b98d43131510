// The fetcher's reads: from where a sample comes, how much of it is read, and what is read although nobody needs it
// yet. All are the pacer's decisions; here they are asked for, carried out and recorded.
#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "pipeline/fetcher.h"
#include "policy/replay.h"
#include "prep/row_hint.h"

namespace foreload {
namespace {

constexpr int kConsideredAtOnce = 512;  // positions, between two looks at what arrived

}  // namespace

void Fetcher::start_reads(Time now) {
  for (const Origin origin : {Origin::kDisk, Origin::kPeer, Origin::kSource}) start_reads_of(origin, now);
}

void Fetcher::start_reads_of(Origin origin, Time now) {
  while (pacer_.may_start(origin, parts_.tiers.in_flight(origin))) {
    const auto started = parts_.tiers.start_next(origin, now);
    if (!started) return;
    record({.time = now,
            .kind = EventKind::kReadStarted,
            .a = started->id,
            .b = started->length,
            .c = ReadFields{started->origin, origin, started->fill, started->in_flight}.pack()});
  }
}

// Where the sample would be read.
Origin Fetcher::route(SampleId id, std::uint64_t number, Time now) {
  const Origin nearer = parts_.tiers.nearest(id);
  if (nearer == Origin::kSource) return nearer;
  const std::uint64_t left = number + parts_.ring.slots() - std::min(next_open_, number + parts_.ring.slots());
  const Bytes length = parts_.source.length(id);
  const Origin chosen = pacer_.route(now, nearer, length, left);
  record({.time = now,
          .kind = EventKind::kRouted,
          .a = id,
          .b = length,
          .c = left << 16 | static_cast<std::uint64_t>(nearer) << 8 | static_cast<std::uint64_t>(chosen)});
  return chosen;
}

// What is enough of a crop-addressable sample that is not kept, where the way to it is so slow that it pays.
std::optional<PartialRead> Fetcher::part_of(SampleId id, Origin from, const PrepKey& key, Time now) {
  const bool is_peer = from == Origin::kPeer;
  if (!foresight_ || parts_.tiers.keeps(id)) return std::nullopt;
  if (!is_peer && (from != Origin::kSource || !pacer_.parts_may_pay())) return std::nullopt;
  const auto size = parts_.source.dimensions(id);
  if (parts_.source.rows(id).empty() || !size) return std::nullopt;
  const auto box = foresight_->box(*size, key);
  if (!box) return std::nullopt;
  const auto part = is_peer ? cut_of(id, *box) : rows_of(id, *box);
  if (!part) return std::nullopt;
  const Bytes length = parts_.source.length(id);
  const bool pays = pacer_.part_pays(from, length, part->bytes());
  record({.time = now,
          .kind = EventKind::kPart,
          .a = length,
          .b = part->bytes(),
          .c = static_cast<std::uint64_t>(from) << 8 | (pays ? 1u : 0u)});
  return pays ? part : std::nullopt;
}

// Of storage: the header and the rows of the crop.
std::optional<PartialRead> Fetcher::rows_of(SampleId id, const Box& box) const {
  constexpr unsigned kReadsOfAPart = 2;
  const auto offsets = parts_.source.rows(id);
  if (offsets.size() > parts_.ring.most_rows() || parts_.tiers.max_depth() < kReadsOfAPart) return std::nullopt;
  const Dimensions size = *parts_.source.dimensions(id);
  const auto rows = rows_around(offsets, size, {box.y, std::int64_t{box.y} + box.height});
  const Bytes length = parts_.source.length(id);
  if (!rows || !rows->is_partial() || offsets.back() + Bytes{2} > length) return std::nullopt;
  // The marker behind the last row is looked at, too.
  const Bytes end = std::min(Bytes{offsets[rows->end]} + 2, length);
  return PartialRead{.parts = {SamplePart{0, offsets[0]}, SamplePart{offsets[rows->first], end - offsets[rows->first]}},
                     .first_row = rows->first,
                     .end_row = rows->end};
}

// Of another host: what it cuts out for the crop. How long that is follows about from the share of the picture, with
// what MCUs and their runs have beside the box.
std::optional<PartialRead> Fetcher::cut_of(SampleId id, const Box& box) const {
  constexpr Bytes kBeside = 32;  // pixels, of a side
  const Dimensions size = *parts_.source.dimensions(id);
  if (!PeerCrop::fits(size)) return std::nullopt;
  const auto number = [](std::uint32_t pixels) { return static_cast<std::uint16_t>(pixels); };
  const PeerCrop crop{.picture_width = number(size.width),
                      .picture_height = number(size.height),
                      .x = number(box.x),
                      .y = number(box.y),
                      .width = number(box.width),
                      .height = number(box.height)};
  const Bytes length = parts_.source.length(id);
  const Bytes header = std::min(Bytes{parts_.source.rows(id)[0]}, length);
  const Bytes wide = std::min(box.width + kBeside, Bytes{size.width});
  const Bytes high = std::min(box.height + kBeside / 2, Bytes{size.height});
  const auto share = static_cast<double>(wide * high) / static_cast<double>(Bytes{size.width} * size.height);
  return PartialRead{.crop = crop,
                     .expected = header + static_cast<Bytes>(share * static_cast<double>(length - header))};
}

// Homes that stand empty are filled in the order in which they will be needed, at most an epoch ahead.
void Fetcher::fill(Time now) {
  fill_more_ = fill_later_ = false;
  if (!parts_.tiers.keeps_anything()) {
    parts_.filling.done = true;
    return;
  }
  if (fill_number_ < ask_number_) {
    fill_number_ = ask_number_;
    fill_index_ = 0;
  }
  const std::uint64_t end = ask_number_ + parts_.stream.assignment().batches_per_epoch();
  for (int i = 0; i < kConsideredAtOnce; ++i) {
    if (fill_number_ >= end || !parts_.stream.has(fill_number_)) {
      if (!fill_for_others(now)) return;
      if (parts_.tiers.is_idle()) parts_.filling.done = true;
      return;
    }
    if (fill_index_ == parts_.stream.batch(fill_number_).count) {
      ++fill_number_;
      fill_index_ = 0;
    } else if (fill_next(now)) {
      ++fill_index_;
    } else {
      return;
    }
  }
  fill_more_ = true;
}

// What the batch will have to be read, by where it is.
void Fetcher::look_over(Ahead& batch) {
  if (parts_.filling.done) return;
  for (std::uint64_t i = 0; i < batch.plan.count; ++i) {
    const SampleId id = parts_.stream.sample(batch.plan, i);
    if (const auto origin = parts_.tiers.whereabouts(id)) {
      batch.lacked[static_cast<std::size_t>(*origin)] += parts_.source.length(id);
    }
  }
}

// What the batch still needs from the origin: what was asked for, and its part of what was not.
Bytes Fetcher::lacking(const Ahead& batch, Origin origin) const {
  const Bytes flying = batch.flying[static_cast<std::size_t>(origin)];
  const Bytes lacked = batch.lacked[static_cast<std::size_t>(origin)];
  if (batch.plan.number < ask_number_ || batch.plan.count == 0) return flying;
  if (batch.plan.number > ask_number_) return flying + lacked;
  return flying + lacked / batch.plan.count * (batch.plan.count - ask_index_);
}

// What suffers first when something is read that nobody needs yet, as far as is looked ahead.
Need Fetcher::tightest(Origin origin, Time now) {
  if (parts_.only_fill) return {.left = Need::kNobody};
  const std::uint64_t learner = next_open_ - std::min<std::uint64_t>(next_open_, parts_.ring.slots());
  const std::uint64_t first = ahead_.empty() ? std::min(ask_number_, next_open_) : ahead_.front().plan.number;
  lacking_.clear();
  for (std::uint64_t number = learner; number < next_open_ + pacer_.lookahead_batches(); ++number) {
    const bool is_ahead = number >= first && parts_.stream.has(number);  // the others are complete, or do not exist
    lacking_.push_back(is_ahead ? lacking(ahead(number), origin) : 0);
  }
  return pacer_.tightest(now, origin, lacking_, parts_.tiers.filling(origin));
}

// False: not now.
bool Fetcher::fill_next(Time now) {
  const SampleId id = parts_.stream.sample(parts_.stream.batch(fill_number_), fill_index_);
  if (refuse(id) || !parts_.tiers.lacks(id)) return true;
  // What the stream asks for soon, and only the disk keeps, is left to it: it would take the stream's room.
  const bool far = !parts_.only_fill && fill_number_ >= next_open_ + pacer_.lookahead_batches();
  if (!far && !parts_.only_fill && !parts_.tiers.has_home(id)) return true;
  return fill_home(id, far, now);
}

// What is at home here, and only other hosts need: they may have found nobody here when they first did.
bool Fetcher::fill_for_others(Time now) {
  if (!parts_.tiers.has_peers()) return true;
  for (int i = 0; i < kConsideredAtOnce && fill_id_ < parts_.source.size(); ++i) {
    const bool kept = !refuse(fill_id_) && parts_.tiers.is_kept_here(fill_id_);
    if (kept && !parts_.tiers.write_home(fill_id_)) {
      fill_later_ = true;
      return false;
    }
    const bool lacks = kept && parts_.tiers.lacks(fill_id_);
    if (lacks && !fill_home(fill_id_, false, now)) return false;
    if (lacks && parts_.tiers.lacks(fill_id_)) {  // another process is at it, or its home has no memory yet
      fill_later_ = true;
      return false;
    }
    ++fill_id_;
  }
  fill_more_ = fill_id_ < parts_.source.size();
  return !fill_more_;
}

// False: not now.
bool Fetcher::fill_home(SampleId id, bool far, Time now) {
  const Origin from = parts_.tiers.nearest(id);
  if (!pacer_.may_fill(from, parts_.tiers.in_flight(from), parts_.tiers.waiting(from))) return false;
  const Bytes length = parts_.source.length(id);
  const Need need = tightest(from, now);
  if (!pacer_.has_time(now, from, length, need)) {
    fill_later_ = true;
    return false;
  }
  const Ask answer = parts_.tiers.request({.id = id, .from = from, .fill = true, .far = far}, now).kind;
  // One that is longer than its range never finds room.
  if (answer == Ask::kElsewhere) return true;
  if (answer != Ask::kQueued) return answer == Ask::kNoRoom && parts_.tiers.is_idle();
  pacer_.on_asked(from, length);
  record({.time = now,
          .kind = EventKind::kAsked,
          .position = need.bytes,
          .a = id,
          .b = length,
          .c = need.left << 16 | std::uint64_t{1} << 8 | static_cast<std::uint64_t>(from)});
  start_reads_of(from, now);
  return true;
}

// What another process reads is here soon. If that process is gone, its flight becomes ours; if it is slow or stopped,
// the sample is read a second time, to another place. Room is given in the order of need here, too.
void Fetcher::ask_elsewhere(Time now) {
  constexpr Duration kPatience = std::chrono::milliseconds(300);
  std::vector<Elsewhere> asked = std::exchange(elsewhere_, {});
  overdue_ = false;
  std::erase_if(asked, [&](const Elsewhere& sample) {
    return !overdue_ && ask_elsewhere(sample.waiter, sample.id, now - sample.since > kPatience, now);
  });
  elsewhere_.insert(elsewhere_.begin(), asked.begin(), asked.end());
}

// False: still elsewhere, or there is no room.
bool Fetcher::ask_elsewhere(const Waiter& waiter, SampleId id, bool late, Time now) {
  if (auto error = refuse(id)) {
    settle(waiter, {.id = id, .attempt = waiter.attempt, .error = std::move(error)}, now);
    return true;
  }
  const Bytes length = parts_.source.length(id);
  const Origin from = parts_.tiers.nearest(id);
  // The urgent range is left soon only by samples whose batch has a slot.
  const bool urgent = late && (waiter.slot || waiter.number < next_open_);
  Answer answer = request({.id = id, .from = from, .urgent = urgent, .alone = late}, now);
  switch (answer.kind) {
    case Ask::kHit:
      account(waiter, {.memory = length});
      settle(waiter, {.id = id, .attempt = waiter.attempt, .lease = std::move(answer.lease)}, now);
      return true;
    case Ask::kQueued:
      pacer_.on_asked(from, length);
      record({.time = now, .kind = EventKind::kAsked, .a = id, .b = length, .c = static_cast<std::uint64_t>(from)});
      waiters_[id].push_back(waiter);
      return true;
    case Ask::kJoined:
      if (!answer.first) account(waiter, {.memory = length});
      waiters_[id].push_back(waiter);
      return true;
    default:
      overdue_ = answer.kind == Ask::kNoRoom;
      return false;
  }
}

// What is at home here and others need before anybody here does. Who asks waits for it, but not for long.
void Fetcher::ask_wanted(Time now) {
  constexpr std::size_t kAtOnce = 64;
  constexpr Duration kPatience = std::chrono::seconds(1);
  while (wanted_.size() < kAtOnce) {
    const auto id = parts_.tiers.take_wanted();
    if (!id) break;
    wanted_.push_back({*id, now});
  }
  std::erase_if(wanted_,
                [&](const Wanted& wanted) { return now - wanted.since > kPatience || ask_wanted(wanted.id, now); });
}

// False: not now.
bool Fetcher::ask_wanted(SampleId id, Time now) {
  if (id >= parts_.source.size() || refuse(id) || !parts_.tiers.lacks(id)) return true;
  const Origin from = parts_.tiers.on_disk(id) ? Origin::kDisk : Origin::kSource;
  // What only the disk keeps goes there through the room for that.
  const bool far = !parts_.tiers.has_home(id);
  const Request wanted{.id = id, .from = from, .urgent = true, .fill = true, .far = far};
  if (parts_.tiers.request(wanted, now).kind != Ask::kQueued) return false;
  const Bytes length = parts_.source.length(id);
  pacer_.on_asked(from, length);
  record({.time = now, .kind = EventKind::kAsked, .a = id, .b = length, .c = static_cast<std::uint64_t>(from)});
  return true;
}

void Fetcher::ask_completions(Time now) {
  std::erase_if(pending_completions_, [&](Incomplete& sample) {
    const SampleId id = sample.work.id;
    if (!parts_.tiers.complete(id, sample.work.lease, now)) return false;
    const Bytes length = parts_.source.length(id);
    pacer_.on_asked(Origin::kSource, length);
    record({.time = now, .kind = EventKind::kAsked, .a = id, .b = length});
    waiters_[id].push_back({.index = sample.item.index, .attempt = sample.work.attempt, .slot = sample.item.slot});
    return true;
  });
}

// Tells the pacer, and the record what it made of it.
void Fetcher::record_read(const Arrival& arrival, Time now) {
  // Many may end at once: what counts is how many there were while this thread waited.
  const unsigned flying = flying_[static_cast<std::size_t>(arrival.origin)];
  const ReadEnd read{.origin = arrival.origin,
                     .asked = arrival.asked,
                     .bytes = arrival.length,
                     .took = arrival.took,
                     .in_flight = flying - std::min(flying, 1u)};
  const bool changed = pacer_.on_read_done(now, read);
  if (parts_.record == nullptr) return;
  record({.time = now,
          .kind = EventKind::kReadDone,
          .position = ReadFields{arrival.origin, arrival.asked, arrival.fill, read.in_flight}.pack(),
          .a = arrival.id,
          .b = arrival.length,
          .c = static_cast<std::uint64_t>(arrival.took.count())});
  if (arrival.retries > 0) {
    record({.time = now, .kind = EventKind::kReadRetried, .a = arrival.id, .b = arrival.retries});
  }
  if (arrival.dropped) {
    record({.time = now, .kind = EventKind::kDiskDropped, .a = arrival.id, .b = arrival.length});
  }
  if (changed) {
    const auto rate = static_cast<std::uint64_t>(pacer_.bytes_per_second(arrival.origin));
    record({.time = now,
            .kind = EventKind::kDepth,
            .a = pacer_.depth(arrival.origin),
            .b = rate,
            .c = static_cast<std::uint64_t>(arrival.origin)});
  }
}

}  // namespace foreload
