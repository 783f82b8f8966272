// MPI element types and reduction operators of a program's types.
#ifndef SHOAL_RT_MPI_REDUCE_OPS_H
#define SHOAL_RT_MPI_REDUCE_OPS_H

#include "shoal-rt/program.h"

#include <mpi.h>

namespace shoal::rt {

// bf16 travels as 16-bit words and is summed in f32 per pair. Float maxima and minima are
// our own: MPI's drop NaN, which must stay visible. i1 is a byte: max is or, min is and.
MPI_Datatype mpiType(DType type);

class ReduceOps {
public:
  ReduceOps();
  ~ReduceOps();
  ReduceOps(const ReduceOps &) = delete;
  ReduceOps &operator=(const ReduceOps &) = delete;
  MPI_Op get(DType type, Reduction reduction) const;

private:
  MPI_Op sumBf16_, maxBf16_, minBf16_, maxF32_, minF32_, maxF64_, minF64_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_REDUCE_OPS_H
