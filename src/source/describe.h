// How error messages name a sample: id, key, dataset, file and offset.
#pragma once

#include <string>

#include "foreload/source.h"

namespace foreload {

std::string describe_sample(const Source& source, SampleId id);

}  // namespace foreload
