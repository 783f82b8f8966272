// Numbers and outputs as text, for people: the log, `--print`.
#ifndef SHOAL_RT_CORE_PRINT_H
#define SHOAL_RT_CORE_PRINT_H

#include "core/box.h"

#include <string>

namespace shoal::rt {

// A number with so many digits; "nan" without a sign, in which platforms differ.
std::string numberText(double value, int digits);

// The logical elements of a box in row-major order, nested by dimension: "[[1, 2], [3, 4]]", a
// scalar bare. `data` is the box's buffer; padding is left out. The reference interpreter prints
// the same text (its option `outputs`).
std::string boxText(const Box &box, DType type, const char *data);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_PRINT_H
