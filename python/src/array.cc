#include "array.h"

#include "dlpack.h"

namespace py = pybind11;

namespace foreload::python {
namespace {

struct ElementType {
  DlTypeCode code;
  const char* format;  // of the struct module
  const char* name;    // numpy's
};

ElementType element_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return {DlTypeCode::kUInt, "B", "uint8"};
    case DType::kI16:
      return {DlTypeCode::kInt, "h", "int16"};
    case DType::kU16:
      return {DlTypeCode::kUInt, "H", "uint16"};
    case DType::kI32:
      return {DlTypeCode::kInt, "i", "int32"};
    case DType::kU32:
      return {DlTypeCode::kUInt, "I", "uint32"};
    case DType::kI64:
      return {DlTypeCode::kInt, "q", "int64"};
    case DType::kF16:
      return {DlTypeCode::kFloat, "e", "float16"};
    case DType::kF32:
      return {DlTypeCode::kFloat, "f", "float32"};
    case DType::kF64:
      return {DlTypeCode::kFloat, "d", "float64"};
  }
  return {DlTypeCode::kUInt, "B", "uint8"};
}

// What a capsule owns: the structure itself, its shape, and a share of the lease.
struct Exported {
  DlManagedTensor managed{};
  Array array{};
};

void drop(DlManagedTensor* self) {
  delete static_cast<Exported*>(self->context);
}

// A consumer renames the capsule when it takes the tensor; then the tensor is its business.
void drop_untaken(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kTensorCapsule)) return;
  auto* const managed = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule, kTensorCapsule));
  managed->deleter(managed);
}

py::tuple shape_of(const Array& array) {
  py::tuple shape(array.spec.shape.size());
  for (std::size_t i = 0; i < array.spec.shape.size(); ++i) shape[i] = array.spec.shape[i];
  return shape;
}

}  // namespace

std::size_t Array::bytes() const {
  std::size_t count = dtype_size(spec.dtype);
  for (const std::int64_t dimension : spec.shape) count *= static_cast<std::size_t>(dimension);
  return count;
}

py::buffer_info Array::buffer() const {
  const auto size = static_cast<py::ssize_t>(dtype_size(spec.dtype));
  std::vector<py::ssize_t> shape(spec.shape.begin(), spec.shape.end());
  std::vector<py::ssize_t> strides(shape.size());
  py::ssize_t stride = size;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = spec.strides.empty() ? stride : static_cast<py::ssize_t>(spec.strides[i]) * size;
    stride *= shape[i];
  }
  // Writable: the batch belongs to its holder until the last view is gone, and in-place arithmetic is common.
  return {const_cast<std::byte*>(spec.data),
          size,
          element_of(spec.dtype).format,
          static_cast<py::ssize_t>(shape.size()),
          std::move(shape),
          std::move(strides)};
}

py::capsule Array::dlpack() const {
  auto exported = std::make_unique<Exported>();
  exported->array = *this;
  ArraySpec& own = exported->array.spec;
  exported->managed.tensor = {
      .data = const_cast<std::byte*>(own.data),
      .device = {kHostDevice, 0},
      .dimensions = static_cast<std::int32_t>(own.shape.size()),
      .dtype = {element_of(own.dtype).code, static_cast<std::uint8_t>(8 * dtype_size(own.dtype)), 1},
      .shape = own.shape.data(),
      .strides = own.strides.empty() ? nullptr : own.strides.data(),
      .byte_offset = 0};
  exported->managed.context = exported.get();
  exported->managed.deleter = drop;
  PyObject* const capsule = PyCapsule_New(&exported->managed, kTensorCapsule, drop_untaken);
  if (capsule == nullptr) throw py::error_already_set();
  (void)exported.release();  // the capsule's now
  return py::reinterpret_steal<py::capsule>(capsule);
}

void bind_array(py::module_& module) {
  py::class_<Array>(module, "Array", py::buffer_protocol(),
                    "One array of a batch: a view of the loader's memory that keeps it on lease.")
      .def_buffer(&Array::buffer)
      .def(
          "__dlpack__", [](const Array& self, const py::kwargs&) { return self.dlpack(); },
          "The array as a DLPack capsule; streams and versions have no meaning for host memory.")
      .def("__dlpack_device__", [](const Array&) { return py::make_tuple(kHostDevice, 0); })
      .def_property_readonly("shape", &shape_of)
      .def_property_readonly("dtype", [](const Array& self) { return element_of(self.spec.dtype).name; })
      .def_property_readonly("nbytes", &Array::bytes)
      .def_property_readonly("address",
                             [](const Array& self) { return reinterpret_cast<std::uintptr_t>(self.spec.data); })
      .def("__len__", [](const Array& self) { return self.spec.shape.empty() ? 0 : self.spec.shape[0]; });
}

}  // namespace foreload::python
