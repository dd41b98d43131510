// Crew: programs that do something at the same time, told and asked line by line. None outlives the object: they leave
// when their input ends, or are killed. Every wait has an end, and whoever dies is an error. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "foreload/result.h"
#include "foreload/types.h"
#include "probe/child.h"

namespace foreload {

class Crew {
 public:
  static Result<Crew> start(const std::vector<std::vector<std::string>>& commands);
  Crew(Crew&&) = default;
  ~Crew();

  std::size_t size() const { return children_.size(); }
  pid_t process(std::size_t index) const { return children_[index].id(); }

  Status tell(const std::string& line);  // to all. kIo: one has ended
  // The next line of each, in their order. kIo: one has ended, or says nothing for so long.
  Result<std::vector<std::string>> answers(Duration patience);
  Result<std::vector<std::string>> ask(const std::string& line, Duration patience);  // both
  Result<std::string> ask_one(std::size_t index, const std::string& line, Duration patience);

 private:
  explicit Crew(std::vector<Child> children) : children_(std::move(children)) {}
  Status tell_one(std::size_t index, const std::string& line);
  Result<std::string> answer(std::size_t index, Time deadline);

  std::vector<Child> children_;
};

}  // namespace foreload
