// The extension module foreload._foreload: thin. What people meet is the package around it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "array.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "errors.h"
#include "foreload/transform.h"
#include "loader_object.h"
#include "plan_object.h"

namespace py = pybind11;
using namespace pybind11::literals;

namespace foreload::python {
namespace {

std::span<const std::byte> bytes_of(const py::buffer_info& info) {
  return {static_cast<const std::byte*>(info.ptr), static_cast<std::size_t>(info.size * info.itemsize)};
}

std::uint64_t xxh3(const py::buffer& buffer, std::uint64_t seed) {
  const py::buffer_info info = buffer.request();
  return hash_bytes(bytes_of(info), seed);
}

// The hashes of `foreload run --hash` for one batch: (order, content).
py::tuple batch_hashes(const Lease& lease, const std::vector<Position>& positions) {
  std::uint64_t order = 0;
  std::uint64_t content = 0;
  const std::size_t count = lease.size();
  std::size_t size = dtype_size(lease.data().dtype);
  const std::vector<std::int64_t> shape = lease.data().shape;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= static_cast<std::size_t>(shape[i]);
  for (std::size_t i = 0; i < count; ++i) {
    order += hash_bytes({lease.ids().data + 8 * i, 8}, positions.at(i));
    Hasher hasher(positions.at(i));
    hasher.add_raw({lease.data().data + size * i, size});
    hasher.add_raw({lease.labels().data + 8 * i, 8});
    content += hasher.value();
  }
  return py::make_tuple(order, content);
}

}  // namespace
}  // namespace foreload::python

PYBIND11_MODULE(_foreload, module) {
  using namespace foreload;
  using namespace foreload::python;
  module.doc() = "Bindings of the foreload library; use the package foreload.";
  module.attr("version") = FORELOAD_VERSION;
  bind_array(module);
  bind_loader(module);
  bind_plan(module);
  module.def(
      "parse_bytes", [](const std::string& text) { return value_or_raise(parse_bytes(text)); }, "text"_a);
  module.def("format_bytes", &format_bytes, "bytes"_a);
  module.def("available_memory", &available_memory);
  module.def("interpreter_ends", &interpreter_ends);
  module.def("usable_cores", &usable_cores);
  module.def(
      "check_chain", [](const std::string& text) { return chain_text(value_or_raise(parse_chain(text))); }, "text"_a);
  module.def(
      "normal_state", [](const std::string& text) { return state_to_json(value_or_raise(state_from_json(text))); },
      "text"_a);
  module.def("xxh3", &xxh3, "data"_a, "seed"_a = 0);
  module.def("batch_hashes", &batch_hashes, "batch"_a, "positions"_a);
}
