#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "foreload/source.h"
#include "source/dataset.h"
#include "source/index_cache.h"
#include "source/local_source.h"
#include "source/records.h"
#include "source/remote_list.h"
#include "source/tar_list.h"
#include "source/token_source.h"
#include "source/warnings.h"
#include "store/http_transfer.h"
#include "store/url.h"

namespace foreload {

namespace {

// A new kind of source is one line here.
struct Kind {
  using Open = Result<std::unique_ptr<Dataset>>(const std::string& path, const SourceOptions& options);
  std::string_view name;  // also the prefix that insists on it: "tar:shards"
  Open* open_path;
  Open* open_url;
};
constexpr std::array<Kind, 3> kKinds{{
    {"folder", open_folder, open_remote_folder},
    {"tar", open_tars, open_remote_tars},
    {"records", open_records, open_remote_records},
}};

struct Choice {
  const Kind* kind = nullptr;
  std::string path;
};

const Kind* kind_named(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What stands before the first colon, unless that belongs to a path. Empty: there is none.
std::string_view scheme_of(std::string_view uri) {
  const std::string_view scheme = uri.substr(0, std::min(uri.find(':'), uri.size()));
  const bool is_word = scheme.size() < uri.size() && std::all_of(scheme.begin(), scheme.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                c == '+' || c == '-' || c == '.';
                       });
  return is_word && scheme.substr(0, 1) != "." ? scheme : std::string_view();
}

Error refused_scheme(const std::string& uri, std::string_view scheme) {
  const std::string shown = printable(public_url(uri));  // a URL of another kind may hold a password
  return {Code::kInvalid, fmt::format("{}: \"{}:\" is refused; a dataset is a path or a URL (http, https, s3), "
                                      "optionally with folder:, tar: or records: before it (a path with a colon: ./{})",
                                      shown, printable(scheme), shown)};
}

Error is_compressed(const std::string& path) {
  return {Code::kInvalid,
          fmt::format("{} is compressed and can not be read by random access: unpack it to .tar", printable(path))};
}

Result<Choice> choose_by_url(const std::string& url) {
  if (is_remote_list(url)) return Choice{kind_named("tar"), url};
  FORELOAD_ASSIGN(const Url parsed, parse_url(url));
  if (ends_with(parsed.path, ".tar")) return Choice{kind_named("tar"), url};
  if (ends_with(parsed.path, ".tar.gz") || ends_with(parsed.path, ".tgz")) return is_compressed(url);
  const bool is_folder = parsed.is_s3() || parsed.path.empty() || parsed.path.back() == '/';
  if (!is_folder) {
    return Error{Code::kInvalid, fmt::format("the dataset {} is no .tar; if it is one, write tar:{}, if it is the "
                                             "folder of a conversion, end it with a slash",
                                             printable(url), printable(url))};
  }
  FORELOAD_ASSIGN(const bool is_converted, are_remote_records(url));
  return Choice{kind_named(is_converted ? "records" : "folder"), url};
}

Result<Choice> choose_by_file(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT && has_list_syntax(path)) return Choice{kind_named("tar"), path};
    return errno_error("cannot open the dataset " + printable(path), errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return Choice{kind_named(records_state(path) == RecordsState::kNone ? "folder" : "records"), path};
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{Code::kInvalid, fmt::format("the dataset {} is neither a folder nor a file", printable(path))};
  }
  if (ends_with(path, ".tar")) return Choice{kind_named("tar"), path};
  if (ends_with(path, ".tar.gz") || ends_with(path, ".tgz")) return is_compressed(path);
  return Error{Code::kInvalid, fmt::format("the dataset {} is a file, but no .tar; if it is one, write tar:{}",
                                           printable(path), printable(path))};
}

Result<Choice> choose_kind(const std::string& uri) {
  if (uri.empty()) return Error{Code::kInvalid, "the path of a dataset is empty"};
  if (uri.find('\0') != std::string::npos) {
    return Error{Code::kInvalid, fmt::format("the path of a dataset has a NUL in it: {}", printable(uri))};
  }
  const std::string_view scheme = scheme_of(uri);
  if (scheme.empty()) return choose_by_file(uri);
  if (is_url(uri)) return choose_by_url(uri);
  const Kind* kind = kind_named(scheme);
  if (kind == nullptr) return refused_scheme(uri, scheme);
  const std::string path = uri.substr(scheme.size() + 1);
  if (path.empty()) return Error{Code::kInvalid, fmt::format("{} names no path", uri)};
  return Choice{kind, path};
}

// A dataset that never had them, or lost them, is used without. What is there has to be readable: how a damaged sample
// is judged depends on it, and must not depend on a fault of the moment.
Result<std::optional<RecordRows>> open_rows(const Place& place, const CachedIndex& index,
                                            const SourceOptions& options) {
  auto rows = place.store ? open_remote_rows(place, index, options.keep_index)
                          : RecordRows::open(place.display(kRecordsRows), index.index.view().fingerprint());
  if (rows.ok() && rows->view().size() == index.index.view().size()) return std::optional(std::move(*rows));
  if (!rows.ok() && rows.error().code == Code::kIo) return rows.error();
  if (options.warn) {
    options.warn(fmt::format("{} is read without its row offsets: {}", printable(place.folder),
                             rows.ok() ? "they are of another number of samples" : rows.error().message));
  }
  return std::optional<RecordRows>();
}

Result<std::unique_ptr<LocalSource>> open_one(const std::string& uri, const SourceOptions& options) {
  FORELOAD_ASSIGN(const Choice choice, choose_kind(uri));
  FORELOAD_ASSIGN(std::unique_ptr<Dataset> dataset,
                  (is_url(choice.path) ? choice.kind->open_url : choice.kind->open_path)(choice.path, options));
  FORELOAD_ASSIGN(CachedIndex index, open_index(*dataset, uri, options));
  std::optional<RecordRows> rows;
  if (choice.kind == kind_named("records")) {
    FORELOAD_ASSIGN(rows, open_rows(dataset->place(), index, options));
  }
  return make_indexed_source(uri, std::move(dataset), std::move(index), std::move(rows));
}

void warn_of_other_classes(const std::vector<std::unique_ptr<LocalSource>>& parts, const SourceOptions& options) {
  for (const auto& part : parts) {
    if (!options.warn || part->classes() == parts.front()->classes()) continue;
    options.warn(fmt::format("{} and {} have different classes; their labels are kept as they are",
                             printable(parts.front()->uri()), printable(part->uri())));
    return;
  }
}

Result<std::unique_ptr<LocalSource>> select(std::unique_ptr<LocalSource> whole, const SourceOptions& options) {
  const auto* ids = std::get_if<std::vector<SampleId>>(&options.subset);
  const auto* keys = std::get_if<std::vector<std::string>>(&options.subset);
  if (ids == nullptr && keys == nullptr) return whole;
  if (ids != nullptr ? ids->empty() : keys->empty()) {
    return Error{Code::kInvalid, fmt::format("the subset of {} is empty: name at least one id or key", whole->uri())};
  }
  if (ids != nullptr) return select_ids(std::move(whole), *ids);
  return select_keys(std::move(whole), *keys);
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const SourceOptions& options) {
  if (options.datasets.empty()) return Error{Code::kInvalid, "no dataset is named"};
  if (options.tokens) {
    FORELOAD_ASSIGN(std::unique_ptr<LocalSource> tokens, open_tokens(options));
    FORELOAD_ASSIGN(std::unique_ptr<LocalSource> chosen, select(std::move(tokens), options));
    return std::unique_ptr<Source>(std::move(chosen));
  }
  std::vector<std::unique_ptr<LocalSource>> parts;
  for (const std::string& uri : options.datasets) {
    FORELOAD_ASSIGN(std::unique_ptr<LocalSource> part, open_one(uri, options));
    parts.push_back(std::move(part));
  }
  warn_of_other_classes(parts, options);
  FORELOAD_ASSIGN(std::unique_ptr<LocalSource> source, select(concatenate(std::move(parts)), options));
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace foreload
