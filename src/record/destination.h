// Destination: the folder that a conversion writes to. Claimed by one process at a time; it is new, empty, or holds a
// conversion with the same plan. What is not finished stays in a hidden folder inside it, which is only used when we
// have made it, and never through a link: files that others put there are neither written nor removed.
#pragma once

#include <span>
#include <string>

#include "base/files.h"
#include "foreload/result.h"

namespace foreload {

// Refuses a destination inside of the source, around it, or where something else is. Changes nothing. `uri` is the
// source as open_source() takes it.
Status check_destination(const std::string& folder, const std::string& uri);

class Destination {
 public:
  // Makes and locks the folder. kInvalid names what is there if it is not the conversion that `plan` describes.
  static Result<Destination> claim(const std::string& folder, const std::string& plan);

  const std::string& folder() const { return folder_; }
  int directory() const { return directory_.get(); }
  bool is_complete() const { return is_complete_; }  // everything was there already
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string work(const std::string& name) const;  // of what is not finished

  // A new file of the work folder, to be written and read. Whatever had this name before keeps its content.
  Result<Descriptor> create(const std::string& name) const;
  // Writes a small file of the work folder as a whole.
  Status write(const std::string& name, std::span<const std::byte> content) const;
  void remove(const std::string& name) const;  // of the work folder
  // Gives a finished file of the work folder its name; it is on the disk when this returns.
  Status publish(const std::string& name) const;
  // Writes a small file as a whole, on the disk.
  Status publish(const std::string& name, std::span<const std::byte> content) const;
  // Removes our files from the work folder, and the folder unless someone else has put something there.
  Status finish() const;
  // Whether both folders are still where they were claimed, so that a later call finds them.
  bool is_there() const;

 private:
  explicit Destination(std::string folder) : folder_(std::move(folder)) {}
  Status lock();
  Status open_work();
  Status check_content(const std::string& plan);
  Status check_plan(const std::string& found, const std::string& plan) const;
  Status begin(const std::string& plan);
  Result<std::string> read_state() const;
  Status sweep() const;

  std::string folder_;
  Descriptor directory_;
  Descriptor work_;  // not valid: there is none
  bool is_complete_ = false;
};

}  // namespace foreload
