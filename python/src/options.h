// The options of a loader as the package passes them: a dict whose values were checked there.
#pragma once

#include <pybind11/pybind11.h>

#include "foreload/loader.h"

namespace foreload::python {

// Raises ConfigError for a word that is none of the accepted ones.
LoaderOptions read_options(const pybind11::dict& given);

}  // namespace foreload::python
