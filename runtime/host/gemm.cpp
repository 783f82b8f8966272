// Chooses the library's function for a product: oneDNN's primitive, or plain gemm, which is a BLAS's in
// f64, since oneDNN has none.
#include "host/gemm.h"

#include <algorithm>

#include <cblas.h>

extern "C" void omp_set_num_threads(int threads); // libgomp, which oneDNN runs on

namespace shoal::rt {
namespace {

template <typename T> class PlainGemm : public Gemm {
public:
  explicit PlainGemm(std::span<const int64_t> params) {
    std::copy(params.begin(), params.end(), p_.begin());
  }

  std::unique_ptr<LibraryCall> bind(const void *a, const void *b, void *c) override {
    struct Call : LibraryCall {
      Call(const PlainGemm &gemm, const void *a, const void *b, void *c)
          : gemm(gemm), a(static_cast<const T *>(a)), b(static_cast<const T *>(b)),
            c(static_cast<T *>(c)) {}
      void run() override { gemm.run(a, b, c); }
      const PlainGemm &gemm;
      const T *a, *b;
      T *c;
    };
    return std::make_unique<Call>(*this, a, b, c);
  }

private:
  void run(const T *a, const T *b, T *c) const {
    for (int64_t i = 0; i < p_[kGemmBatch]; ++i)
      blockGemm(p_[kGemmTransA], p_[kGemmTransB], p_[kGemmM], p_[kGemmN], p_[kGemmK], T(1),
                a + i * p_[kGemmStrideA], p_[kGemmLdA], b + i * p_[kGemmStrideB], p_[kGemmLdB],
                T(p_[kGemmAccumulate] ? 1 : 0), c + i * p_[kGemmStrideC], p_[kGemmLdC]);
  }

  std::array<int64_t, kGemmNumParams> p_;
};

// Large products of f32 are faster by oneDNN's sgemm than by its primitive, by 4 to 12 in 100 on
// processors with AVX-512, unless B is transposed; small ones hardly differ, or are slower. Others
// were not measured and have the primitive.
bool isFasterPlain(std::span<const int64_t> p) {
  return __builtin_cpu_supports("avx512f") && DType(p[kGemmDTypeIn]) == DType::F32 &&
         DType(p[kGemmDTypeOut]) == DType::F32 && !p[kGemmTransB] && p[kGemmM] >= 256 && p[kGemmN] >= 512 &&
         p[kGemmK] >= 512;
}

std::unique_ptr<Gemm> makeGemm(std::span<const int64_t> params) {
  if (DType(params[kGemmDTypeIn]) == DType::F64)
    return std::make_unique<PlainGemm<double>>(params);
  if (isFasterPlain(params))
    return std::make_unique<PlainGemm<float>>(params);
  return makeOneDnnGemm(params);
}

} // namespace

Gemm &GemmCache::get(std::span<const int64_t> params) {
  std::array<int64_t, kGemmNumParams> key;
  std::copy(params.begin(), params.end(), key.begin());
  std::unique_ptr<Gemm> &gemm = made_[key];
  if (!gemm)
    gemm = makeGemm(params);
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
