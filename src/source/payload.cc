#include "source/payload.h"

#include <algorithm>
#include <array>

namespace foreload {

namespace {

constexpr std::array<std::string_view, 7> kExtensions{"jpg", "jpeg", "png", "webp", "npy", "bin", "raw"};

// Not std::tolower: it depends on the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool is_payload_extension(std::string_view extension) {
  return std::any_of(kExtensions.begin(), kExtensions.end(), [extension](std::string_view known) {
    return std::equal(known.begin(), known.end(), extension.begin(), extension.end(),
                      [](char a, char b) { return a == lower(b); });
  });
}

bool is_payload_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (name.empty() || name.front() == '.' || dot == std::string_view::npos) return false;
  return is_payload_extension(name.substr(dot + 1));
}

const std::string& payload_extensions() {
  static const std::string text = [] {
    std::string list;
    for (const std::string_view extension : kExtensions) list.append(list.empty() ? "." : " .").append(extension);
    return list;
  }();
  return text;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view directory_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool is_hidden_path(std::string_view path) {
  return path.substr(0, 1) == "." || path.find("/.") != std::string_view::npos;
}

}  // namespace foreload
