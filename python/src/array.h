// Array: one array of a batch as Python sees it, through the buffer protocol and DLPack only. It views the lease's
// memory and keeps the lease alive; so does everything made of it.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "lease.h"

namespace foreload::python {

struct Array {
  std::shared_ptr<const Lease> lease;
  ArraySpec spec;

  std::size_t bytes() const;
  pybind11::buffer_info buffer() const;
  // A capsule "dltensor" that whoever takes it frees; if nobody does, it frees itself.
  pybind11::capsule dlpack() const;
};

void bind_array(pybind11::module_& module);

}  // namespace foreload::python
