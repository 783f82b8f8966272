// Reductions, softmax and the losses. Statistics of rows (maximum, sum of exponentials) are values
// of their own over the rows, so that the loop fusion of the target can keep a row in cache.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace shoal::lowering {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value addToLast(Scalars &s, ValueRange x) { return s.add(x[1], x[0]); }

SmallVector<Value> reduce(nn::ReduceOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  ArrayRef<int64_t> shape = shapeOf(operands[0]);
  bool isMax = op.getKind() == nn::Reduce::max;
  Value result = linalg.reduce(
      shape, op.getDims(), type.getElementType(), isMax ? -kInfinity : 0.0,
      linalg.same(operands[0]),
      [&](Scalars &s, ValueRange x) { return isMax ? s.max(x[1], x[0]) : s.add(x[1], x[0]); },
      op.getKeepDims());
  return {linalg.cast(result, type.getElementType())};
}

/// Maximum and sum of exp(x - maximum) over a dimension, without that dimension.
struct RowStatistics {
  Value max, sum;
};

RowStatistics rowStatistics(LinalgBuilder &linalg, Value x, int64_t dim) {
  int64_t rank = tensorType(x).getRank();
  Value max = linalg.reduce(shapeOf(x), dim, elementType(x), -kInfinity, linalg.same(x),
                            [](Scalars &s, ValueRange x) { return s.max(x[1], x[0]); });
  Value sum = linalg.reduce(
      shapeOf(x), dim, elementType(x), 0, {linalg.same(x), linalg.without(max, dim, rank)},
      [](Scalars &s, ValueRange x) { return s.add(x[2], s.exp(s.sub(x[0], x[1]))); });
  return {max, sum};
}

Value logOf(LinalgBuilder &linalg, Value x) {
  return linalg.elementwise(shapeOf(x), elementType(x), linalg.same(x),
                            [](Scalars &s, ValueRange x) { return s.log(x[0]); });
}

SmallVector<Value> softmax(nn::SoftmaxOp op, ValueRange operands, LinalgBuilder &linalg) {
  Value x = operands[0];
  ArrayRef<int64_t> shape = shapeOf(x);
  int64_t dim = op.getDim(), rank = shape.size();
  Type compute = computeType(elementType(x));
  Value max = linalg.reduce(shape, dim, compute, -kInfinity, linalg.same(x),
                            [](Scalars &s, ValueRange x) { return s.max(x[1], x[0]); });
  // The exponentials are kept, as computing them twice costs more than a row in cache.
  Value exp = linalg.elementwise(shape, compute, {linalg.same(x), linalg.without(max, dim, rank)},
                                 [](Scalars &s, ValueRange x) { return s.exp(s.sub(x[0], x[1])); });
  Value sum = linalg.reduce(shape, dim, compute, 0, linalg.same(exp), addToLast);
  return {linalg.elementwise(shape, elementType(x),
                             {linalg.same(exp), linalg.without(sum, dim, rank)},
                             [](Scalars &s, ValueRange x) { return s.div(x[0], x[1]); })};
}

SmallVector<Value> logSoftmax(nn::LogSoftmaxOp op, ValueRange operands, LinalgBuilder &linalg) {
  Value x = operands[0];
  int64_t dim = op.getDim(), rank = tensorType(x).getRank();
  RowStatistics rows = rowStatistics(linalg, x, dim);
  Value logSum = logOf(linalg, rows.sum);
  return {linalg.elementwise(
      shapeOf(x), elementType(x),
      {linalg.same(x), linalg.without(rows.max, dim, rank), linalg.without(logSum, dim, rank)},
      [](Scalars &s, ValueRange x) { return s.sub(s.sub(x[0], x[1]), x[2]); })};
}

SmallVector<Value> mseLoss(nn::MseLossOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(operands[0]);
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  Value loss = linalg.reduce(type.getShape(), all, type.getElementType(), 0,
                             {linalg.same(operands[0]), linalg.same(operands[1])},
                             [](Scalars &s, ValueRange x) {
                               Value difference = s.sub(x[0], x[1]);
                               return s.add(x[2], s.mul(difference, difference));
                             });
  return {linalg.cast(loss, elementType(op.getLoss()))};
}

/// Per row: the loss, before rows are added up. `logSum` is the logarithm of the rows' sum.
Value rowLosses(nn::CrossEntropyOp op, Value logits, Value targets, RowStatistics rows, Value logSum,
                LinalgBuilder &linalg) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  int64_t last = shape.size() - 1, rank = shape.size(), classes = shape[last];
  Type compute = computeType(elementType(logits));
  SmallVector<Input> statistics{linalg.same(logits), linalg.without(rows.max, last, rank),
                                linalg.without(logSum, last, rank)};
  if (isa<FloatType>(elementType(targets))) {
    statistics.push_back(linalg.same(targets));
    return linalg.reduce(shape, last, compute, 0, statistics, [&](Scalars &s, ValueRange x) {
      Value logProbability = s.sub(s.sub(x[0], x[1]), x[2]);
      return s.sub(x[4], s.mul(s.cast(x[3], compute), logProbability));
    });
  }
  // The target's logit by comparison, not by an indexed read: logits may never be stored.
  statistics.push_back(linalg.without(targets, last, rank));
  Value picked = linalg.reduce(shape, last, compute, 0, statistics, [&](Scalars &s, ValueRange x) {
    Value isTarget = s.equal(s.cast(x[3], s.b.getI64Type()), s.position(last));
    Value loss = s.sub(x[2], s.sub(x[0], x[1]));
    return s.add(x[4], s.select(isTarget, loss, s.constant(compute, 0)));
  });
  return linalg.elementwise(shape.drop_back(), compute, {linalg.same(picked), linalg.same(targets)},
                            [&](Scalars &s, ValueRange x) {
                              Value target = s.cast(x[1], s.b.getI64Type());
                              Value nan =
                                  s.constant(compute, std::numeric_limits<double>::quiet_NaN());
                              Value loss = s.select(s.inRange(target, classes), x[0], nan);
                              Value ignored =
                                  s.equal(target, s.integer(target.getType(), op.getIgnoreIndex()));
                              return s.select(ignored, s.constant(compute, 0), loss);
                            });
}

SmallVector<Value> crossEntropy(nn::CrossEntropyOp op, ValueRange operands, LinalgBuilder &linalg) {
  Value logits = operands[0], targets = operands[1];
  RowStatistics statistics = rowStatistics(linalg, logits, tensorType(logits).getRank() - 1);
  Value logSum = logOf(linalg, statistics.sum);
  Value losses = rowLosses(op, logits, targets, statistics, logSum, linalg);
  Type compute = elementType(losses);
  Value lse = linalg.elementwise(shapeOf(losses), compute,
                                 {linalg.same(statistics.max), linalg.same(logSum)},
                                 [](Scalars &s, ValueRange x) { return s.add(x[0], x[1]); });
  ArrayRef<int64_t> rows = shapeOf(losses);
  auto all = llvm::to_vector(llvm::seq<int64_t>(0, rows.size()));
  Value loss = linalg.reduce(rows, all, compute, 0, linalg.same(losses), addToLast);
  return {linalg.cast(loss, elementType(op.getLoss())), lse};
}

SmallVector<Value> crossEntropyGrad(nn::CrossEntropyGradOp op, ValueRange operands,
                                    LinalgBuilder &linalg) {
  Value logits = operands[0], targets = operands[1], lse = operands[2], scale = operands[3];
  ArrayRef<int64_t> shape = shapeOf(logits);
  int64_t last = shape.size() - 1, rank = shape.size(), classes = shape[last];
  Type element = elementType(logits), compute = computeType(element);
  SmallVector<Input> inputs{linalg.same(logits), linalg.without(lse, last, rank),
                            linalg.scalar(scale, rank)};
  if (isa<FloatType>(elementType(targets))) {
    Value mass =
        linalg.reduce(shape, last, compute, 0, linalg.same(targets),
                      [&](Scalars &s, ValueRange x) { return s.add(x[1], s.cast(x[0], compute)); });
    inputs.append({linalg.same(targets), linalg.without(mass, last, rank)});
    return {linalg.elementwise(shape, element, inputs, [&](Scalars &s, ValueRange x) {
      Value softmax = s.exp(s.sub(x[0], x[1]));
      return s.mul(s.cast(x[2], compute), s.sub(s.mul(softmax, x[4]), s.cast(x[3], compute)));
    })};
  }
  inputs.push_back(linalg.without(targets, last, rank));
  return {linalg.elementwise(shape, element, inputs, [&](Scalars &s, ValueRange x) {
    Value target = s.cast(x[3], s.b.getI64Type());
    Value zero = s.constant(compute, 0), one = s.constant(compute, 1);
    Value probability = s.select(s.equal(target, s.position(last)), one, zero);
    Value gradient = s.mul(s.cast(x[2], compute), s.sub(s.exp(s.sub(x[0], x[1])), probability));
    Value nan = s.constant(compute, std::numeric_limits<double>::quiet_NaN());
    Value ignored = s.equal(target, s.integer(target.getType(), op.getIgnoreIndex()));
    return s.select(ignored, zero, s.select(s.inRange(target, classes), gradient, nan));
  })};
}

} // namespace

void attachReductionModels(MLIRContext &context) {
  attach<nn::ReduceOp, reduce>(context);
  attach<nn::SoftmaxOp, softmax>(context);
  attach<nn::LogSoftmaxOp, logSoftmax>(context);
}

void attachLossModels(MLIRContext &context) {
  attach<nn::MseLossOp, mseLoss>(context);
  attach<nn::CrossEntropyOp, crossEntropy>(context);
  attach<nn::CrossEntropyGradOp, crossEntropyGrad>(context);
}

} // namespace shoal::lowering
