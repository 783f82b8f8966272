// The merge of attention over two parts of the keys. Attention itself is a library call.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace shoal::lowering {
namespace {

/// The log-sum-exp of both parts and the weight of each, of a row. A weight of 0 says that the part is left out.
SmallVector<Value> weighParts(Scalars &s, ValueRange lse) {
  Type type = lse[0].getType();
  Value one = s.constant(type, 1), zero = s.constant(type, 0);
  Value nothing = s.constant(type, -std::numeric_limits<double>::infinity());
  Value larger = s.max(lse[0], lse[1]), smaller = s.min(lse[0], lse[1]);
  // Of two empty parts the difference is no number, which is thrown away.
  Value isAlone = s.equal(smaller, nothing), e = s.exp(s.sub(smaller, larger));
  Value sum = s.add(one, e), more = s.select(isAlone, one, s.div(one, sum));
  Value less = s.select(isAlone, zero, s.div(e, sum));
  Value isSecondMore = s.b.create<arith::CmpFOp>(s.loc, arith::CmpFPredicate::OGT, lse[1], lse[0]);
  return {s.select(isAlone, larger, s.add(larger, s.log(sum))), s.select(isSecondMore, less, more),
          s.select(isSecondMore, more, less)};
}

SmallVector<Value> mergeAttention(nn::MergeAttentionOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getO());
  Type element = type.getElementType();
  int64_t rank = type.getRank(), last = rank - 1;
  Value o0 = operands[0], lse0 = operands[1], o1 = operands[2], lse1 = operands[3];
  SmallVector<Value> rows = linalg.elementwise(type.getShape().drop_back(), {element, element, element},
                                               {linalg.same(lse0), linalg.same(lse1)}, weighParts);
  Value o = linalg.elementwise(
      type.getShape(), element,
      {linalg.same(o0), linalg.same(o1), linalg.without(rows[1], last, rank), linalg.without(rows[2], last, rank)},
      [&](Scalars &s, ValueRange x) {
        // What is alone is taken as it is: times 1 plus 0 it would lose the sign of its zeros.
        Value zero = s.constant(element, 0), sum = s.add(s.mul(x[2], x[0]), s.mul(x[3], x[1]));
        return s.select(s.equal(x[3], zero), x[0], s.select(s.equal(x[2], zero), x[1], sum));
      });
  return {o, rows[0]};
}

} // namespace

void attachAttentionModels(MLIRContext &context) { attach<nn::MergeAttentionOp, mergeAttention>(context); }

} // namespace shoal::lowering
