// Elements of a file as every type of a program that they convert to.
#ifndef SHOAL_FUZZ_CONVERSIONS_H
#define SHOAL_FUZZ_CONVERSIONS_H

#include "Target.h"
#include "core/element.h"
#include "shoal-rt/traffic.h"

#include <vector>

namespace shoal::fuzz {

inline void convertToEveryType(const unsigned char *data, rt::FileType from, uint64_t elements,
                               const std::string &path) {
  using rt::DType;
  for (DType type : {DType::F32, DType::F64, DType::BF16, DType::I32, DType::I64, DType::I1}) {
    if (!rt::canConvert(from, type))
      continue;
    std::vector<char> to(elements * rt::elementBytes(type));
    expectOneLine([&] { rt::convert(data, from, to.data(), type, elements, path); });
  }
}

} // namespace shoal::fuzz

#endif // SHOAL_FUZZ_CONVERSIONS_H
