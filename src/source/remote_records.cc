// What foreload convert wrote, behind a URL: the manifest names the shards, so nothing has to be listed. The file of
// row offsets is copied beside the index once; its own hash and the fingerprint in it tell whether a copy still fits.
#include <fmt/core.h>

#include <utility>

#include "base/write_file.h"
#include "source/records.h"
#include "source/remote_list.h"
#include "source/shard_files.h"
#include "source/tar_dataset.h"
#include "store/object_file.h"

namespace foreload {

namespace {

constexpr Bytes kLookAt = 200;         // bytes of a manifest that say whose it is
constexpr Bytes kLongestRows = 1_GiB;  // of ten million pictures; a larger file is not worth its transfer

Result<Place> open_place(const std::string& url) {
  FORELOAD_ASSIGN(Url folder, parse_url(url));
  if (!folder.path.empty() && folder.path.back() != '/') folder.path += '/';
  return open_remote_place(folder);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Result<bool> are_remote_records(const std::string& url) {
  FORELOAD_ASSIGN(const Place place, open_place(url));
  HttpClient client;
  FORELOAD_ASSIGN(const HttpResponse answer,
                  client.send([&] { return place.store->get(kRecordsManifest, 0, kLookAt); }, kLongestManifest));
  // Who may not look gets to know when the samples are asked for.
  if (answer.status != 200 && answer.status != 206) return false;
  if (says_made_by_convert(answer.body)) return true;
  return stamp_of_object(*place.store, client, record_shard_name(0)).ok();
}

Result<std::unique_ptr<Dataset>> open_remote_records(const std::string& url, const SourceOptions&) {
  FORELOAD_ASSIGN(Place place, open_place(url));
  HttpClient client;
  auto text = read_whole_object(*place.store, client, kRecordsManifest, kLongestManifest);
  if (!text && text.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, fmt::format("{} was not made by foreload convert, or not to the end: it has no {}",
                                              printable(url), kRecordsManifest)};
  }
  if (!text) return text.error();
  FORELOAD_ASSIGN(RecordsManifest manifest, parse_manifest(*text, place.display(kRecordsManifest)));
  const std::string label_field = SourceOptions().label_field;
  place.identity = fmt::format("tar {} shard-*.tar {}", label_field, place.identity);
  TarList list{record_shard_names(manifest.shards.count), label_field, manifest.shards.classes};
  auto files = remote_shards(place);
  return make_records(make_tar_dataset(std::move(place), std::move(list), std::move(files)), std::move(manifest));
}

Result<RecordRows> open_remote_rows(const Place& place, const CachedIndex& index, bool keep) {
  const std::uint64_t fingerprint = index.index.view().fingerprint();
  const std::string copy = index.path.empty() ? "" : index.path + ".rows";
  if (!copy.empty()) {
    if (auto rows = RecordRows::open(copy, fingerprint)) return rows;
  }
  HttpClient client;
  FORELOAD_ASSIGN(const std::string text, read_whole_object(*place.store, client, kRecordsRows, kLongestRows));
  FORELOAD_ASSIGN(RecordRows rows, RecordRows::from_bytes(bytes_of(text), place.display(kRecordsRows), fingerprint));
  // What can not be kept is fetched again next time.
  if (copy.empty() || !keep || !replace_file(copy, bytes_of(text))) return rows;
  if (auto mapped = RecordRows::open(copy, fingerprint)) return mapped;
  return rows;
}

}  // namespace foreload
