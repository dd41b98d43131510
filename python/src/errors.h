// Where a foreload::Error becomes a Python exception: the class is chosen by the code (foreload/errors.py), the message
// is the C++ one.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "foreload/result.h"

namespace foreload::python {

// REQUIRES: the interpreter's lock.
[[noreturn]] void raise(const Error& error);

// Names of files need not be UTF-8: other bytes become what os.fsdecode makes of them. REQUIRES: as above.
pybind11::str path_text(const std::string& bytes);

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(result).value();
}

inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

// Runs `work` without the interpreter's lock. Not a guard object: when the interpreter is being torn down, taking the
// lock again ends the thread by unwinding, which must not meet a destructor.
template <typename Work>
auto without_gil(Work work) {
  std::optional<decltype(work())> result;
  std::exception_ptr failure;  // the library throws nothing, but memory may run out
  PyThreadState* const state = PyEval_SaveThread();
  try {
    result.emplace(work());
  } catch (...) {
    failure = std::current_exception();
  }
  PyEval_RestoreThread(state);
  if (failure) std::rethrow_exception(failure);
  return std::move(*result);
}

}  // namespace foreload::python
