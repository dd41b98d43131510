#include "token_flags.h"

#include <fmt/format.h>

#include "number_flag.h"

namespace foreload {

void TokenFlags::declare(CLI::App& command) {
  command.add_option("--tokens", dtype_, "The dataset is flat files of token ids: u16 or u32; needs --sequence");
  add_number(command, "--sequence", sequence_, "Tokens per sample, with --tokens");
}

Status TokenFlags::apply(SourceOptions& options) const {
  if (dtype_.empty() && sequence_ == 0) return {};
  const bool known = dtype_ == "u16" || dtype_ == "u32";
  if (!known) return Error{Code::kInvalid, fmt::format("--tokens \"{}\" is unknown: choose u16 or u32", dtype_)};
  if (sequence_ == 0) return Error{Code::kInvalid, "--tokens needs --sequence, the number of tokens per sample"};
  options.tokens = TokenSequences{dtype_ == "u16" ? DType::kU16 : DType::kU32, sequence_};
  return {};
}

}  // namespace foreload
