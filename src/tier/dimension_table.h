// DimensionTable: width and height of every sample that was ever decoded, remembered at the first read. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/region.h"
#include "foreload/source.h"

namespace foreload {

class DimensionTable {
 public:
  static Bytes bytes_for(std::uint64_t samples) { return samples * sizeof(std::uint32_t) + 4096; }
  static Result<DimensionTable> create(std::uint64_t samples);

  void note(SampleId id, Dimensions dimensions);
  std::optional<Dimensions> find(SampleId id) const;
  std::uint64_t known() const { return known_->load(std::memory_order_relaxed); }
  std::vector<Dimensions> list() const;  // zeros where nothing is known

 private:
  DimensionTable(Region region, std::uint64_t samples)
      : region_(std::move(region)), samples_(samples), known_(std::make_unique<std::atomic<std::uint64_t>>(0)) {}
  std::atomic<std::uint32_t>& entry(SampleId id) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(region_.bytes().data())[id];
  }

  Region region_;
  std::uint64_t samples_;
  std::unique_ptr<std::atomic<std::uint64_t>> known_;
};

}  // namespace foreload
