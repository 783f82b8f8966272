// Products against three nested loops: transposes, leading dimensions, batches, a shared
// operand, accumulation, in every type.
#include "core/element.h"
#include "host/gemm.h"
#include "shoal-rt/traffic.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace shoal::rt {
namespace {

struct Shape {
  int64_t m, n, k, batch;
  bool transA, transB, accumulate;
  int64_t padding;  // added to each leading dimension
  bool sharedB;     // one B for all batches
  DType in, out;
};

class Buffer {
public:
  Buffer(DType type, int64_t elements) : type_(type), bytes_(size_t(elements) * elementBytes(type)) {}
  double get(int64_t i) const { return loadElement(bytes_.data(), type_, uint64_t(i)); }
  void set(int64_t i, double value) { storeElement(bytes_.data(), type_, uint64_t(i), value); }
  void *data() { return bytes_.data(); }

private:
  DType type_;
  std::vector<char> bytes_;
};

void check(GemmCache &cache, const Shape &s) {
  int64_t rowsA = s.transA ? s.k : s.m, columnsA = s.transA ? s.m : s.k;
  int64_t rowsB = s.transB ? s.n : s.k, columnsB = s.transB ? s.k : s.n;
  int64_t ldA = columnsA + s.padding, ldB = columnsB + s.padding, ldC = s.n + s.padding;
  int64_t strideA = rowsA * ldA, strideB = s.sharedB ? 0 : rowsB * ldB, strideC = s.m * ldC;
  std::vector<int64_t> params(kGemmNumParams);
  params[kGemmM] = s.m;
  params[kGemmN] = s.n;
  params[kGemmK] = s.k;
  params[kGemmBatch] = s.batch;
  params[kGemmTransA] = s.transA;
  params[kGemmTransB] = s.transB;
  params[kGemmLdA] = ldA;
  params[kGemmLdB] = ldB;
  params[kGemmLdC] = ldC;
  params[kGemmStrideA] = strideA;
  params[kGemmStrideB] = strideB;
  params[kGemmStrideC] = strideC;
  params[kGemmAccumulate] = s.accumulate;
  params[kGemmDTypeIn] = int64_t(s.in);
  params[kGemmDTypeOut] = int64_t(s.out);

  Buffer a(s.in, s.batch * strideA), b(s.in, s.batch * rowsB * ldB), c(s.out, s.batch * strideC);
  // Multiples of 1/8 below 2: bf16 holds them, and f32 sums their products exactly.
  for (int64_t i = 0; i < s.batch * strideA; ++i)
    a.set(i, double(i * 7 % 31 - 15) / 8);
  for (int64_t i = 0; i < s.batch * rowsB * ldB; ++i)
    b.set(i, double(i * 5 % 29 - 14) / 8);
  std::vector<double> before;
  for (int64_t i = 0; i < s.batch * strideC; ++i) {
    c.set(i, double(i % 5));
    before.push_back(c.get(i));
  }
  cache.get(params).bind(a.data(), b.data(), c.data())->run();

  double tolerance = s.out == DType::BF16 ? 0x1p-7 : 1e-6;
  int64_t step = s.m < 256 ? 1 : 64; // of large products some rows, the first and the last
  for (int64_t z = 0; z < s.batch; ++z)
    for (int64_t i = 0; i < s.m; i += step)
      for (int64_t j = 0; j < ldC; ++j) {
        int64_t at = z * strideC + i * ldC + j;
        double want = j >= s.n || s.accumulate ? before[size_t(at)] : 0;
        for (int64_t l = 0; j < s.n && l < s.k; ++l)
          want += a.get(z * strideA + (s.transA ? l * ldA + i : i * ldA + l)) *
                  b.get(z * strideB + (s.transB ? j * ldB + l : l * ldB + j));
        ASSERT_NEAR(c.get(at), want, tolerance * std::max(1.0, std::abs(want)))
            << "batch " << z << " element " << i << ", " << j;
      }
}

TEST(Gemm, EveryFormInEveryType) {
  GemmCache cache;
  for (auto [in, out] : {std::pair(DType::F32, DType::F32), std::pair(DType::F64, DType::F64),
                         std::pair(DType::BF16, DType::F32), std::pair(DType::BF16, DType::BF16)})
    for (bool transA : {false, true})
      for (bool transB : {false, true})
        for (bool accumulate : {false, true})
          for (int64_t batch : {1, 3})
            for (int64_t padding : {0, 5}) {
              SCOPED_TRACE(testing::Message() << "types " << int(in) << " " << int(out) << " trans "
                                              << transA << transB << " accumulate " << accumulate
                                              << " batch " << batch << " padding " << padding);
              check(cache, {5, 7, 9, batch, transA, transB, accumulate, padding, false, in, out});
            }
}

// As large as those that another function of the library does.
TEST(Gemm, Large) {
  GemmCache cache;
  check(cache, {257, 512, 512, 1, false, false, false, 0, false, DType::F32, DType::F32});
  check(cache, {257, 515, 513, 2, true, false, true, 3, false, DType::F32, DType::F32});
  check(cache, {257, 515, 513, 2, false, false, false, 3, true, DType::F32, DType::F32});
}

TEST(Gemm, SmallAndSharedOperands) {
  GemmCache cache;
  for (auto [in, out] : {std::pair(DType::F32, DType::F32), std::pair(DType::F64, DType::F64)}) {
    check(cache, {1, 1, 1, 1, false, false, false, 0, false, in, out});
    check(cache, {1, 33, 17, 1, false, true, false, 0, false, in, out});
    check(cache, {4, 6, 8, 3, false, false, false, 0, true, in, out});
    check(cache, {33, 1, 64, 2, true, false, true, 0, false, in, out});
  }
}

} // namespace
} // namespace shoal::rt
