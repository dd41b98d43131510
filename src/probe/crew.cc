#include "probe/crew.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace foreload {
namespace {

constexpr Duration kLongestLeave = std::chrono::seconds(10);

}  // namespace

Result<Crew> Crew::start(const std::vector<std::vector<std::string>>& commands) {
  Crew crew({});
  for (const std::vector<std::string>& command : commands) {
    FORELOAD_ASSIGN(Child child, Child::start(command));
    crew.children_.push_back(std::move(child));
  }
  return crew;
}

Crew::~Crew() {
  for (Child& child : children_) child.close_input();
  const Time deadline = now() + kLongestLeave;
  for (Child& child : children_) child.end(deadline);
}

Result<std::vector<std::string>> Crew::answers(Duration patience) {
  const Time deadline = now() + patience;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < children_.size(); ++i) {
    FORELOAD_ASSIGN(std::string line, answer(i, deadline));
    lines.push_back(std::move(line));
  }
  return lines;
}

Result<std::vector<std::string>> Crew::ask(const std::string& line, Duration patience) {
  FORELOAD_TRY(tell(line));
  return answers(patience);
}

Status Crew::tell(const std::string& line) {
  for (std::size_t i = 0; i < children_.size(); ++i) FORELOAD_TRY(tell_one(i, line));
  return {};
}

Result<std::string> Crew::ask_one(std::size_t index, const std::string& line, Duration patience) {
  FORELOAD_TRY(tell_one(index, line));
  return answer(index, now() + patience);
}

Status Crew::tell_one(std::size_t index, const std::string& line) {
  if (children_[index].write_line(line)) return {};
  return Error{Code::kIo,
               fmt::format("process {} of {} has ended and can not be told \"{}\"", index + 1, size(), line)};
}

Result<std::string> Crew::answer(std::size_t index, Time deadline) {
  if (auto line = children_[index].read_line(deadline)) return std::move(*line);
  return Error{Code::kIo, fmt::format("process {} of {} has {}", index + 1, size(),
                                      now() < deadline ? "ended" : "not answered in time")};
}

}  // namespace foreload
