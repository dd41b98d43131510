// DLPack's in-memory contract, version 0 (no flags, no version field): the structures that a capsule named "dltensor"
// points to. Written from the public specification; the order and width of the fields is the interface.
#pragma once

#include <cstdint>

namespace foreload::python {

inline constexpr const char* kTensorCapsule = "dltensor";
inline constexpr std::int32_t kHostDevice = 1;

enum class DlTypeCode : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2 };

struct DlDevice {
  std::int32_t type;
  std::int32_t id;
};

struct DlDataType {
  DlTypeCode code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t dimensions;
  DlDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // null: compact, row by row
  std::uint64_t byte_offset;
};

struct DlManagedTensor {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManagedTensor* self);  // any thread, with or without the interpreter's lock
};

}  // namespace foreload::python
