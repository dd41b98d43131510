#include "errors.h"

namespace py = pybind11;

namespace foreload::python {

void raise(const Error& error) {
  const py::object classes = py::module_::import("foreload.errors").attr("BY_CODE");
  const py::object type = classes.attr("get")(code_name(error.code));
  PyErr_SetObject(type.is_none() ? PyExc_RuntimeError : type.ptr(), py::str(error.message).ptr());
  throw py::error_already_set();
}

}  // namespace foreload::python
