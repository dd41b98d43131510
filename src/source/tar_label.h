// Labels out of the small members beside a sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "foreload/types.h"

namespace foreload {

inline constexpr Bytes kMaxLabelBytes = 1_MiB;

struct FoundLabel {
  bool has_field = false;             // the text says something about the label
  std::optional<std::int64_t> value;  // if that is an integer
};

FoundLabel label_of_cls(std::string_view text);
// `field`: a name at the top of the object, or a path of names with dots between.
FoundLabel label_of_json(std::string_view text, std::string_view field);

}  // namespace foreload
