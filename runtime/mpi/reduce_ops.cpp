// Reduction operators that MPI lacks.
#include "mpi/reduce_ops.h"
#include "core/element.h"
#include "mpi/combine.h"

namespace shoal::rt {
namespace {

template <Reduction kind, typename T>
void reduceFloat(void *in, void *inout, int *count, MPI_Datatype *) {
  const T *from = static_cast<const T *>(in);
  T *to = static_cast<T *>(inout);
  for (int i = 0; i < *count; ++i)
    to[i] = combine<kind>(from[i], to[i]);
}

template <Reduction kind> void reduceBf16(void *in, void *inout, int *count, MPI_Datatype *) {
  const uint16_t *from = static_cast<const uint16_t *>(in);
  uint16_t *to = static_cast<uint16_t *>(inout);
  for (int i = 0; i < *count; ++i)
    to[i] = floatToBf16(combine<kind>(bf16ToFloat(from[i]), bf16ToFloat(to[i])));
}

} // namespace

MPI_Datatype mpiType(DType type) {
  switch (type) {
  case DType::F32:
    return MPI_FLOAT;
  case DType::F64:
    return MPI_DOUBLE;
  case DType::BF16:
    return MPI_UINT16_T;
  case DType::I32:
    return MPI_INT32_T;
  case DType::I64:
    return MPI_INT64_T;
  case DType::I1:
    return MPI_UINT8_T;
  }
  return MPI_DATATYPE_NULL;
}

ReduceOps::ReduceOps() {
  constexpr int commutes = 1;
  MPI_Op_create(reduceBf16<Reduction::Sum>, commutes, &sumBf16_);
  MPI_Op_create(reduceBf16<Reduction::Max>, commutes, &maxBf16_);
  MPI_Op_create(reduceBf16<Reduction::Min>, commutes, &minBf16_);
  MPI_Op_create(reduceFloat<Reduction::Max, float>, commutes, &maxF32_);
  MPI_Op_create(reduceFloat<Reduction::Min, float>, commutes, &minF32_);
  MPI_Op_create(reduceFloat<Reduction::Max, double>, commutes, &maxF64_);
  MPI_Op_create(reduceFloat<Reduction::Min, double>, commutes, &minF64_);
}

ReduceOps::~ReduceOps() {
  for (MPI_Op *op : {&sumBf16_, &maxBf16_, &minBf16_, &maxF32_, &minF32_, &maxF64_, &minF64_})
    MPI_Op_free(op);
}

MPI_Op ReduceOps::get(DType type, Reduction reduction) const {
  auto choose = [&](MPI_Op sum, MPI_Op max, MPI_Op min) {
    return reduction == Reduction::Sum ? sum : reduction == Reduction::Max ? max : min;
  };
  switch (type) {
  case DType::F32:
    return choose(MPI_SUM, maxF32_, minF32_);
  case DType::F64:
    return choose(MPI_SUM, maxF64_, minF64_);
  case DType::BF16:
    return choose(sumBf16_, maxBf16_, minBf16_);
  default:
    return choose(MPI_SUM, MPI_MAX, MPI_MIN);
  }
}

} // namespace shoal::rt
