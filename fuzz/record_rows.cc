// The parser of side files of row offsets over arbitrary bytes. The hashes are made to fit first, so that the checks
// behind them have to find what is wrong; whatever is accepted must be readable to the last value.
#include "source/record_rows.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.h"

namespace {

void fit_hashes(std::vector<std::byte>& file) {
  foreload::RowsHeader header;
  if (file.size() < sizeof header) return;
  std::memcpy(&header, file.data(), sizeof header);
  header.magic = foreload::kRowsMagic;
  header.version = foreload::kRowsVersion;
  header.file_bytes = file.size();
  header.content_hash = foreload::hash_bytes(std::span(file).subspan(sizeof header));
  header.header_hash =
      foreload::hash_bytes(std::as_bytes(std::span(&header, 1)).first(offsetof(foreload::RowsHeader, header_hash)));
  std::memcpy(file.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  fit_hashes(file);
  const auto view = foreload::RecordRowsView::parse(file);
  if (!view.ok()) return 0;
  foreload::RecordRowsBuilder builder;
  for (foreload::SampleId id = 0; id < view->size(); ++id) {
    const auto rows = view->rows(id);
    for (std::size_t i = 1; i < rows.size(); ++i) {
      if (rows[i] <= rows[i - 1]) std::abort();
    }
    builder.add(rows);
  }
  // What was read, written again, is the same file.
  if (std::move(builder).finish(view->fingerprint()) != file) std::abort();
  return 0;
}
