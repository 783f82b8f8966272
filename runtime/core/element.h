// Element types of files, and conversion between them and a program's types. Nothing is
// lost in silence: a float is never read as an integer, and an integer must fit.
#ifndef SHOAL_RT_CORE_ELEMENT_H
#define SHOAL_RT_CORE_ELEMENT_H

#include "shoal-rt/program.h"

#include <bit>
#include <string>

namespace shoal::rt {

enum class FileType : uint32_t { Bool, U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64 };

uint64_t fileElementBytes(FileType type);
const char *fileTypeName(FileType type); // "f32", "u8", ...
bool isFloatType(FileType type);
FileType fileTypeOf(DType type);

// Whether every value of `from`, or every one in range, is a value of `to`, up to the
// rounding of floats.
bool canConvert(FileType from, DType to);

// Converts `count` elements; `from` need not be aligned. Throws exit 2 with the value
// when it does not fit; `what` names the file.
void convert(const void *from, FileType fromType, void *to, DType toType, uint64_t count,
             const std::string &what);

// One value of a program's type, and back.
double loadElement(const void *at, DType type, uint64_t index);
void storeElement(void *at, DType type, uint64_t index, double value);

// Inline, so that loops over them are vectorized.
inline float bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

// To nearest, ties to even; NaN stays NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return value != value ? uint16_t(bits >> 16 | 0x40)
                        : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_ELEMENT_H
