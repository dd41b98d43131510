// How error messages name a sample: id, key, dataset, file and offset.
#pragma once

#include <string>
#include <string_view>

#include "foreload/source.h"

namespace foreload {

std::string describe_sample(const Source& source, SampleId id);
// The last words of data_changed().
inline constexpr std::string_view kRebuildAdvice = ". Run `foreload index --rebuild DATASET` and start again";
// The sample's file or object has another size or time (tag) than the index says.
Error data_changed(const Source& source, SampleId id, const FileStamp& found);

}  // namespace foreload
