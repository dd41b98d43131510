// Which Python interpreters there are, and whether they have what training needs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foreload/types.h"
#include "probe/doctor.h"

namespace foreload {

struct PythonView {
  std::string path;        // as it was found
  std::string executable;  // what it calls itself; empty: it did not answer
  std::string version;
  std::string torch;  // versions; empty: not there
  std::string numpy;
  std::string foreload;          // of the package, when it can be imported
  std::string foreload_problem;  // otherwise why not
};

// Asks an interpreter; it imports our package and nothing else. One that does not answer in time is ended.
PythonView look_at_python(const std::string& path, Duration patience);
// The first python3 of a PATH, then Debian's own where that is another.
std::vector<std::string> find_interpreters(const std::string& search_path);

// `views`: in the order of find_interpreters.
Findings judge_python(const std::vector<PythonView>& views, const std::string& own_version);

}  // namespace foreload
