// Bytes that a program holds at a position, by class, counted from its arguments and rows there.
#ifndef SHOAL_RT_CORE_FOOTPRINT_H
#define SHOAL_RT_CORE_FOOTPRINT_H

#include "core/program.h"
#include "shoal-rt/report.h"

namespace shoal::rt {

// Parameters and optimizer state are held from step to step; gradients, activations and
// workspace count at the row at which most of them are in use, each from the first to the
// last row that is given any part of its storage there. Inputs count as activations. `peak` is
// left to whoever allocates.
BytesReport countBytes(const Program &program, uint32_t position);

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_FOOTPRINT_H
