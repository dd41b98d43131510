// Result<T>: a value or an Error. Foreload throws nothing; every expected failure comes back as one of these.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace foreload {

enum class Code {
  kInvalid,      // options or arguments that can not work: fix the call
  kNotFound,     // a path, dataset, key or name that does not exist
  kDataChanged,  // a file differs from what the index recorded
  kBadSample,    // verified bytes that can not be decoded, or break a limit
  kIo,           // reading or writing failed after all retries
  kNoMemory,     // the memory budget or the machine can not hold what was asked
  kMismatch,     // a saved state belongs to another dataset or plan
  kCancelled,    // the loader was closed, or used in a forked child
};

const char* code_name(Code code);

struct Error {
  Code code = Code::kInvalid;
  std::string message{};  // names the thing, what was tried and what to do next
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  // REQUIRES: !ok().
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Returns the error of `expr` from the enclosing function, if it has one.
#define FORELOAD_TRY(expr)                                                                             \
  do {                                                                                                 \
    if (auto foreload_status_ = (expr); !foreload_status_) return std::move(foreload_status_).error(); \
  } while (false)

#define FORELOAD_CONCAT_INNER_(a, b) a##b
#define FORELOAD_CONCAT_(a, b) FORELOAD_CONCAT_INNER_(a, b)

// Declares `decl` from the value of `expr`, or returns its error from the enclosing function.
#define FORELOAD_ASSIGN(decl, expr)                                         \
  auto FORELOAD_CONCAT_(foreload_result_, __LINE__) = (expr);               \
  if (!FORELOAD_CONCAT_(foreload_result_, __LINE__))                        \
    return std::move(FORELOAD_CONCAT_(foreload_result_, __LINE__)).error(); \
  decl = std::move(FORELOAD_CONCAT_(foreload_result_, __LINE__)).value()

}  // namespace foreload
