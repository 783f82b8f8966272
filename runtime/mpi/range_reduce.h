// The arithmetic of collectives in windows: one range of elements, from the inputs of some
// ranks to the outputs of some.
#ifndef SHOAL_RT_MPI_RANGE_REDUCE_H
#define SHOAL_RT_MPI_RANGE_REDUCE_H

#include "shoal-rt/program.h"

namespace shoal::rt {

// Where the range lies in inputs, in group order, and in outputs. An output is its
// rank's input or apart from all inputs.
struct RangeBuffers {
  const char *const *in;
  char *const *out;
  uint32_t inputs, outputs;
};

// Reduces `bytes` from `offset` of all inputs, in rank order (bf16 in f32, rounded once),
// and writes the result to all outputs; past the caches with `stream`, which pays for
// buffers that they could not hold. What was streamed is visible to others after the
// function returns, as other stores are.
using RangeReduce = void (*)(const RangeBuffers &buffers, uint64_t offset, uint64_t bytes,
                             bool stream);

// The fastest one for this processor.
RangeReduce rangeReduce(DType type, Reduction reduction);

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_RANGE_REDUCE_H
