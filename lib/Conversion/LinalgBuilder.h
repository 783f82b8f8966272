// Shorthand for building `linalg.generic` on tensors of static shape: the loops are a shape,
// operands are read through maps, and bodies see compute types only (bf16 is storage: it is widened
// to f32 on the way in and rounded on the way out).
#ifndef SHOAL_LIB_CONVERSION_LINALGBUILDER_H
#define SHOAL_LIB_CONVERSION_LINALGBUILDER_H

#include "shoal/Interfaces/Lowering.h"
#include "shoal/Interfaces/ShardingRule.h"
#include "shoal/Support/Elements.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace shoal::lowering {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline mlir::Type elementType(mlir::Value value) { return tensorType(value).getElementType(); }
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return tensorType(value).getShape(); }

/// Scalar arithmetic on floats or signed integers, whichever the operands are.
struct Scalars {
  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Value constant(mlir::Type type, double value);
  mlir::Value integer(mlir::Type type, int64_t value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Integer division truncates; division by zero gives 0, as no kernel may trap.
  mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value max(mlir::Value x, mlir::Value y); // NaN propagates
  mlir::Value min(mlir::Value x, mlir::Value y);
  mlir::Value exp(mlir::Value x);
  mlir::Value log(mlir::Value x);
  mlir::Value sqrt(mlir::Value x);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Between any two element types of nn; float to integer truncates, i1 is unsigned.
  mlir::Value cast(mlir::Value x, mlir::Type type);
  /// The position in loop `dim`, as i64.
  mlir::Value position(int64_t dim);
  mlir::Value toIndex(mlir::Value x);
  /// 0 <= x < limit, for i64 values; one unsigned comparison.
  mlir::Value inRange(mlir::Value x, int64_t limit);
  mlir::Value equal(mlir::Value x, mlir::Value y);
  /// One element of a tensor, in its compute type.
  mlir::Value extract(mlir::Value tensor, mlir::ValueRange indices);
};

/// An operand of a generic and the loops that index it.
struct Input {
  mlir::Value tensor;
  mlir::AffineMap map;
};

struct LinalgBuilder {
  mlir::OpBuilder &b;
  mlir::Location loc;

  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(Scalars &, mlir::ValueRange)>;
  using Body1 = llvm::function_ref<mlir::Value(Scalars &, mlir::ValueRange)>;

  /// The operand at the loops' own position.
  Input same(mlir::Value tensor);
  /// The operand stretched to `shape` as numpy does.
  Input broadcast(mlir::Value tensor, llvm::ArrayRef<int64_t> shape);
  /// A 0-d operand, the same everywhere.
  Input scalar(mlir::Value tensor, int64_t rank);
  /// The operand that lacks loop `dim` (a statistic of rows).
  Input without(mlir::Value tensor, int64_t dim, int64_t rank);

  /// Computes one tensor of `shape` per element type.
  llvm::SmallVector<mlir::Value> elementwise(llvm::ArrayRef<int64_t> shape,
                                             llvm::ArrayRef<mlir::Type> elements,
                                             llvm::ArrayRef<Input> inputs, Body body);
  mlir::Value elementwise(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                          llvm::ArrayRef<Input> inputs, Body1 body);
  /// The same without widening, for ops that only move data.
  mlir::Value move(llvm::ArrayRef<int64_t> shape, mlir::Type element, llvm::ArrayRef<Input> inputs,
                   Body1 body);
  /// Reduces `dims` of the loops `shape`; the body's last argument is the accumulator, which starts
  /// as `identity`. The result has a compute type; with `keepDims` reduced dimensions stay, of
  /// size 1.
  mlir::Value reduce(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dims,
                     mlir::Type element, double identity, llvm::ArrayRef<Input> inputs, Body1 body,
                     bool keepDims = false);
  /// The same elements in another shape, as a view.
  mlir::Value reshape(mlir::Value tensor, mlir::RankedTensorType type);
  /// `tensor` with its elements in `element`.
  mlir::Value cast(mlir::Value tensor, mlir::Type element);

private:
  llvm::SmallVector<mlir::Value> generic(llvm::ArrayRef<int64_t> shape,
                                         llvm::ArrayRef<mlir::Type> elements,
                                         llvm::ArrayRef<Input> inputs, bool widen, Body body);
};

/// The parts of an op (`decompose` of its sharding rule), each lowered as itself.
llvm::SmallVector<mlir::Value> lowerByParts(ShardingRuleOpInterface op);

/// Attach the interface once `nn` is loaded.
void attachAttentionModels(mlir::MLIRContext &context);
void attachElementwiseModels(mlir::MLIRContext &context);
void attachShapeModels(mlir::MLIRContext &context);
void attachReductionModels(mlir::MLIRContext &context);
void attachNormModels(mlir::MLIRContext &context);
void attachRopeModels(mlir::MLIRContext &context);
void attachLossModels(mlir::MLIRContext &context);
void attachRandomModels(mlir::MLIRContext &context);
void attachUpdateModels(mlir::MLIRContext &context);
void attachLibraryModels(mlir::MLIRContext &context);

/// The interface of `Op` by a plain function.
template <typename Op,
          llvm::SmallVector<mlir::Value> (*lower)(Op, mlir::ValueRange, LinalgBuilder &),
          LoweringKind kind>
struct LinalgModel : LoweringOpInterface::ExternalModel<LinalgModel<Op, lower, kind>, Op> {
  LoweringKind getLoweringKind(mlir::Operation *) const { return kind; }
  llvm::FailureOr<llvm::SmallVector<mlir::Value>>
  lowerToLinalg(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange operands) const {
    LinalgBuilder linalg{builder, op->getLoc()};
    return lower(llvm::cast<Op>(op), operands, linalg);
  }
};
template <typename Op,
          llvm::SmallVector<mlir::Value> (*lower)(Op, mlir::ValueRange, LinalgBuilder &),
          LoweringKind kind = LoweringKind::Kernel>
void attach(mlir::MLIRContext &context) {
  Op::template attachInterface<LinalgModel<Op, lower, kind>>(context);
}

} // namespace shoal::lowering

#endif // SHOAL_LIB_CONVERSION_LINALGBUILDER_H
