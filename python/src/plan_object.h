#pragma once

#include <pybind11/pybind11.h>

namespace foreload::python {

void bind_plan(pybind11::module_& module);

}  // namespace foreload::python
