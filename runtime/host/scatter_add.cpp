// One row after another, in the order of the numbers: sums are the same in every run, and rows that
// nobody names are written once, as zeros.
#include "host/scatter_add.h"
#include "core/element.h"

#include <algorithm>
#include <array>

namespace shoal::rt {
namespace {

struct BFloat16 {
  uint16_t bits;
};

float widen(BFloat16 value) { return bf16ToFloat(value.bits); }
float widen(float value) { return value; }
double widen(double value) { return value; }

// T is what rows hold, Sum what they are added up in.
template <typename Id, typename T, typename Sum> class ScatterAdd : public LibraryCall {
public:
  ScatterAdd(std::span<const int64_t> params, std::span<void *const> buffers)
      : count_(params[kScatterAddCount]), rows_(params[kScatterAddRows]),
        width_(params[kScatterAddWidth]) {
    size_t next = 0;
    ids_ = static_cast<const Id *>(buffers[next++]);
    values_ = static_cast<const T *>(buffers[next++]);
    offset_ = params[kScatterAddHasOffset] ? static_cast<const int64_t *>(buffers[next++]) : nullptr;
    output_ = buffers[next++];
    sums_ = static_cast<Sum *>(std::is_same_v<T, Sum> ? output_ : buffers[next]);
  }

  void run() override {
    std::fill_n(sums_, rows_ * width_, Sum(0));
    int64_t first = offset_ ? *offset_ : 0;
    for (int64_t k = 0; k < count_; ++k) {
      // The difference wraps for numbers that are no rows, as it does in kernels.
      uint64_t row = uint64_t(int64_t(ids_[k])) - uint64_t(first);
      if (row >= uint64_t(rows_))
        continue;
      Sum *sum = sums_ + int64_t(row) * width_;
      const T *value = values_ + k * width_;
      for (int64_t j = 0; j < width_; ++j)
        sum[j] += widen(value[j]);
    }
    if constexpr (!std::is_same_v<T, Sum>)
      for (int64_t i = 0; i < rows_ * width_; ++i)
        static_cast<T *>(output_)[i] = {floatToBf16(sums_[i])};
  }

private:
  int64_t count_, rows_, width_;
  const Id *ids_;
  const T *values_;
  const int64_t *offset_;
  void *output_;
  Sum *sums_;
};

template <typename Id>
std::unique_ptr<LibraryCall> make(std::span<const int64_t> params, std::span<void *const> buffers) {
  switch (DType(params[kScatterAddDType])) {
  case DType::F64:
    return std::make_unique<ScatterAdd<Id, double, double>>(params, buffers);
  case DType::BF16:
    return std::make_unique<ScatterAdd<Id, BFloat16, float>>(params, buffers);
  default:
    return std::make_unique<ScatterAdd<Id, float, float>>(params, buffers);
  }
}

} // namespace

std::unique_ptr<LibraryCall> makeScatterAdd(std::span<const int64_t> params,
                                            std::span<void *const> buffers) {
  return DType(params[kScatterAddDTypeIds]) == DType::I32 ? make<int32_t>(params, buffers)
                                                          : make<int64_t>(params, buffers);
}

} // namespace shoal::rt
