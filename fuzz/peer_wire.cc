// What agents of different hosts say to each other over arbitrary bytes: a message or nothing, and a message survives
// the way back. An answer of arbitrary messages ends every want once, and writes nothing for one that has ended; what
// it says was cut is shorter than the sample and was wanted so. A sample of whatever bytes is cut for whatever crop, or
// not. Who is greeted arbitrarily gives answers that can be sent, and welcomes the same host again. Lists of nodes are
// bounded.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "peers/answer.h"
#include "peers/cutter.h"
#include "peers/host_port.h"
#include "peers/meeting.h"
#include "peers/node_list.h"
#include "peers/wire.h"

namespace {

using foreload::FetchAnswer;
using Bytes = std::span<const std::byte>;

void demand(bool condition) {
  if (!condition) std::abort();
}

template <typename Parse>
void there_and_back(Bytes bytes, Parse parse) {
  const auto message = parse(bytes);
  if (!message || message->protocol != foreload::kPeerProtocol) return;
  const auto encoded = encode(*message);
  demand(encoded.size() <= foreload::kMostAnswerBytes &&
         std::equal(encoded.begin(), encoded.end(), bytes.begin(), bytes.end()));
  demand(parse(encoded) == *message);
}

// Messages of up to 255 bytes, each after its length, some of them cut in two.
void answer(Bytes bytes) {
  std::array<std::array<std::byte, 40>, 6> memory{};
  std::vector<foreload::PeerWant> wants;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    wants.push_back({.id = i, .into = std::span(memory[i]).first(8 * i), .token = i});
    if (i % 2 == 1) wants.back().crop = {.picture_width = 9, .picture_height = 9, .width = 3, .height = 3};
  }
  FetchAnswer subject(wants);
  std::vector<foreload::PeerEnd> ends;
  auto before = memory;
  bool fine = true;
  while (fine && bytes.size() > 1) {
    const auto length = std::to_integer<std::size_t>(bytes[0]);
    const Bytes message = bytes.subspan(1, std::min(length, bytes.size() - 1));
    bytes = bytes.subspan(1 + message.size());
    const std::size_t cut = message.size() / (1 + length % 3);
    const std::array<Bytes, 2> pieces{message.first(cut), message.subspan(cut)};
    fine = subject.take(pieces, ends);
    for (const foreload::PeerEnd& end : ends) {
      demand(end.token < memory.size());
      demand(end.cut == 0 || (end.token % 2 == 1 && end.cut < 8 * end.token));
    }
  }
  before = memory;
  const std::size_t answered = ends.size();
  subject.end(foreload::PeerResult::kUnreachable, ends);
  demand(memory == before && subject.complete());
  for (std::size_t i = 0; i < answered; ++i) demand(ends[i].result != foreload::PeerResult::kUnreachable);
  std::array<int, 6> ended{};
  for (const foreload::PeerEnd& end : ends) ++ended[end.token];
  for (const int count : ended) demand(count == 1);
}

class Bare final : public foreload::LeaseBook {
  void add(foreload::SampleId) override {}
  void drop(foreload::SampleId) override {}
};

// The first bytes are a crop, the others the sample that it is cut out of.
void cut(Bytes bytes) {
  static Bare book;
  static const foreload::Cutter cutter;
  constexpr std::size_t kHead = 12;
  if (bytes.size() < kHead) return;
  const auto number = [&](std::size_t i) {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[2 * i]) |
                                      std::to_integer<unsigned>(bytes[2 * i + 1]) << 8);
  };
  const foreload::PeerCrop crop{number(0), number(1), number(2), number(3), number(4), number(5)};
  const Bytes sample = bytes.subspan(kHead);
  foreload::PeerShelf::Taken taken{.kind = foreload::PeerShelf::Taken::Kind::kHere,
                                   .lease = foreload::Lease(&book, 1, sample),
                                   .hash = foreload::hash_bytes(sample)};
  if (cutter.cut({.id = 1, .length = sample.size(), .crop = crop}, taken)) {
    demand(crop.is_sound() && crop.is_wanted() && taken.lease.bytes().size() < sample.size());
    demand(taken.hash == foreload::hash_bytes(taken.lease.bytes()));
  }
}

void greet(Bytes bytes) {
  const auto hello = foreload::parse_hello(bytes);
  if (!hello || hello->protocol != foreload::kPeerProtocol) return;
  foreload::Meeting meeting({.nonce = 1, .hosts = 4, .job = "job", .card = {.host = 1, .name = "node-1:7433"}});
  const auto answer = meeting.greet(*hello);
  demand(foreload::parse_hello_answer(encode(answer)).has_value());
  demand(answer.refusal.empty() == (answer.cards.size() == 2));
  if (answer.refusal.empty()) demand(meeting.greet(*hello) == answer);
}

void read_lists(std::string_view text) {
  const auto names = foreload::expand_node_list(text, 100);
  demand(!names || (!names->empty() && names->size() <= 100));
  (void)foreload::count_of_node(text, 3);
  const auto address = foreload::HostPort::parse(text, 7433);
  if (address) demand(*foreload::HostPort::parse(address->text(), 0) == *address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  there_and_back(bytes, foreload::parse_fetch_request);
  there_and_back(bytes, foreload::parse_hello);
  there_and_back(bytes, foreload::parse_hello_answer);
  if (size >= foreload::kSampleFrameBytes) {
    const auto head = bytes.first<foreload::kSampleFrameBytes>();
    if (const auto frame = foreload::parse_sample_frame(head, size - foreload::kSampleFrameBytes)) {
      const auto encoded = encode(*frame);
      demand(std::equal(encoded.begin(), encoded.end(), head.begin()));
    }
  }
  answer(bytes);
  cut(bytes);
  greet(bytes);
  read_lists({reinterpret_cast<const char*>(data), size});
  return 0;
}
