// Text of a box, dimension by dimension.
#include "core/print.h"
#include "core/element.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace shoal::rt {
namespace {

void appendElement(std::string &text, DType type, const char *data, uint64_t index) {
  double value = loadElement(data, type, index);
  if (type == DType::I64) { // more digits than a double has
    char number[32];
    int64_t integer;
    std::memcpy(&integer, data + index * sizeof integer, sizeof integer);
    std::snprintf(number, sizeof number, "%lld", static_cast<long long>(integer));
    text += number;
  } else {
    text += numberText(value, 9);
  }
}

void appendDims(std::string &text, const Box &box, DType type, const char *data, size_t dim,
                uint64_t first) {
  if (dim == box.dims.size())
    return appendElement(text, type, data, first);
  uint64_t stride = 1;
  for (size_t inner = dim + 1; inner < box.dims.size(); ++inner)
    stride *= box.dims[inner].local;
  const BoxDim &here = box.dims[dim];
  text += "[";
  for (uint64_t i = 0; i < here.valid; ++i) {
    text += i ? ", " : "";
    appendDims(text, box, type, data, dim + 1, first + (here.localStart + i) * stride);
  }
  text += "]";
}

} // namespace

std::string numberText(double value, int digits) {
  if (std::isnan(value))
    return "nan";
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string boxText(const Box &box, DType type, const char *data) {
  std::string text;
  appendDims(text, box, type, data, 0, 0);
  return text;
}

} // namespace shoal::rt
