// Which files of a dataset are samples: decided by the name alone.
#pragma once

#include <string>
#include <string_view>

namespace foreload {

// The extensions that count, in upper or lower case: jpg jpeg png webp npy bin raw.
bool is_payload_extension(std::string_view extension);
// Judges by what follows the last dot. Hidden files are never samples.
bool is_payload_name(std::string_view name);
// ".jpg .jpeg …", for messages.
const std::string& payload_extensions();

std::string_view base_name(std::string_view path);
std::string_view directory_name(std::string_view path);  // "" at the top
// True if the name, or a directory on the way to it, begins with a dot.
bool is_hidden_path(std::string_view path);

}  // namespace foreload
