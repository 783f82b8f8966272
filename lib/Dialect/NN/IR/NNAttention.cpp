// nn.attention and nn.attention_grad: what they accept, and the gradient.
#include "Build.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

// Types.

RankedTensorType AttentionOp::getLseType(Type o) { return getRowStatisticType(o); }

/// What both ops ask of their tensors and masks.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  auto q = op.getQ().getType(), k = op.getK().getType();
  if (q.getRank() != 5 || k.getRank() != 4)
    return op.emitOpError()
           << "takes queries of [batch, sequence, kv heads, groups, head size] and keys of "
              "[batch, sequence, kv heads, head size], got: "
           << q << " and " << k;
  if (q.getElementType() != k.getElementType())
    return op.emitOpError() << "queries and keys must have one element type, got: " << q << " and "
                            << k;
  if (q.getDimSize(0) != k.getDimSize(0) || q.getDimSize(2) != k.getDimSize(2) ||
      q.getDimSize(4) != k.getDimSize(3))
    return op.emitOpError() << "queries and keys must agree in batch, kv heads and head size, got: "
                            << q << " and " << k;
  int64_t queries = q.getDimSize(1), keys = k.getDimSize(1);
  if ((op.getCausal() || op.getWindow()) && op.getPositions().empty() && queries != keys)
    return op.emitOpError() << "a causal mask or a window needs as many queries as keys, or positions, got: " << queries
                            << " and " << keys;
  if (op.getWindow() && int64_t(*op.getWindow()) < 1)
    return op.emitOpError() << "window must be at least 1, got: " << int64_t(*op.getWindow());
  if (!op.getScale().isFinite())
    return op.emitOpError() << "scale must be finite, got: " << op.getScale().convertToDouble();
  auto expectPair = [&](OperandRange pair, StringRef what, StringRef dims, ArrayRef<int64_t> ofQueries,
                        ArrayRef<int64_t> ofKeys) -> LogicalResult {
    if (pair.empty())
      return success();
    if (pair.size() != 2)
      return op.emitOpError() << "takes the " << what << " of queries and of keys, or none, got: " << pair.size();
    if (typeOf(pair[0]).getShape() != ofQueries || typeOf(pair[1]).getShape() != ofKeys)
      return op.emitOpError() << what << " must have the " << dims
                              << " of queries and of keys, got: " << typeOf(pair[0]) << " and " << typeOf(pair[1]);
    return success();
  };
  if (failed(expectPair(op.getSegments(), "segments", "batch and sequence", q.getShape().take_front(2),
                        k.getShape().take_front(2))))
    return failure();
  return expectPair(op.getPositions(), "positions", "sequence", queries, keys);
}

/// Fails where `what` is neither like another tensor nor like that in the type that it is computed in.
static LogicalResult expectLikeOrWide(Operation *op, StringRef what, RankedTensorType type, RankedTensorType like) {
  Type wide = computeType(like.getElementType());
  if (type == like || type == like.clone(wide))
    return success();
  InFlightDiagnostic error = op->emitOpError() << what << " must be " << like;
  if (wide != like.getElementType())
    error << ", or that in " << wide;
  return error << ", got: " << type;
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  return expectLikeOrWide(*this, "result", getO().getType(), getQ().getType());
}

LogicalResult AttentionGradOp::verify() {
  RankedTensorType q = getQ().getType(), k = getK().getType(), dq = getDq().getType(), dk = getDk().getType();
  if (failed(verifyAttention(*this)) || failed(expectLikeOrWide(*this, "o", getO().getType(), q)) ||
      failed(expectLikeOrWide(*this, "dq", dq, q)) || failed(expectLikeOrWide(*this, "dk", dk, k)))
    return failure();
  if (dq.getElementType() != dk.getElementType())
    return emitOpError() << "dq, dk and dv must have one element type, got: " << dq << " and " << dk;
  RankedTensorType lse = AttentionOp::getLseType(getO().getType());
  if (getLse().getType() != lse)
    return emitOpError() << "lse must be " << lse << ", got: " << getLse().getType();
  return success();
}

// Positions.

template <typename Op> static LogicalResult setRowPositions(Op op, Value positions) {
  if (!op.getPositions().empty())
    return op.emitOpError("has positions already: a strategy cannot store its sequence in another order");
  op.getPositionsMutable().assign({positions, positions});
  return success();
}

template <typename Op> static bool comparesIndices(Op op, unsigned dim) {
  return dim == 1 && (op.getCausal() || op.getWindow() || !op.getPositions().empty());
}

bool AttentionOp::dependsOnIndex(unsigned dim) { return comparesIndices(*this, dim); }
bool AttentionGradOp::dependsOnIndex(unsigned dim) { return comparesIndices(*this, dim); }
LogicalResult AttentionOp::setPositions(Value positions, unsigned) { return setRowPositions(*this, positions); }
LogicalResult AttentionGradOp::setPositions(Value positions, unsigned) { return setRowPositions(*this, positions); }

// Gradients.

FailureOr<SmallVector<Value>> AttentionOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                    const llvm::BitVector &needed) {
  SmallVector<Value> result((*this)->getNumOperands());
  if (cotangents[1])
    return emitOpError() << "has no gradient through its log-sum-exp";
  if (!cotangents[0] || needed.none())
    return result;
  auto grad = builder.create<AttentionGradOp>(getLoc(), getQ().getType(), getK().getType(), getV().getType(),
                                              cotangents[0], getQ(), getK(), getV(), getO(), getLse(), getSegments(),
                                              getPositions(), getCausalAttr(), getWindowAttr(), getScaleAttr());
  for (auto [i, value] : llvm::enumerate(grad->getResults()))
    if (needed.test(i))
      result[i] = value;
  return result;
}

FailureOr<SmallVector<Value>> AttentionGradOp::buildVJP(OpBuilder &, ArrayRef<Value>,
                                                        const llvm::BitVector &) {
  return emitOpError() << "has no gradient";
}
