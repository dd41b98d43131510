// Writing files: without waiting for pipes, without half-written content, without anything left behind.
#pragma once

#include <span>
#include <string>

#include "base/files.h"
#include "foreload/result.h"

namespace foreload {

// Opens a file for writing from its start, or a device such as /dev/null. Pipes are refused: one without a reader would
// block, and one with a slow reader hold up the run.
Result<Descriptor> create_output(const std::string& path);
// All of it, or an error that names `path`.
Status write_all(int fd, std::span<const std::byte> content, const std::string& path);
// Makes a complete file beside `path` and renames it over, so that readers see the old or the new content only. What
// exists and is neither a regular file nor a link is refused; a link is replaced itself, because the folder may belong
// to someone who is not trusted. A killed process leaves at most "PATH.PID-N.tmp", and on most file systems nothing.
Status replace_file(const std::string& path, std::span<const std::byte> content);
// Removes what replace_file(path) of killed processes left behind long enough ago. Reads the whole folder.
void remove_leftovers(const std::string& path);
// The path that `path` stands for when it is a link, or a link to one, whether that exists or not.
Result<std::string> follow_links(const std::string& path);

}  // namespace foreload
