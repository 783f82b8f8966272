// Products in blocks of 1024 x 1024 x 1024, at which the library is fastest: what stands for the
// products of attention where a floor is wanted.
#ifndef SHOAL_BENCHMARKS_PRODUCTS_H
#define SHOAL_BENCHMARKS_PRODUCTS_H

#include "../runtime/host/gemm.h"

#include <algorithm>
#include <vector>

namespace shoal::rt {

// Values of both signs in [-1, 1]: neither denormal nor growing from product to product.
inline std::vector<float> someNumbers(int64_t elements, int64_t step) {
  std::vector<float> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(int64_t(i) * step % 101 - 50) / 50.0f;
  return values;
}

class BlockProducts {
public:
  // As many blocks as make so many multiplications; the last one is as thin as it takes.
  void run(double multiplications) {
    constexpr double kRow = double(kSize * kSize);
    for (double left = multiplications; left > 0; left -= kRow * double(kSize)) {
      int64_t rows = std::min(kSize, int64_t(left / kRow) + 1);
      blockGemm(false, false, rows, kSize, kSize, 1.0f, a_.data(), kSize, b_.data(), kSize, 0.0f,
                c_.data(), kSize);
    }
  }

private:
  static constexpr int64_t kSize = 1024;
  std::vector<float> a_ = someNumbers(kSize * kSize, 37), b_ = someNumbers(kSize * kSize, 41),
                     c_ = std::vector<float>(size_t(kSize * kSize));
};

} // namespace shoal::rt

#endif // SHOAL_BENCHMARKS_PRODUCTS_H
