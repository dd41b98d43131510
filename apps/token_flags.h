// --tokens and --sequence: datasets that are flat files of token ids.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "foreload/result.h"
#include "foreload/source.h"

namespace foreload {

class TokenFlags {
 public:
  // Declares the flags; they are filled when the command line is parsed. Must outlive that.
  void declare(CLI::App& command);
  Status apply(SourceOptions& options) const;

 private:
  std::string dtype_;
  std::uint64_t sequence_ = 0;
};

}  // namespace foreload
