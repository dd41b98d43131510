// The options of a loader as flags of a command.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "foreload/loader.h"

namespace foreload {

class LoaderFlags {
 public:
  // Declares the flags; they are filled when the command line is parsed.
  explicit LoaderFlags(CLI::App& command);

  // What they say, checked.
  Result<LoaderOptions> options() const;

 private:
  struct Texts;
  std::shared_ptr<LoaderOptions> options_;
  std::shared_ptr<Texts> texts_;
};

}  // namespace foreload
