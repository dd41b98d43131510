// A name in the text:  shared (1–2 bytes)  rest (1–2 bytes)  rest × byte
// Lengths below 128 take one byte; others two, the first with its top bit set. The first name of a block shares
// nothing, so decoding can begin at any block.
#include "source/name_table.h"

#include <algorithm>

#include "base/check.h"

namespace foreload {

bool NameTable::length_at(std::uint64_t& place, std::uint64_t& length) const {
  if (place >= text_.size()) return false;
  length = std::to_integer<std::uint64_t>(text_[place++]);
  if (length < 128) return true;
  if (place >= text_.size()) return false;
  length = (length & 127) | std::to_integer<std::uint64_t>(text_[place++]) << 7;
  return length <= kMaxNameLength;
}

bool NameTable::decode(std::uint64_t& place, std::string& name) const {
  std::uint64_t shared = 0;
  std::uint64_t rest = 0;
  if (!length_at(place, shared) || !length_at(place, rest)) return false;
  if (shared > name.size() || rest > text_.size() - place || shared + rest > kMaxNameLength) return false;
  name.resize(shared);
  name.append(reinterpret_cast<const char*>(text_.data() + place), rest);
  place += rest;
  return true;
}

std::string NameTable::at(std::uint64_t i) const {
  std::string name;
  auto place = static_cast<std::uint64_t>(blocks_[i / kNamesPerBlock]);
  for (std::uint64_t k = 0; k <= i % kNamesPerBlock; ++k) {
    if (!decode(place, name)) return {};
  }
  return name;
}

bool NameTable::verify(const std::function<bool(std::string_view)>& accept) const {
  // Each name takes two bytes at least: bounds the loop by the size of the file.
  if (count_ > text_.size() / 2 || blocks_.size() != (count_ + kNamesPerBlock - 1) / kNamesPerBlock) return false;
  std::string name;
  std::uint64_t place = 0;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (i % kNamesPerBlock == 0) {
      name.clear();
      if (static_cast<std::uint64_t>(blocks_[i / kNamesPerBlock]) != place) return false;
    }
    if (!decode(place, name) || !accept(name)) return false;
  }
  return place == text_.size();
}

void NameTableBuilder::add_length(std::uint64_t length) {
  if (length < 128) {
    text_.push_back(static_cast<std::byte>(length));
    return;
  }
  text_.push_back(static_cast<std::byte>(length & 127) | std::byte{128});
  text_.push_back(static_cast<std::byte>(length >> 7));
}

void NameTableBuilder::add(std::string_view name) {
  FORELOAD_CHECK(name.size() <= kMaxNameLength, "sources refuse longer names");
  std::size_t shared = 0;
  if (count_ % kNamesPerBlock == 0) {
    blocks_.push_back(static_cast<std::int64_t>(text_.size()));
  } else {
    const std::size_t most = std::min(previous_.size(), name.size());
    while (shared < most && previous_[shared] == name[shared]) ++shared;
  }
  add_length(shared);
  add_length(name.size() - shared);
  const auto rest = std::as_bytes(std::span(name.substr(shared)));
  text_.insert(text_.end(), rest.begin(), rest.end());
  previous_ = name;
  ++count_;
}

}  // namespace foreload
