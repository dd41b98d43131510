// `foreload index --warm`: fills the disk cache of a dataset before anybody trains on it.
#pragma once

#include <string>

#include "commands.h"
#include "foreload/source.h"

namespace foreload {

class WarmFlags {
 public:
  void declare(CLI::App& command);
  Status check() const;
  // Null when it was not asked for. REQUIRES: check() was ok.
  Result<Json> run(const SourceOptions& options, const Source& source, const Output& output) const;

 private:
  bool warm_ = false;
  std::string disk_;
  std::string disk_size_;
  std::string memory_;
  std::uint64_t seed_ = 0;
  std::uint32_t world_ = 1;
  std::uint32_t rank_ = 0;
};

}  // namespace foreload
