#include "host/name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace foreload {
namespace {

constexpr std::size_t kMostName = 48;
constexpr std::size_t kMostFolder = 96;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

Status check_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return errno_error(fmt::format("the host's folder {} can not be made", path), errno);
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return errno_error(fmt::format("the host's folder {}", path), errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
    return Error{Code::kInvalid, fmt::format("the host's folder {} must be a folder of this user that nobody else may "
                                             "enter (mode 0700); name another one, or a host without a slash",
                                             path)};
  }
  return {};
}

}  // namespace

Result<HostName> HostName::parse(const std::string& text) {
  if (text.find('/') != std::string::npos) {
    if (text.size() > kMostFolder) {
      return Error{Code::kInvalid, fmt::format("the host's folder {} is too long for a socket's name: at most {} bytes",
                                               text, kMostFolder)};
    }
    FORELOAD_TRY(check_folder(text));
    return HostName(text, true);
  }
  if (text.empty() || text.size() > kMostName || !std::all_of(text.begin(), text.end(), is_plain)) {
    return Error{Code::kInvalid, fmt::format("\"{}\" can not be the name of a host: 1 to {} letters, digits, dots, "
                                             "dashes or underscores, or the path of a folder",
                                             text, kMostName)};
  }
  return HostName(text, false);
}

LocalAddress HostName::address(unsigned index) const {
  if (is_folder_) return {fmt::format("{}/{}", text_, index), true};
  return {fmt::format("foreload/{}/{}/{}", ::geteuid(), text_, index), false};
}

Result<Descriptor> HostName::lock_folder() const {
  if (!is_folder_) return Descriptor();
  FORELOAD_ASSIGN(Descriptor folder, open_directory(text_));
  if (::flock(folder.get(), LOCK_EX) != 0) return errno_error(fmt::format("the host's folder {}", text_), errno);
  return folder;
}

}  // namespace foreload
