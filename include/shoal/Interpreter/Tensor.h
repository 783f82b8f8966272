// A host tensor of the reference interpreter: plain, slow and obviously right. Floats are held as
// double whatever the element type; integers and booleans as int64_t. In `Precision::Program`
// float results are rounded to the element type after every op, in `Precision::F64` they are not.
#ifndef SHOAL_INTERPRETER_TENSOR_H
#define SHOAL_INTERPRETER_TENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Location.h"

#include <cstdint>
#include <vector>

namespace shoal::interp {

struct Tensor {
  mlir::RankedTensorType type; // static shape
  std::vector<double> f;       // float elements, row-major
  std::vector<int64_t> i;      // integer and i1 elements, row-major

  Tensor() = default;
  /// Zeros of the given type.
  explicit Tensor(mlir::RankedTensorType type) : type(type) {
    if (isFloat())
      f.assign(type.getNumElements(), 0.0);
    else
      i.assign(type.getNumElements(), 0);
  }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type.getElementType()); }
  int64_t size() const { return type.getNumElements(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  double at(int64_t k) const { return isFloat() ? f[k] : double(i[k]); }
  void set(int64_t k, double v) {
    if (isFloat())
      f[k] = v;
    else
      i[k] = int64_t(v);
  }
  /// Element k becomes element j of a tensor of the same element type.
  void copy(int64_t k, const Tensor &from, int64_t j) {
    if (isFloat())
      f[k] = from.f[j];
    else
      i[k] = from.i[j];
  }
};

/// Fails with an error at `loc` when a value of the type does not fit this machine's memory.
mlir::LogicalResult checkFits(mlir::Location loc, mlir::RankedTensorType type);

} // namespace shoal::interp

#endif // SHOAL_INTERPRETER_TENSOR_H
