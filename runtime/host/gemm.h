// Matrix products on the host, by oneDNN (f32, bf16) or a BLAS (f64). What depends on the
// shape alone is made once and shared; a call is bound to its buffers once, and then run.
#ifndef SHOAL_RT_HOST_GEMM_H
#define SHOAL_RT_HOST_GEMM_H

#include "host/library_call.h"
#include "shoal-rt/program.h"

#include <array>
#include <map>
#include <memory>
#include <span>

namespace shoal::rt {

// A product of one shape, see GemmParam.
class Gemm {
public:
  virtual ~Gemm() = default;
  virtual std::unique_ptr<LibraryCall> bind(const void *a, const void *b, void *c) = 0;
};

class GemmCache {
public:
  // `params` holds kGemmNumParams numbers and is already checked. Throws exit 1 when the
  // library cannot do it.
  Gemm &get(std::span<const int64_t> params);

private:
  std::map<std::array<int64_t, kGemmNumParams>, std::unique_ptr<Gemm>> made_;
};

std::unique_ptr<Gemm> makeOneDnnGemm(std::span<const int64_t> params); // f32, bf16

// One product of blocks of larger matrices, unbound: C = alpha op(A) op(B) + beta C, row-major, `ld`
// elements between rows. C is only written when beta is 0.
void blockGemm(bool transA, bool transB, int64_t m, int64_t n, int64_t k, float alpha,
               const float *a, int64_t ldA, const float *b, int64_t ldB, float beta, float *c,
               int64_t ldC);
void blockGemm(bool transA, bool transB, int64_t m, int64_t n, int64_t k, double alpha,
               const double *a, int64_t ldA, const double *b, int64_t ldB, double beta, double *c,
               int64_t ldC);

// Threads that kernels of both libraries use in this process.
void setHostThreads(int threads);

} // namespace shoal::rt

#endif // SHOAL_RT_HOST_GEMM_H
