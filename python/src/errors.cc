#include "errors.h"

namespace py = pybind11;

namespace foreload::python {

void raise(const Error& error) {
  const py::object classes = py::module_::import("foreload.errors").attr("BY_CODE");
  const py::object type = classes.attr("get")(code_name(error.code));
  PyErr_SetObject(type.is_none() ? PyExc_RuntimeError : type.ptr(), path_text(error.message).ptr());
  throw py::error_already_set();
}

py::str path_text(const std::string& bytes) {
  PyObject* const text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (text == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(text);
}

}  // namespace foreload::python
