// Destination: the folder that a conversion writes to. Claimed by one process at a time; it is new, empty, or holds a
// conversion with the same plan. What is not finished stays in a hidden folder inside it.
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
  bool is_complete() const { return is_complete_; }  // everything was there already
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string work(const std::string& name) const;  // of what is not finished

  // Gives a finished file of the work folder its name; it is on the disk when this returns.
  Status publish(const std::string& name) const;
  // Writes a small file as a whole, on the disk.
  Status publish(const std::string& name, std::span<const std::byte> content) const;
  // Removes the work folder.
  Status finish() const;

 private:
  explicit Destination(std::string folder) : folder_(std::move(folder)) {}
  Status lock();
  Status check_content(const std::string& plan);
  Status check_plan(const std::string& found, const std::string& plan) const;
  Status sweep() const;

  std::string folder_;
  Descriptor directory_;
  bool is_complete_ = false;
};

}  // namespace foreload
