// Head:          magic u32 | protocol u16 | kind u16
// FetchRequest:  head | fingerprint u64 | validators u64 | roster u64 | count u32 | items …
// Hello:         head | nonce u64 | hosts u32 | job | card
// HelloAnswer:   head | nonce u64 | refusal | count u32 | card …
// SampleFrame:   index u32 | result u8 | cut u8 | 0 u16 | length u64 | offset u64 | xxh3 u64 | the part
// item:          id u64 | length u64 | crop: width, height of the picture, x, y, width, height u16; all of it: 0
// card:          host u32 | learners u32 | memory u64 | disk u64 | name         text: length u16 | bytes
#include "peers/wire.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace foreload {
namespace {

constexpr std::uint32_t kMagic = 0x704c4f46;  // "FOLp"
constexpr std::size_t kItemBytes = sizeof(SampleId) + sizeof(Bytes) + 6 * sizeof(std::uint16_t);
constexpr unsigned kCutShift = 8;
enum class Kind : std::uint16_t { kFetch = 1, kHello = 2, kAnswer = 3 };

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

class Writer {
 public:
  explicit Writer(Kind kind, std::uint16_t protocol) {
    put(kMagic);
    put(protocol);
    put(static_cast<std::uint16_t>(kind));
  }
  Writer() = default;

  template <typename T>
  void put(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  // What others said may stand in it, so it is not trusted to be short.
  void put_text(std::string_view text) {
    text = text.substr(0, kLongestPeerText);
    put(static_cast<std::uint16_t>(text.size()));
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(is_control(c) ? '?' : c));
  }
  void put_card(const PeerCard& card) {
    put(card.host);
    put(card.learners);
    put(card.memory);
    put(card.disk);
    put_text(card.name);
  }
  void put_crop(const PeerCrop& crop) {
    for (const std::uint16_t number :
         {crop.picture_width, crop.picture_height, crop.x, crop.y, crop.width, crop.height}) {
      put(number);
    }
  }
  void reserve(std::size_t more) { bytes_.reserve(bytes_.size() + more); }
  std::vector<std::byte> take() && { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Whatever is asked of it beyond the end is 0 or empty, and is remembered.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_unsigned_v<T>);
    const auto bytes = take_bytes(sizeof(T));
    T value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value = static_cast<T>(value | static_cast<T>(std::to_integer<T>(bytes[i]) << (8 * i)));
    }
    return value;
  }
  std::string take_text() {
    const auto bytes = take_bytes(take<std::uint16_t>());
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    failed_ = failed_ || !is_peer_text(text);
    return text;
  }
  PeerCard take_card() {
    PeerCard card;
    card.host = take<HostIndex>();
    card.learners = take<std::uint32_t>();
    card.memory = take<Bytes>();
    card.disk = take<Bytes>();
    card.name = take_text();
    return card;
  }
  PeerCrop take_crop() {
    PeerCrop crop;
    for (std::uint16_t* number :
         {&crop.picture_width, &crop.picture_height, &crop.x, &crop.y, &crop.width, &crop.height}) {
      *number = take<std::uint16_t>();
    }
    failed_ = failed_ || !crop.is_sound();
    return crop;
  }
  bool failed() const { return failed_; }
  std::size_t left() const { return rest_.size(); }
  // All was there, and nothing more.
  bool ended_well() const { return !failed_ && rest_.empty(); }

 private:
  std::span<const std::byte> take_bytes(std::size_t count) {
    failed_ = failed_ || count > rest_.size();
    if (failed_) return {};
    const auto bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  std::span<const std::byte> rest_;
  bool failed_ = false;
};

// Of a message of that kind, or of any message of another version. Nothing: neither.
std::optional<std::uint16_t> take_head(Reader& reader, Kind kind) {
  const bool ours = reader.take<std::uint32_t>() == kMagic;
  const auto protocol = reader.take<std::uint16_t>();
  const auto found = reader.take<std::uint16_t>();
  if (reader.failed() || !ours) return std::nullopt;
  if (protocol == kPeerProtocol && found != static_cast<std::uint16_t>(kind)) return std::nullopt;
  return protocol;
}

}  // namespace

bool is_peer_text(std::string_view text) {
  return text.size() <= kLongestPeerText && std::none_of(text.begin(), text.end(), is_control);
}

std::vector<std::byte> encode(const FetchRequest& request) {
  FORELOAD_CHECK(request.items.size() <= kMostItems, "a request is divided before it is sent");
  Writer writer(Kind::kFetch, request.protocol);
  writer.put(request.key.fingerprint);
  writer.put(request.key.validators);
  writer.put(request.key.roster);
  writer.put(static_cast<std::uint32_t>(request.items.size()));
  writer.reserve(request.items.size() * kItemBytes);
  for (const PeerItem& item : request.items) {
    writer.put(item.id);
    writer.put(item.length);
    FORELOAD_CHECK(item.crop.is_sound(), "a crop lies in its picture");
    writer.put_crop(item.crop);
  }
  return std::move(writer).take();
}

std::vector<std::byte> encode(const Hello& hello) {
  Writer writer(Kind::kHello, hello.protocol);
  writer.put(hello.nonce);
  writer.put(hello.hosts);
  writer.put_text(hello.job);
  writer.put_card(hello.card);
  return std::move(writer).take();
}

std::vector<std::byte> encode(const HelloAnswer& answer) {
  FORELOAD_CHECK(answer.cards.size() <= kMostPeerCards, "a roster is bounded");
  Writer writer(Kind::kAnswer, answer.protocol);
  writer.put(answer.nonce);
  writer.put_text(answer.refusal);
  writer.put(static_cast<std::uint32_t>(answer.cards.size()));
  for (const PeerCard& card : answer.cards) writer.put_card(card);
  return std::move(writer).take();
}

std::array<std::byte, kSampleFrameBytes> encode(const SampleFrame& frame) {
  Writer writer;
  writer.reserve(kSampleFrameBytes);
  writer.put(frame.index);
  writer.put(static_cast<std::uint32_t>(frame.result) | std::uint32_t{frame.is_cut} << kCutShift);
  writer.put(frame.length);
  writer.put(frame.offset);
  writer.put(frame.hash);
  std::array<std::byte, kSampleFrameBytes> bytes;
  const auto written = std::move(writer).take();
  std::copy(written.begin(), written.end(), bytes.begin());
  return bytes;
}

std::optional<FetchRequest> parse_fetch_request(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto protocol = take_head(reader, Kind::kFetch);
  if (!protocol) return std::nullopt;
  if (*protocol != kPeerProtocol) return FetchRequest{.protocol = *protocol};
  FetchRequest request;
  request.key.fingerprint = reader.take<std::uint64_t>();
  request.key.validators = reader.take<std::uint64_t>();
  request.key.roster = reader.take<std::uint64_t>();
  const std::size_t count = reader.take<std::uint32_t>();
  // Memory is taken only for what is really there.
  if (reader.failed() || count > kMostItems || reader.left() != count * kItemBytes) return std::nullopt;
  request.items.resize(count);
  for (PeerItem& item : request.items) {
    item.id = reader.take<SampleId>();
    item.length = reader.take<Bytes>();
    item.crop = reader.take_crop();
  }
  if (!reader.ended_well()) return std::nullopt;
  return request;
}

std::optional<Hello> parse_hello(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto protocol = take_head(reader, Kind::kHello);
  if (!protocol) return std::nullopt;
  if (*protocol != kPeerProtocol) return Hello{.protocol = *protocol};
  Hello hello;
  hello.nonce = reader.take<std::uint64_t>();
  hello.hosts = reader.take<std::uint32_t>();
  hello.job = reader.take_text();
  hello.card = reader.take_card();
  if (!reader.ended_well()) return std::nullopt;
  return hello;
}

std::optional<HelloAnswer> parse_hello_answer(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const auto protocol = take_head(reader, Kind::kAnswer);
  if (!protocol) return std::nullopt;
  if (*protocol != kPeerProtocol) return HelloAnswer{.protocol = *protocol};
  HelloAnswer answer;
  answer.nonce = reader.take<std::uint64_t>();
  answer.refusal = reader.take_text();
  const std::size_t count = reader.take<std::uint32_t>();
  if (count > kMostPeerCards) return std::nullopt;
  for (std::size_t i = 0; i < count && !reader.failed(); ++i) answer.cards.push_back(reader.take_card());
  if (!reader.ended_well()) return std::nullopt;
  return answer;
}

std::optional<SampleFrame> parse_sample_frame(std::span<const std::byte, kSampleFrameBytes> bytes, Bytes part) {
  Reader reader(bytes);
  SampleFrame frame;
  frame.index = reader.take<std::uint32_t>();
  const auto flags = reader.take<std::uint32_t>();
  const auto result = flags & ((1u << kCutShift) - 1);
  frame.is_cut = flags >> kCutShift == 1;
  frame.length = reader.take<Bytes>();
  frame.offset = reader.take<Bytes>();
  frame.hash = reader.take<std::uint64_t>();
  if (result == static_cast<std::uint32_t>(PeerResult::kAbsent)) {
    const bool empty = flags == result && frame.length == 0 && frame.offset == 0 && frame.hash == 0 && part == 0;
    return empty ? std::optional(frame) : std::nullopt;
  }
  if (result != static_cast<std::uint32_t>(PeerResult::kHere) || flags >> kCutShift > 1) return std::nullopt;
  if (frame.is_cut && frame.length == 0) return std::nullopt;
  frame.result = PeerResult::kHere;
  const bool first = frame.offset == 0;
  const bool inside = frame.offset < frame.length && frame.offset % kPartBytes == 0;
  if (!first && !inside) return std::nullopt;
  if (part != std::min(kPartBytes, frame.length - frame.offset)) return std::nullopt;
  return frame;
}

}  // namespace foreload
