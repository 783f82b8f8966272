// Chooses the library for a product, and the products in f64, which go to a BLAS since
// oneDNN has none.
#include "host/gemm.h"

#include <algorithm>

#include <cblas.h>

extern "C" void omp_set_num_threads(int threads); // libgomp, which oneDNN runs on

namespace shoal::rt {
namespace {

class BlasGemm : public Gemm {
public:
  explicit BlasGemm(std::span<const int64_t> params) {
    std::copy(params.begin(), params.end(), p_.begin());
  }

  std::unique_ptr<LibraryCall> bind(const void *a, const void *b, void *c) override {
    struct Call : LibraryCall {
      Call(const BlasGemm &gemm, const void *a, const void *b, void *c)
          : gemm(gemm), a(static_cast<const double *>(a)), b(static_cast<const double *>(b)),
            c(static_cast<double *>(c)) {}
      void run() override { gemm.run(a, b, c); }
      const BlasGemm &gemm;
      const double *a, *b;
      double *c;
    };
    return std::make_unique<Call>(*this, a, b, c);
  }

private:
  void run(const double *a, const double *b, double *c) const {
    for (int64_t i = 0; i < p_[kGemmBatch]; ++i)
      blockGemm(p_[kGemmTransA], p_[kGemmTransB], p_[kGemmM], p_[kGemmN], p_[kGemmK], 1.0,
                a + i * p_[kGemmStrideA], p_[kGemmLdA], b + i * p_[kGemmStrideB], p_[kGemmLdB],
                p_[kGemmAccumulate] ? 1.0 : 0.0, c + i * p_[kGemmStrideC], p_[kGemmLdC]);
  }

  std::array<int64_t, kGemmNumParams> p_;
};

} // namespace

std::unique_ptr<Gemm> makeBlasGemm(std::span<const int64_t> params) {
  return std::make_unique<BlasGemm>(params);
}

Gemm &GemmCache::get(std::span<const int64_t> params) {
  std::array<int64_t, kGemmNumParams> key;
  std::copy(params.begin(), params.end(), key.begin());
  std::unique_ptr<Gemm> &gemm = made_[key];
  if (!gemm)
    gemm = DType(params[kGemmDTypeIn]) == DType::F64 ? makeBlasGemm(params)
                                                     : makeOneDnnGemm(params);
  return *gemm;
}

void blockGemm(bool transA, bool transB, int64_t m, int64_t n, int64_t k, double alpha,
               const double *a, int64_t ldA, const double *b, int64_t ldB, double beta, double *c,
               int64_t ldC) {
  cblas_dgemm(CblasRowMajor, transA ? CblasTrans : CblasNoTrans, transB ? CblasTrans : CblasNoTrans,
              int(m), int(n), int(k), alpha, a, int(ldA), b, int(ldB), beta, c, int(ldC));
}

void setHostThreads(int threads) {
  omp_set_num_threads(threads);
  openblas_set_num_threads(threads);
}

} // namespace shoal::rt
