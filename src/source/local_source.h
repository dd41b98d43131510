// The sources that open_source() puts together: one indexed dataset, several in a row, or a selection of samples.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreload/source.h"
#include "source/dataset.h"
#include "source/index_cache.h"
#include "source/record_rows.h"

namespace foreload {

class LocalSource : public Source {
 public:
  virtual std::uint64_t files() const = 0;  // Extent::file is below this
  virtual Status store_dimensions(std::span<const Dimensions> dimensions) const = 0;
};

// Writes the dimensions of all samples into the index file, for the next open. {0, 0}: not known.
Status store_dimensions(const Source& source, std::span<const Dimensions> dimensions);

// REQUIRES: `rows`, if any, are of the same dataset.
std::unique_ptr<LocalSource> make_indexed_source(std::string uri, std::unique_ptr<Dataset> dataset, CachedIndex index,
                                                 std::optional<RecordRows> rows = {});
// REQUIRES: at least one part.
std::unique_ptr<LocalSource> concatenate(std::vector<std::unique_ptr<LocalSource>> parts);
// kNotFound names the first id or key that is not there; kInvalid a key that is there more than once.
Result<std::unique_ptr<LocalSource>> select_ids(std::unique_ptr<LocalSource> whole, std::vector<SampleId> ids);
Result<std::unique_ptr<LocalSource>> select_keys(std::unique_ptr<LocalSource> whole,
                                                 const std::vector<std::string>& keys);

}  // namespace foreload
