// Token sequences: flat files of unsigned integers, of which every `sequence` tokens are a sample. Nothing is indexed:
// key, place and length follow from the id and the files' sizes, so memory does not grow with the number of samples.
#pragma once

#include <memory>

#include "source/local_source.h"

namespace foreload {

// REQUIRES: options.tokens. Each dataset is a file or a list of files ("tokens-{00..15}.bin", "*.bin"). What is left
// over at a file's end is left out, with a warning.
Result<std::unique_ptr<LocalSource>> open_tokens(const SourceOptions& options);

}  // namespace foreload
