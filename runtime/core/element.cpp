// Conversion of elements: one loop per pair of types, through int64 or double.
#include "core/element.h"
#include "core/error.h"
#include "core/program.h"
#include "shoal-rt/traffic.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace shoal::rt {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};
struct Boolean {
  uint8_t byte;
};

double halfToDouble(uint16_t bits) {
  double sign = bits & 0x8000 ? -1.0 : 1.0;
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

// The wide type of an element of a file: int64 for integers, double for floats, itself
// for uint64.
template <typename T> auto widen(T value) {
  if constexpr (std::is_same_v<T, Half>)
    return halfToDouble(value.bits);
  else if constexpr (std::is_same_v<T, BFloat>)
    return double(bf16ToFloat(value.bits));
  else if constexpr (std::is_floating_point_v<T>)
    return double(value);
  else if constexpr (std::is_same_v<T, Boolean>)
    return int64_t(value.byte != 0);
  else if constexpr (std::is_same_v<T, uint64_t>)
    return value;
  else
    return int64_t(value);
}

template <typename To, typename Wide> bool fits(Wide value) {
  if constexpr (std::is_same_v<Wide, double> || std::is_floating_point_v<To> ||
                std::is_same_v<To, BFloat>)
    return true;
  else if constexpr (std::is_same_v<To, Boolean>)
    return value == 0 || value == 1;
  else
    return std::in_range<To>(value);
}

template <typename To, typename Wide> To narrow(Wide value) {
  if constexpr (std::is_same_v<To, BFloat>)
    return {floatToBf16(float(value))};
  else if constexpr (std::is_same_v<To, Boolean>)
    return {uint8_t(value != 0)};
  else
    return To(value);
}

template <typename From, typename To>
void convertLoop(const void *from, void *to, uint64_t count, DType toType,
                 const std::string &what) {
  for (uint64_t i = 0; i < count; ++i) {
    From element;
    std::memcpy(&element, static_cast<const char *>(from) + i * sizeof(From), sizeof(From));
    auto wide = widen(element);
    if (!fits<To>(wide))
      badInput(what, ": value ", wide, " does not fit ", dtypeName(toType));
    To narrowed = narrow<To>(wide);
    std::memcpy(static_cast<char *>(to) + i * sizeof(To), &narrowed, sizeof(To));
  }
}

template <typename From>
void convertTo(const void *from, void *to, DType toType, uint64_t count, const std::string &what) {
  switch (toType) {
  case DType::F32:
    return convertLoop<From, float>(from, to, count, toType, what);
  case DType::F64:
    return convertLoop<From, double>(from, to, count, toType, what);
  case DType::BF16:
    return convertLoop<From, BFloat>(from, to, count, toType, what);
  case DType::I32:
    return convertLoop<From, int32_t>(from, to, count, toType, what);
  case DType::I64:
    return convertLoop<From, int64_t>(from, to, count, toType, what);
  case DType::I1:
    return convertLoop<From, Boolean>(from, to, count, toType, what);
  }
}

} // namespace

uint64_t fileElementBytes(FileType type) {
  static constexpr uint8_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return sizes[uint32_t(type)];
}

const char *fileTypeName(FileType type) {
  static constexpr const char *names[] = {"bool", "u8",  "i8",  "u16",  "i16", "u32", "i32",
                                          "u64",  "i64", "f16", "bf16", "f32", "f64"};
  return names[uint32_t(type)];
}

bool isFloatType(FileType type) { return type >= FileType::F16; }

FileType fileTypeOf(DType type) {
  switch (type) {
  case DType::F32:
    return FileType::F32;
  case DType::F64:
    return FileType::F64;
  case DType::BF16:
    return FileType::BF16;
  case DType::I32:
    return FileType::I32;
  case DType::I64:
    return FileType::I64;
  case DType::I1:
    break;
  }
  return FileType::Bool;
}

bool canConvert(FileType from, DType to) {
  return !isFloatType(from) || to == DType::F32 || to == DType::F64 || to == DType::BF16;
}

void convert(const void *from, FileType fromType, void *to, DType toType, uint64_t count,
             const std::string &what) {
  if (count == 0)
    return; // of an empty tensor, which may have no address
  // A bool of a file may hold any byte; ours hold 0 or 1.
  if (fromType == fileTypeOf(toType) && fromType != FileType::Bool) {
    std::memcpy(to, from, count * fileElementBytes(fromType));
    return;
  }
  if (!canConvert(fromType, toType))
    badInput(what, ": cannot read ", fileTypeName(fromType), " as an integer");
  switch (fromType) {
  case FileType::Bool:
    return convertTo<Boolean>(from, to, toType, count, what);
  case FileType::U8:
    return convertTo<uint8_t>(from, to, toType, count, what);
  case FileType::I8:
    return convertTo<int8_t>(from, to, toType, count, what);
  case FileType::U16:
    return convertTo<uint16_t>(from, to, toType, count, what);
  case FileType::I16:
    return convertTo<int16_t>(from, to, toType, count, what);
  case FileType::U32:
    return convertTo<uint32_t>(from, to, toType, count, what);
  case FileType::I32:
    return convertTo<int32_t>(from, to, toType, count, what);
  case FileType::U64:
    return convertTo<uint64_t>(from, to, toType, count, what);
  case FileType::I64:
    return convertTo<int64_t>(from, to, toType, count, what);
  case FileType::F16:
    return convertTo<Half>(from, to, toType, count, what);
  case FileType::BF16:
    return convertTo<BFloat>(from, to, toType, count, what);
  case FileType::F32:
    return convertTo<float>(from, to, toType, count, what);
  case FileType::F64:
    return convertTo<double>(from, to, toType, count, what);
  }
}

double loadElement(const void *at, DType type, uint64_t index) {
  double value = 0;
  const char *element = static_cast<const char *>(at) + index * elementBytes(type);
  convert(element, fileTypeOf(type), &value, DType::F64, 1, "a value");
  return value;
}

void storeElement(void *at, DType type, uint64_t index, double value) {
  char *element = static_cast<char *>(at) + index * elementBytes(type);
  auto put = [&](auto converted) { std::memcpy(element, &converted, sizeof converted); };
  switch (type) {
  case DType::F32:
    return put(float(value));
  case DType::F64:
    return put(value);
  case DType::BF16:
    return put(floatToBf16(float(value)));
  case DType::I32:
    return put(int32_t(value));
  case DType::I64:
    return put(int64_t(value));
  case DType::I1:
    return put(uint8_t(value != 0));
  }
}

} // namespace shoal::rt
