#include "probe/doctor_python.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "probe/child.h"
#include "source/warnings.h"

namespace foreload {

namespace {

constexpr const char* kDebianPython = "/usr/bin/python3";

// In isolated parts: nothing but our own package is imported, and the answer is one line.
constexpr const char* kScript = R"(
import importlib.metadata, json, os, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except Exception:
        return ""
answer = {"executable": sys.executable, "version": sys.version.split()[0], "torch": version("torch"),
          "numpy": version("numpy"), "foreload": "", "problem": ""}
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
try:
    import foreload
    answer["foreload"] = str(getattr(foreload, "__version__", "") or "of unknown version")
except BaseException as problem:
    answer["problem"] = (type(problem).__name__ + ": " + str(problem))[:300]
print(json.dumps(answer), file=out, flush=True)
os._exit(0)
)";

std::string real_path(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

bool is_program(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string field(const nlohmann::json& answer, const char* name) {
  const auto found = answer.find(name);
  return found != answer.end() && found->is_string() ? printable(found->get<std::string>()) : std::string();
}

std::string called(const PythonView& view) {
  return fmt::format("{} ({}{})", view.executable, view.version, view.torch.empty() ? "" : ", torch " + view.torch);
}

}  // namespace

PythonView look_at_python(const std::string& path, Duration patience) {
  PythonView view{.path = path};
  auto child = Child::start({path, "-c", kScript});
  if (!child) {
    view.foreload_problem = child.error().message;
    return view;
  }
  const Time deadline = now() + patience;
  const auto line = child->read_line(deadline);
  child->end(line ? now() + patience : now());
  const auto answer = nlohmann::json::parse(line.value_or(""), nullptr, false);
  if (!answer.is_object()) {
    view.foreload_problem = "it does not answer";
    return view;
  }
  view.executable = field(answer, "executable");
  view.version = field(answer, "version");
  view.torch = field(answer, "torch");
  view.numpy = field(answer, "numpy");
  view.foreload = field(answer, "foreload");
  view.foreload_problem = field(answer, "problem");
  return view;
}

std::vector<std::string> find_interpreters(const std::string& search_path) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at <= search_path.size() && found.empty();) {
    const std::size_t end = std::min(search_path.find(':', at), search_path.size());
    const std::string path = search_path.substr(at, end - at) + "/python3";
    if (path.front() == '/' && path.size() > 8 && is_program(path)) found.push_back(path);
    at = end + 1;
  }
  if (is_program(kDebianPython) && (found.empty() || real_path(found[0]) != real_path(kDebianPython))) {
    found.emplace_back(kDebianPython);
  }
  return found;
}

Findings judge_python(const std::vector<PythonView>& views, const std::string& own_version) {
  if (views.empty()) {
    return {{Severity::kNote, "python", "there is no python3 in PATH",
             "foreload can be used from C++ and the command "
             "line only",
             "apt install python3"}};
  }
  Findings findings;
  const PythonView& first = views[0];
  const auto having = std::ranges::find_if(views, [](const PythonView& view) { return !view.foreload.empty(); });
  if (first.executable.empty()) {
    findings.push_back({Severity::kCosts, "python", fmt::format("{} {}", first.path, first.foreload_problem),
                        "scripts that start it fail", "mend or leave it out of PATH"});
  } else if (having == views.begin()) {
    findings.push_back({Severity::kOk, "python", fmt::format("{} has foreload {}", called(first), first.foreload)});
  } else if (having != views.end()) {
    findings.push_back({Severity::kCosts, "python",
                        fmt::format("python3 is {}, which has no foreload; {} has", called(first), called(*having)),
                        "\"import foreload\" fails in scripts that start python3",
                        fmt::format("run {}", having->path)});
  } else {
    findings.push_back(
        {Severity::kNote, "python", fmt::format("{} has no foreload: {}", called(first), first.foreload_problem),
         "foreload can not be used from it", fmt::format("{} -m pip install . in foreload's folder", first.path)});
  }
  const PythonView& used = having != views.end() ? *having : first;
  if (!used.executable.empty() && used.torch.empty()) {
    const auto torch = std::ranges::find_if(views, [](const PythonView& view) { return !view.torch.empty(); });
    findings.push_back({Severity::kNote, "torch", fmt::format("{} has none", used.executable),
                        "batches are numpy arrays there",
                        torch != views.end() ? fmt::format("{} has torch {}", torch->path, torch->torch)
                                             : "apt install python3-torch, or pip install torch"});
  } else if (!used.torch.empty()) {
    findings.push_back({Severity::kOk, "torch", fmt::format("{} in {}", used.torch, used.executable)});
  }
  if (having != views.end() && having->foreload != own_version) {
    findings.push_back({Severity::kNote, "versions",
                        fmt::format("the package is {}, this program {}", having->foreload, own_version),
                        "hosts whose members differ do not share", "install both from one source"});
  }
  return findings;
}

}  // namespace foreload
