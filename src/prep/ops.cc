// The table of transforms. It stands here and not in a folder of its own because chain.cc and the parser
// below it need it.
#include <fmt/format.h>

#include <string>

#include "prep/op.h"
#include "prep/ops_testing.h"
#include "prep/params.h"

namespace foreload {

namespace {

std::string names_of_ops() {
  std::string names;
  for (const auto& entry : op_entries()) names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return names;
}

bool accepts(const OpEntry& entry, std::string_view param) {
  for (const char* name : entry.params) {
    if (param == name) return true;
  }
  return false;
}

Status check_names(const OpEntry& entry, const Transform& transform) {
  for (std::size_t i = 0; i < transform.params.size(); ++i) {
    const std::string& name = transform.params[i].first;
    if (!accepts(entry, name)) {
      return Error{Code::kInvalid, fmt::format("transform {} has no parameter '{}'; it accepts: {}", entry.name, name,
                                               fmt::join(entry.params, ", "))};
    }
    if (find_param(transform, name) != &transform.params[i].second) {
      return Error{Code::kInvalid, fmt::format("transform {}: {} is given twice; give it once", entry.name, name)};
    }
  }
  return {};
}

std::vector<OpEntry>& table() {
  // Never destroyed: a thread that has just found a stream of its host may look here while the program exits.
  static std::vector<OpEntry>& entries = *new std::vector<OpEntry>{
      random_resized_crop_op(),
      resize_op(),
      center_crop_op(),
      random_crop_op(),
      pad_op(),
      random_flip_op(),
      random_vertical_flip_op(),
      random_rotation_op(),
      random_affine_op(),
      color_jitter_op(),
      grayscale_op(),
      random_grayscale_op(),
      gaussian_blur_op(),
      trivial_augment_wide_op(),
      rand_augment_op(),
      normalize_op(),
      random_erasing_op(),
      array_op(),
      random_window_op(),
      center_window_op(),
      ragged_op(),
      mixup_op(),
      cutmix_op(),
  };
  return entries;
}

}  // namespace

std::span<const OpEntry> op_entries() {
  return table();
}

void add_op_for_tests(OpEntry entry) {
  std::vector<OpEntry>& all = table();
  std::erase_if(all, [&](const OpEntry& there) { return std::string_view(there.name) == entry.name; });
  all.push_back(std::move(entry));
}

Result<const OpEntry*> find_op(std::string_view name) {
  for (const auto& entry : op_entries()) {
    if (name == entry.name) return &entry;
  }
  return Error{Code::kInvalid, fmt::format("there is no transform '{}'; these exist: {}", name, names_of_ops())};
}

Result<std::unique_ptr<Op>> make_op(const Transform& transform) {
  FORELOAD_ASSIGN(const OpEntry* entry, find_op(transform.name));
  FORELOAD_TRY(check_names(*entry, transform));
  return entry->make(transform);
}

Status Op::place(Plan&, KeyedRandom&) const {
  return {};
}

Status check_before_normalize(const Declaration& declared, const char* op) {
  if (declared.normalize) {
    return Error{Code::kInvalid, fmt::format("transform {} stands after normalize; put normalize last", op)};
  }
  return check_before_erasing(declared, op);
}

Status check_before_erasing(const Declaration& declared, const char* op) {
  if (declared.erased_with.empty()) return {};
  return Error{Code::kInvalid,
               fmt::format("transform {} stands after random_erasing, which erases what is finished; only "
                           "normalize may follow it",
                           op)};
}

}  // namespace foreload
