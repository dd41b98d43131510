// For tests of sources: opening with everything that was said, tar archives made by hand, by tar and by Python.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/test_folder.h"
#include "foreload/source.h"
#include "source/tar_reader.h"

namespace foreload {

// The result of one open_source, and what it told on the way.
struct Opening {
  Result<std::unique_ptr<Source>> result = Error{};
  std::vector<std::string> warnings;
  std::uint64_t progress_calls = 0;  // 0: nothing was scanned

  const Source& source() const { return **result; }
  bool warned_of(std::string_view text) const {
    for (const std::string& line : warnings) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

inline Opening open_with(SourceOptions options) {
  Opening opening;
  options.warn = [&](const std::string& line) { opening.warnings.push_back(line); };
  options.progress = [&](std::uint64_t, std::uint64_t) { ++opening.progress_calls; };
  opening.result = open_source(options);
  if (!opening.result.ok()) opening.warnings.push_back("error: " + opening.result.error().message);
  return opening;
}

inline Opening open_at(const std::string& uri) {
  SourceOptions options;
  options.datasets = {uri};
  return open_with(std::move(options));
}

inline std::vector<std::string> keys_of(const Source& source) {
  std::vector<std::string> keys;
  for (SampleId id = 0; id < source.size(); ++id) keys.push_back(source.key(id));
  return keys;
}

inline std::vector<std::int64_t> labels_of(const Source& source) {
  std::vector<std::int64_t> labels;
  for (SampleId id = 0; id < source.size(); ++id) labels.push_back(source.label(id));
  return labels;
}

// The bytes of a sample, read where locate() says they are.
inline std::string bytes_of(const Source& source, SampleId id) {
  const Extent extent = source.locate(id);
  auto file = open_below(extent.root, extent.path);
  if (!file.ok()) return "error: " + file.error().message;
  std::string bytes(extent.length, '\0');
  const ssize_t got = pread(file->get(), bytes.data(), bytes.size(), static_cast<off_t>(extent.offset));
  return got == static_cast<ssize_t>(bytes.size()) ? bytes : "error: short";
}

inline std::vector<std::string> index_files(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().rfind(".foreload-index-", 0) == 0) found.push_back(entry.path().string());
  }
  return found;
}

inline void run(const std::string& command) {
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

// --- tar archives by hand

constexpr std::size_t kTarBlock = 512;

inline void set_checksum(std::string& header) {
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
}

inline std::string tar_header(std::string_view name, std::uint64_t size, char type = '0') {
  std::string header(kTarBlock, '\0');
  name.copy(header.data(), 100);
  std::memcpy(header.data() + 100, "0000644", 7);
  fmt::format("{:011o}", size).copy(header.data() + 124, 12);
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  set_checksum(header);
  return header;
}

inline std::string padded(std::string_view content) {
  std::string blocks(content);
  blocks.resize((content.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  return blocks;
}

inline std::string tar_entry(std::string_view name, std::string_view content, char type = '0') {
  return tar_header(name, content.size(), type) + padded(content);
}

inline std::string tar_end() {
  return std::string(2 * kTarBlock, '\0');
}

inline std::string pax_record(const std::string& key, std::string_view value) {
  const std::size_t body = key.size() + value.size() + 3;  // blank, "=", newline
  std::size_t length = body + 1;
  while (std::to_string(length).size() + body != length) ++length;
  return std::to_string(length) + " " + key + "=" + std::string(value) + "\n";
}

inline ReadAt reader_over(const std::string& archive) {
  return [&archive](Bytes offset, std::span<std::byte> into) -> Result<std::size_t> {
    if (offset >= archive.size()) return std::size_t{0};
    const std::size_t size = std::min<std::size_t>(into.size(), archive.size() - offset);
    std::memcpy(into.data(), archive.data() + offset, size);
    return size;
  };
}

}  // namespace foreload
