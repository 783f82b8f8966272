// Rotary embedding: the table of cosines and sines, and the rotation of pairs by it.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace shoal::lowering {
namespace {

SmallVector<Value> rope(nn::RopeOp op, ValueRange, LinalgBuilder &) { return lowerByParts(op); }

/// In f64, whatever the table's type: a position times a frequency has digits before the point that the
/// sine does not see, and in f32 no room for the others. Frequencies are a constant, so that no power is
/// computed in the kernel.
SmallVector<Value> table(nn::RopeTableOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getCos());
  ArrayRef<int64_t> shape = type.getShape();
  Type f64 = linalg.b.getF64Type();
  auto frequencies = DenseElementsAttr::get(RankedTensorType::get({shape.back()}, f64),
                                            ArrayRef(op.getFrequencies()));
  Value constant = linalg.b.create<arith::ConstantOp>(linalg.loc, frequencies);
  int64_t rank = shape.size();
  return linalg.elementwise(
      shape, {type.getElementType(), type.getElementType()},
      {linalg.without(operands[0], rank - 1, rank), linalg.broadcast(constant, shape)},
      [&](Scalars &s, ValueRange x) -> SmallVector<Value> {
        Value angle = s.mul(s.cast(x[0], f64), x[1]);
        return {s.b.create<math::CosOp>(s.loc, angle), s.b.create<math::SinOp>(s.loc, angle)};
      });
}

/// The partner of an element lies in the other half of the pair, at a place that does not depend on the
/// innermost loop, which so reads and writes neighbours.
SmallVector<Value> rotate(nn::RotateOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t rank = type.getRank(), half = rank - 2;
  // The table's rows are those of the sequence, or of batch and sequence.
  int64_t tableRank = tensorType(operands[1]).getRank();
  SmallVector<AffineExpr> exprs;
  for (int64_t d = 3 - tableRank; d < 2; ++d)
    exprs.push_back(linalg.b.getAffineDimExpr(d));
  exprs.push_back(linalg.b.getAffineDimExpr(rank - 1));
  AffineMap map = AffineMap::get(rank, 0, exprs, linalg.b.getContext());
  Type compute = elementType(operands[1]);
  return {linalg.elementwise(
      type.getShape(), type.getElementType(),
      {linalg.same(operands[0]), {operands[1], map}, {operands[2], map}},
      [&](Scalars &s, ValueRange x) -> Value {
        Type i64 = s.b.getI64Type();
        Value place = s.position(half), one = s.integer(i64, 1);
        SmallVector<Value> partner;
        for (int64_t d = 0; d < rank; ++d)
          partner.push_back(d == half ? s.toIndex(s.sub(one, place))
                                      : s.b.create<linalg::IndexOp>(s.loc, d).getResult());
        Value other = s.extract(operands[0], partner);
        // The first of a pair turns against the second, or with it on the way back.
        Value isNegated = s.equal(place, s.integer(i64, op.getInverse() ? 1 : 0));
        Value sin = s.select(isNegated, s.sub(s.constant(compute, 0), x[2]), x[2]);
        return s.add(s.mul(x[0], x[1]), s.mul(other, sin));
      })};
}

} // namespace

void attachRopeModels(MLIRContext &context) {
  attach<nn::RopeOp, rope>(context);
  attach<nn::RopeTableOp, table>(context);
  attach<nn::RotateOp, rotate>(context);
}

} // namespace shoal::lowering
