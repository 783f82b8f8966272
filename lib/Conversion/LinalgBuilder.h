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

using namespace mlir;

inline RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }
inline Type elementType(Value value) { return tensorType(value).getElementType(); }
inline ArrayRef<int64_t> shapeOf(Value value) { return tensorType(value).getShape(); }

/// Scalar arithmetic on floats or signed integers, whichever the operands are.
struct Scalars {
  OpBuilder &b;
  Location loc;

  Value constant(Type type, double value);
  Value integer(Type type, int64_t value);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Integer division truncates; division by zero gives 0, as no kernel may trap.
  Value div(Value x, Value y);
  Value max(Value x, Value y); // NaN propagates
  Value min(Value x, Value y);
  Value exp(Value x);
  Value log(Value x);
  Value sqrt(Value x);
  Value select(Value condition, Value x, Value y);
  /// Between any two element types of nn; float to integer truncates, i1 is unsigned.
  Value cast(Value x, Type type);
  /// The position in loop `dim`, as i64.
  Value position(int64_t dim);
  Value toIndex(Value x);
  /// 0 <= x < limit, for i64 values; one unsigned comparison.
  Value inRange(Value x, int64_t limit);
  Value equal(Value x, Value y);
  /// One element of a tensor, in its compute type.
  Value extract(Value tensor, ValueRange indices);
};

/// An operand of a generic and the loops that index it.
struct Input {
  Value tensor;
  AffineMap map;
};

struct LinalgBuilder {
  OpBuilder &b;
  Location loc;

  using Body = function_ref<SmallVector<Value>(Scalars &, ValueRange)>;
  using Body1 = function_ref<Value(Scalars &, ValueRange)>;

  /// The operand at the loops' own position.
  Input same(Value tensor);
  /// The operand stretched to `shape` as numpy does.
  Input broadcast(Value tensor, ArrayRef<int64_t> shape);
  /// A 0-d operand, the same everywhere.
  Input scalar(Value tensor, int64_t rank);
  /// The operand that lacks loop `dim` (a statistic of rows).
  Input without(Value tensor, int64_t dim, int64_t rank);

  /// Computes one tensor of `shape` per element type.
  SmallVector<Value> elementwise(ArrayRef<int64_t> shape, ArrayRef<Type> elements,
                                 ArrayRef<Input> inputs, Body body);
  Value elementwise(ArrayRef<int64_t> shape, Type element, ArrayRef<Input> inputs, Body1 body);
  /// The same without widening, for ops that only move data.
  Value move(ArrayRef<int64_t> shape, Type element, ArrayRef<Input> inputs, Body1 body);
  /// Reduces `dims` of the loops `shape`; the body's last argument is the accumulator, which starts
  /// as `identity`. The result has a compute type; with `keepDims` reduced dimensions stay, of
  /// size 1.
  Value reduce(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, Type element, double identity,
               ArrayRef<Input> inputs, Body1 body, bool keepDims = false);
  /// The same elements in another shape, as a view.
  Value reshape(Value tensor, RankedTensorType type);
  /// `tensor` with its elements in `element`.
  Value cast(Value tensor, Type element);

private:
  SmallVector<Value> generic(ArrayRef<int64_t> shape, ArrayRef<Type> elements,
                             ArrayRef<Input> inputs, bool widen, Body body);
};

/// The parts of an op (`decompose` of its sharding rule), each lowered as itself.
SmallVector<Value> lowerByParts(ShardingRuleOpInterface op);

/// Attach the interface once `nn` is loaded.
void attachElementwiseModels(MLIRContext &context);
void attachShapeModels(MLIRContext &context);
void attachReductionModels(MLIRContext &context);
void attachNormModels(MLIRContext &context);
void attachRopeModels(MLIRContext &context);
void attachLossModels(MLIRContext &context);
void attachRandomModels(MLIRContext &context);
void attachUpdateModels(MLIRContext &context);
void attachLibraryModels(MLIRContext &context);

/// The interface of `Op` by a plain function.
template <typename Op, SmallVector<Value> (*lower)(Op, ValueRange, LinalgBuilder &),
          LoweringKind kind>
struct LinalgModel : LoweringOpInterface::ExternalModel<LinalgModel<Op, lower, kind>, Op> {
  LoweringKind getLoweringKind(Operation *) const { return kind; }
  FailureOr<SmallVector<Value>> lowerToLinalg(Operation *op, OpBuilder &builder,
                                              ValueRange operands) const {
    LinalgBuilder linalg{builder, op->getLoc()};
    return lower(cast<Op>(op), operands, linalg);
  }
};
template <typename Op, SmallVector<Value> (*lower)(Op, ValueRange, LinalgBuilder &),
          LoweringKind kind = LoweringKind::Kernel>
void attach(MLIRContext &context) {
  Op::template attachInterface<LinalgModel<Op, lower, kind>>(context);
}

} // namespace shoal::lowering

#endif // SHOAL_LIB_CONVERSION_LINALGBUILDER_H
