// Flags that relax the order of samples: --weights, --epoch-samples, --echo, --echo-window, --reshuffle, --homes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "foreload/loader.h"

namespace foreload {

class OrderFlags {
 public:
  // Declares the flags; they are filled when the command line is parsed. `options` must outlive that, as this must.
  void declare(CLI::App& command, LoaderOptions& options);
  Status apply(LoaderOptions& options) const;

 private:
  std::string weights_;
  std::string reshuffle_;
};

// One number per line. kInvalid names the line and what stands there.
Result<std::vector<double>> read_weights(const std::string& path);

}  // namespace foreload
