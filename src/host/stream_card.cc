#include "host/stream_card.h"

#include <cstring>
#include <string>

#include "base/random.h"

namespace foreload {
namespace {

constexpr std::uint64_t kMagic = 0x3330647261434c46;  // "FLCard03"

struct CardBytes {
  std::uint64_t magic;
  std::uint64_t slots, batch, sample_bytes, ragged_element, mixes, rows;
  std::uint64_t arena, seed, positions, homes, rank, world;
  std::array<std::uint64_t, 2> content;
  std::uint64_t desk, fingerprint, validators, roster;
  std::uint64_t dtype, layout, decode;
  std::uint64_t limit_bytes, limit_pixels, limit_scans, limit_replacements;
  std::uint64_t text;  // bytes of the chain's text, which follows
};
constexpr std::size_t kMostText = StreamCard::kBytes - sizeof(CardBytes);

// So large that nothing computed from them overflows.
constexpr std::uint64_t kMostSlots = 64;
constexpr std::uint64_t kMostBatch = 1ull << 32;
constexpr std::uint64_t kMostBytes = 1ull << 46;

Error bad_card() {
  return {Code::kInvalid, "what stands at the beginning of a stream's shared memory is no description of a stream"};
}

}  // namespace

ObjectKey arena_key(const PeerKey& peers) {
  const std::uint64_t plan = peers.roster == 0 ? 0 : mix64(peers.roster);
  return {ObjectKey::Kind::kArena, peers.fingerprint, peers.validators ^ plan};
}

ObjectKey disks_key(const PeerKey& peers) {
  ObjectKey key = arena_key(peers);
  key.kind = ObjectKey::Kind::kDisks;
  return key;
}

Status write_card(const StreamCard& card, std::span<std::byte> into) {
  const std::string text = chain_text(card.chain.transforms);
  if (text.size() > kMostText) return Error{Code::kInvalid, "the chain is too long to be shared with other processes"};
  const CardBytes bytes{.magic = kMagic,
                        .slots = card.ring.slots,
                        .batch = card.ring.batch,
                        .sample_bytes = card.ring.sample_bytes,
                        .ragged_element = card.ring.ragged_element,
                        .mixes = card.ring.mixes,
                        .rows = card.ring.rows,
                        .arena = card.arena,
                        .seed = card.seed,
                        .positions = card.positions,
                        .homes = card.homes,
                        .rank = card.rank,
                        .world = card.world,
                        .content = card.content,
                        .desk = card.desk,
                        .fingerprint = card.peers.fingerprint,
                        .validators = card.peers.validators,
                        .roster = card.peers.roster,
                        .dtype = static_cast<std::uint64_t>(card.chain.dtype),
                        .layout = static_cast<std::uint64_t>(card.chain.layout),
                        .decode = static_cast<std::uint64_t>(card.chain.decode),
                        .limit_bytes = card.chain.limits.sample_bytes,
                        .limit_pixels = card.chain.limits.pixels,
                        .limit_scans = card.chain.limits.scans,
                        .limit_replacements = card.chain.limits.replacements,
                        .text = text.size()};
  std::memcpy(into.data(), &bytes, sizeof(bytes));
  std::memcpy(into.data() + sizeof(bytes), text.data(), text.size());
  return {};
}

Result<StreamCard> read_card(std::span<const std::byte> from, Bytes region) {
  CardBytes bytes{};  // a copy: its writer may change it at any time
  if (from.size() < StreamCard::kBytes || region > kMostBytes) return bad_card();
  std::memcpy(&bytes, from.data(), sizeof(bytes));
  if (bytes.magic != kMagic || bytes.slots == 0 || bytes.slots > kMostSlots || bytes.batch == 0 ||
      bytes.batch > kMostBatch || bytes.sample_bytes > kMostBytes / bytes.batch / kMostSlots || bytes.arena > region ||
      bytes.arena % 4096 != 0 || bytes.desk > region || bytes.desk % 4096 != 0 || bytes.ragged_element > 64 ||
      bytes.text > kMostText || bytes.dtype > static_cast<std::uint64_t>(DType::kF64) || bytes.layout > 1 ||
      bytes.decode > 1) {
    return bad_card();
  }
  const std::string text(reinterpret_cast<const char*>(from.data()) + sizeof(bytes), bytes.text);
  StreamCard card{.ring = {.slots = static_cast<unsigned>(bytes.slots),
                           .batch = bytes.batch,
                           .sample_bytes = bytes.sample_bytes,
                           .ragged_element = bytes.ragged_element,
                           .mixes = bytes.mixes != 0,
                           .rows = bytes.rows != 0},
                  .arena = bytes.arena,
                  .seed = bytes.seed,
                  .positions = bytes.positions,
                  .homes = bytes.homes,
                  .rank = static_cast<std::uint32_t>(bytes.rank),
                  .world = static_cast<std::uint32_t>(bytes.world),
                  .content = bytes.content,
                  .desk = bytes.desk,
                  .peers = {bytes.fingerprint, bytes.validators, bytes.roster},
                  .chain = {.dtype = static_cast<DType>(bytes.dtype),
                            .layout = static_cast<Layout>(bytes.layout),
                            .limits = {.sample_bytes = bytes.limit_bytes,
                                       .pixels = bytes.limit_pixels,
                                       .scans = static_cast<std::uint32_t>(bytes.limit_scans),
                                       .replacements = bytes.limit_replacements},
                            .decode = static_cast<Decode>(bytes.decode)}};
  if (card.region_bytes() != region) return bad_card();
  FORELOAD_ASSIGN(card.chain.transforms, parse_chain(text));
  return card;
}

}  // namespace foreload
