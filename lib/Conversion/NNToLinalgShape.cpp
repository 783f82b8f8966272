// Shape ops. Reshape is a view, transpose and broadcast are maps; slices and pads compute the
// position they read, since a map cannot say where a dimension starts.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;

namespace shoal::lowering {
namespace {

Value copyElement(Scalars &, ValueRange x) { return x[0]; }

/// The loops' position, with `position` in place of loop `dim`.
SmallVector<Value> indicesWith(Scalars &s, int64_t rank, int64_t dim, Value position) {
  SmallVector<Value> indices;
  for (int64_t k = 0; k < rank; ++k)
    indices.push_back(k == dim ? s.toIndex(position) : s.b.create<linalg::IndexOp>(s.loc, k));
  return indices;
}

SmallVector<Value> reshape(nn::ReshapeOp op, ValueRange operands, LinalgBuilder &linalg) {
  return {linalg.reshape(operands[0], tensorType(op.getResult()))};
}

SmallVector<Value> transpose(nn::TransposeOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  SmallVector<AffineExpr> exprs(type.getRank());
  for (auto [to, from] : llvm::enumerate(op.getPermutation()))
    exprs[from] = linalg.b.getAffineDimExpr(to);
  Input input{operands[0], AffineMap::get(type.getRank(), 0, exprs, linalg.b.getContext())};
  return {linalg.move(type.getShape(), type.getElementType(), input, copyElement)};
}

SmallVector<Value> broadcast(nn::BroadcastOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  return {linalg.move(type.getShape(), type.getElementType(),
                      linalg.broadcast(operands[0], type.getShape()), copyElement)};
}

SmallVector<Value> slice(nn::SliceOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  return {
      linalg.move(type.getShape(), type.getElementType(), {}, [&](Scalars &s, ValueRange) -> Value {
        Value position = s.add(s.position(op.getDim()), s.integer(s.b.getI64Type(), op.getStart()));
        return s.b.create<tensor::ExtractOp>(s.loc, operands[0],
                                             indicesWith(s, type.getRank(), op.getDim(), position));
      })};
}

SmallVector<Value> dynamicSlice(nn::DynamicSliceOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t dim = op.getDim(), last = shapeOf(operands[0])[dim] - type.getDimSize(dim);
  return {linalg.move(type.getShape(), type.getElementType(),
                      linalg.scalar(operands[1], type.getRank()),
                      [&](Scalars &s, ValueRange x) -> Value {
                        Type i64 = s.b.getI64Type();
                        Value start = s.min(s.max(x[0], s.integer(i64, 0)), s.integer(i64, last));
                        Value position = s.add(start, s.position(dim));
                        return s.b.create<tensor::ExtractOp>(
                            s.loc, operands[0], indicesWith(s, type.getRank(), dim, position));
                      })};
}

/// The element of `tensor` whose index along `dim` is `position`, `other` where it has none. Outside,
/// some element is read and thrown away, so that the loop has no branch.
Value elementOr(Scalars &s, Value tensor, int64_t dim, Value position, Value other) {
  int64_t size = shapeOf(tensor)[dim];
  if (size == 0)
    return other;
  Type i64 = s.b.getI64Type();
  Value clamped = s.min(s.max(position, s.integer(i64, 0)), s.integer(i64, size - 1));
  Value element = s.b.create<tensor::ExtractOp>(
      s.loc, tensor, indicesWith(s, tensorType(tensor).getRank(), dim, clamped));
  return s.select(s.inRange(position, size), element, other);
}

/// Each row is read at its number, or at the nearest there is, and thrown away if that is another one.
SmallVector<Value> embedding(nn::EmbeddingOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t idsRank = tensorType(operands[1]).getRank(), rows = shapeOf(operands[0])[0];
  Type element = type.getElementType(), i64 = linalg.b.getI64Type();
  SmallVector<Input> inputs{{operands[1], AffineMap::getMultiDimIdentityMap(
                                              type.getRank(), linalg.b.getContext())
                                              .getMajorSubMap(idsRank)}};
  if (op.getOffset())
    inputs.push_back(linalg.scalar(operands[2], type.getRank()));
  return {linalg.move(type.getShape(), element, inputs, [&](Scalars &s, ValueRange x) -> Value {
    Value id = s.cast(x[0], i64), row = op.getOffset() ? s.sub(id, x[1]) : id;
    SmallVector<Value> indices{s.toIndex(s.min(s.max(row, s.integer(i64, 0)), s.integer(i64, rows - 1)))};
    for (int64_t d = idsRank; d < type.getRank(); ++d)
      indices.push_back(s.b.create<linalg::IndexOp>(s.loc, d));
    Value found = s.b.create<tensor::ExtractOp>(s.loc, operands[0], indices);
    Value here = s.select(s.inRange(row, rows), found, s.constant(element, 0));
    Value nan = s.constant(element, std::numeric_limits<double>::quiet_NaN());
    return s.select(s.inRange(id, op.getNumRows()), here, nan);
  })};
}

SmallVector<Value> pad(nn::PadOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t dim = op.getDim();
  return {
      linalg.move(type.getShape(), type.getElementType(), {}, [&](Scalars &s, ValueRange) -> Value {
        Value position = s.sub(s.position(dim), s.integer(s.b.getI64Type(), op.getLow()));
        return elementOr(s, operands[0], dim, position, s.constant(type.getElementType(), 0));
      })};
}

SmallVector<Value> concat(nn::ConcatOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t dim = op.getDim();
  return {
      linalg.move(type.getShape(), type.getElementType(), {}, [&](Scalars &s, ValueRange) -> Value {
        Value element = s.constant(type.getElementType(), 0);
        int64_t start = 0;
        for (Value operand : operands) {
          Value position = s.sub(s.position(dim), s.integer(s.b.getI64Type(), start));
          element = elementOr(s, operand, dim, position, element);
          start += shapeOf(operand)[dim];
        }
        return element;
      })};
}

SmallVector<Value> dynamicUpdateSlice(nn::DynamicUpdateSliceOp op, ValueRange operands,
                                      LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t dim = op.getDim(), last = type.getDimSize(dim) - shapeOf(operands[1])[dim];
  return {linalg.move(type.getShape(), type.getElementType(),
                      {linalg.same(operands[0]), linalg.scalar(operands[2], type.getRank())},
                      [&](Scalars &s, ValueRange x) -> Value {
                        Type i64 = s.b.getI64Type();
                        Value start = s.min(s.max(x[1], s.integer(i64, 0)), s.integer(i64, last));
                        return elementOr(s, operands[1], dim, s.sub(s.position(dim), start), x[0]);
                      })};
}

SmallVector<Value> iota(nn::IotaOp op, ValueRange, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  return {linalg.move(type.getShape(), type.getElementType(), {}, [&](Scalars &s, ValueRange) {
    return s.cast(s.position(op.getDim()), type.getElementType());
  })};
}

/// nn::Zigzag's rowAt, or with `isInverse` its placeOf, of what lies inside the dimension.
Value zigzagSource(Scalars &s, const nn::Zigzag &order, bool isInverse, Value at) {
  auto c = [&](int64_t value) { return s.integer(s.b.getI64Type(), value); };
  auto times = [&](Value x, int64_t y) { return s.mul(x, c(y)); };
  auto over = [&](Value x, int64_t y) -> Value { return s.b.create<arith::DivUIOp>(s.loc, x, c(y)); };
  auto isBelow = [&](Value x, Value y) -> Value {
    return s.b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::slt, x, y);
  };
  if (isInverse) {
    Value frontRank = over(at, order.front), inFront = s.sub(at, times(frontRank, order.front));
    Value fromEnd = s.sub(c(order.size - 1), at), backRank = over(fromEnd, std::max<int64_t>(1, order.back));
    Value end = s.min(c(order.size), times(s.add(backRank, c(1)), order.rows));
    Value inBack = s.add(s.sub(fromEnd, times(backRank, order.back)), c(1));
    return s.select(isBelow(at, c(order.fronts)), s.add(times(frontRank, order.rows), inFront), s.sub(end, inBack));
  }
  Value rank = over(at, order.rows), first = times(rank, order.rows), i = s.sub(at, first);
  Value stored = s.min(c(order.rows), s.sub(c(order.size), first));
  Value isFront = isBelow(i, over(s.add(stored, c(1)), 2));
  Value backBegin = s.sub(s.sub(c(order.size), times(rank, order.back)), stored);
  return s.select(isFront, s.add(times(rank, order.front), i), s.add(backBegin, i));
}

SmallVector<Value> zigzag(nn::ZigzagOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t rank = type.getRank(), dim = op.getDim();
  nn::Zigzag order = op.getOrder();
  SmallVector<Input> inputs;
  if (op.getOffset())
    inputs.push_back(linalg.scalar(operands[1], rank));
  return {linalg.move(type.getShape(), type.getElementType(), inputs, [&](Scalars &s, ValueRange x) -> Value {
    Value place = s.position(dim), inside = place;
    Type i64 = place.getType();
    if (op.getOffset()) {
      place = s.add(x[0], place);
      inside = s.min(s.max(place, s.integer(i64, 0)), s.integer(i64, order.size - 1));
    }
    Value source = zigzagSource(s, order, op.getInverse(), inside);
    Value element = s.b.create<tensor::ExtractOp>(s.loc, operands[0], indicesWith(s, rank, dim, source));
    if (!op.getOffset())
      return element;
    return s.select(s.inRange(place, order.size), element, s.constant(type.getElementType(), 0));
  })};
}

} // namespace

void attachShapeModels(MLIRContext &context) {
  attach<nn::ReshapeOp, reshape, LoweringKind::View>(context);
  attach<nn::TransposeOp, transpose>(context);
  attach<nn::BroadcastOp, broadcast>(context);
  attach<nn::SliceOp, slice>(context);
  attach<nn::DynamicSliceOp, dynamicSlice>(context);
  attach<nn::EmbeddingOp, embedding>(context);
  attach<nn::PadOp, pad>(context);
  attach<nn::ConcatOp, concat>(context);
  attach<nn::DynamicUpdateSliceOp, dynamicUpdateSlice>(context);
  attach<nn::IotaOp, iota>(context);
  attach<nn::ZigzagOp, zigzag>(context);
}

} // namespace shoal::lowering
