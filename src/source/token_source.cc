// The fingerprint is xxh3 over (N, bytes of a sample; per file: name, samples). Key, length and label of every id
// follow from these, so it says the same as the hash over all ids would, without visiting them.
#include "source/token_source.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "source/tar_list.h"
#include "source/warnings.h"
#include "store/url.h"

namespace foreload {

namespace {

constexpr Bytes kLongestSequence = 1_GiB;

// Of a token; 0: no type for tokens.
Bytes token_bytes(DType dtype) {
  return dtype == DType::kU16 ? 2 : dtype == DType::kU32 ? 4 : 0;
}

struct TokenFile {
  std::size_t folder = 0;
  std::string path;  // below it
  FileStamp stamp;
  SampleId first = 0;  // of its samples
};

struct TokenFolder {
  Descriptor root;
  std::string path;
};

struct TokenFiles {
  std::vector<TokenFolder> folders;
  std::vector<TokenFile> files;
  Bytes sample_bytes = 0;
  SampleId samples = 0;
};

class TokenSource final : public LocalSource {
 public:
  TokenSource(std::string uri, TokenFiles files) : uri_(std::move(uri)), all_(std::move(files)) {
    Hasher hasher;
    hasher.add("tokens").add(all_.samples).add(all_.sample_bytes);
    for (const TokenFile& file : all_.files) hasher.add(file.path).add(file.stamp.size / all_.sample_bytes);
    fingerprint_ = hasher.value();
  }

  std::uint64_t size() const override { return all_.samples; }
  Bytes length(SampleId) const override { return all_.sample_bytes; }
  std::int64_t label(SampleId) const override { return kNoLabel; }
  std::string key(SampleId id) const override {
    const TokenFile& file = all_.files[number_of(id)];
    return fmt::format("{}#{}", file.path, id - file.first);
  }
  Extent locate(SampleId id) const override;
  std::optional<Dimensions> dimensions(SampleId) const override { return std::nullopt; }
  const std::string& uri() const override { return uri_; }
  std::vector<std::string> classes() const override { return {}; }
  Bytes total_bytes() const override { return all_.samples * all_.sample_bytes; }
  Bytes max_length() const override { return all_.sample_bytes; }
  std::uint64_t fingerprint() const override { return fingerprint_; }
  std::uint64_t files() const override { return all_.files.size(); }
  Status store_dimensions(std::span<const Dimensions>) const override {
    return Error{Code::kInvalid, uri_ + " has token sequences, which have no dimensions"};
  }

 private:
  // The last file that begins at or before the sample; empty ones begin where the next does.
  std::size_t number_of(SampleId id) const {
    const auto after = std::upper_bound(all_.files.begin(), all_.files.end(), id,
                                        [](SampleId wanted, const TokenFile& file) { return wanted < file.first; });
    return static_cast<std::size_t>(after - all_.files.begin()) - 1;
  }

  const std::string uri_;
  const TokenFiles all_;
  std::uint64_t fingerprint_ = 0;
};

Extent TokenSource::locate(SampleId id) const {
  Extent extent;
  extent.file = number_of(id);
  const TokenFile& file = all_.files[extent.file];
  const TokenFolder& folder = all_.folders[file.folder];
  extent.root = folder.root.get();
  extent.path = file.path;
  extent.display = fmt::format("{}/{}: sequence {}", folder.path, file.path, id - file.first);
  extent.shared = true;
  extent.offset = (id - file.first) * all_.sample_bytes;
  extent.length = all_.sample_bytes;
  extent.stamp = file.stamp;
  return extent;
}

// What files have beyond their last whole sequence.
struct Rests {
  std::uint64_t files = 0;
  Bytes bytes = 0;
  std::string first;
};

Status add_list(const std::string& uri, TokenFiles& all, Rests& rests) {
  if (is_url(uri)) {
    return Error{Code::kInvalid,
                 fmt::format("{}: token files are read from local folders only; copy them", printable(uri))};
  }
  FORELOAD_ASSIGN(const ShardList list, expand_shards(uri));
  FORELOAD_ASSIGN(Descriptor root, open_directory(list.folder));
  all.folders.push_back({std::move(root), list.folder});
  for (const std::string& path : list.shards) {
    const std::string display = printable(fmt::format("{}/{}", list.folder, path));
    auto file = open_below(all.folders.back().root.get(), path);
    if (!file) {
      return Error{file.error().code,
                   fmt::format("the token file {} can not be used: {}; name files, or a list such as "
                               "DIR/*.bin",
                               display, file.error().message)};
    }
    FORELOAD_ASSIGN(const FileStamp stamp, stamp_of(file->get()));
    all.files.push_back({all.folders.size() - 1, path, stamp, all.samples});
    all.samples += stamp.size / all.sample_bytes;
    const Bytes rest = stamp.size % all.sample_bytes;
    if (rest == 0) continue;
    if (rests.files == 0) rests.first = display;
    rests.files += 1;
    rests.bytes += rest;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LocalSource>> open_tokens(const SourceOptions& options) {
  const TokenSequences& tokens = *options.tokens;
  const Bytes token = token_bytes(tokens.dtype);
  if (token == 0) return Error{Code::kInvalid, "tokens can be u16 or u32, nothing else"};
  if (tokens.sequence == 0 || tokens.sequence > kLongestSequence / token) {
    return Error{Code::kInvalid, fmt::format("a sequence of {} tokens is out of range: 1 … {}", tokens.sequence,
                                             kLongestSequence / token)};
  }
  TokenFiles all{.sample_bytes = tokens.sequence * token};
  Rests rests;
  std::string uri;
  for (const std::string& list : options.datasets) {
    FORELOAD_TRY(add_list(list, all, rests));
    uri.append(uri.empty() ? "" : ",").append(list);
  }
  if (all.samples == 0) {
    return Error{Code::kNotFound, fmt::format("{}: no file has the {} bytes of one sequence of {} tokens",
                                              printable(uri), format_count(all.sample_bytes), tokens.sequence)};
  }
  if (rests.files > 0 && options.warn) {
    options.warn(
        fmt::format("{} of {} token files do not end with a whole sequence; {} bytes in all are left out: first "
                    "is {}",
                    format_count(rests.files), format_count(all.files.size()), format_count(rests.bytes), rests.first));
  }
  return std::unique_ptr<LocalSource>(std::make_unique<TokenSource>(std::move(uri), std::move(all)));
}

}  // namespace foreload
