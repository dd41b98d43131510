// NameTable: a list of strings, front-coded in blocks of 16: each name is stored as how much it shares with the one
// before it, and the rest. Sorted names of one folder take about a third of their plain size. Reading a name
// decodes at most one block. The bytes are untrusted: every length is checked, at each access.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "source/packed.h"

namespace foreload {

inline constexpr std::uint64_t kNamesPerBlock = 16;
inline constexpr std::size_t kMaxNameLength = 4096;

class NameTable {
 public:
  NameTable() = default;
  // `blocks`: where each block begins in `text`.
  NameTable(std::uint64_t count, Packed blocks, std::span<const std::byte> text)
      : count_(count), blocks_(blocks), text_(text) {}

  std::uint64_t size() const { return count_; }
  // The i-th name; empty if the table is damaged. REQUIRES: i < size().
  std::string at(std::uint64_t i) const;
  // Decodes everything; true if all of it is well-formed and `accept` says yes to every name.
  bool verify(const std::function<bool(std::string_view)>& accept) const;

 private:
  bool decode(std::uint64_t& place, std::string& name) const;
  bool length_at(std::uint64_t& place, std::uint64_t& length) const;

  std::uint64_t count_ = 0;
  Packed blocks_;
  std::span<const std::byte> text_;
};

class NameTableBuilder {
 public:
  // REQUIRES: name.size() ≤ kMaxNameLength.
  void add(std::string_view name);
  std::uint64_t size() const { return count_; }
  const std::vector<std::int64_t>& blocks() const { return blocks_; }
  std::span<const std::byte> text() const { return text_; }

 private:
  void add_length(std::uint64_t length);

  std::uint64_t count_ = 0;
  std::string previous_;
  std::vector<std::int64_t> blocks_;
  std::vector<std::byte> text_;
};

}  // namespace foreload
