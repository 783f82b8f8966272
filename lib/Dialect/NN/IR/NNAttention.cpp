// nn.attention and nn.attention_grad: what they accept, how they are sharded, and the gradient.
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
  if ((op.getCausal() || op.getWindow()) && queries != keys)
    return op.emitOpError() << "a causal mask or a window needs as many queries as keys, got: "
                            << queries << " and " << keys;
  if (op.getWindow() && int64_t(*op.getWindow()) < 1)
    return op.emitOpError() << "window must be at least 1, got: " << int64_t(*op.getWindow());
  if (!op.getScale().isFinite())
    return op.emitOpError() << "scale must be finite, got: " << op.getScale().convertToDouble();
  if (op.getSegments().empty())
    return success();
  auto segments = [&](unsigned i) { return cast<RankedTensorType>(op.getSegments()[i].getType()); };
  if (op.getSegments().size() != 2)
    return op.emitOpError() << "takes the segments of queries and of keys, or none, got: "
                            << op.getSegments().size();
  if (segments(0).getShape() != q.getShape().take_front(2) ||
      segments(1).getShape() != k.getShape().take_front(2))
    return op.emitOpError()
           << "segments must have the batch and sequence of queries and of keys, got: "
           << segments(0) << " and " << segments(1);
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  if (getO().getType() != getQ().getType())
    return emitOpError() << "result must be " << getQ().getType() << ", got: " << getO().getType();
  return success();
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  RankedTensorType lse = AttentionOp::getLseType(getO().getType());
  if (getLse().getType() != lse)
    return emitOpError() << "lse must be " << lse << ", got: " << getLse().getType();
  return success();
}

// Sharding rules. Sequences and the head size are whole on every device. Batch and key/value heads
// are independent; so are the query heads of one key/value head, but dk and dv are sums over them.

namespace {
struct AttentionRule {
  template <typename Op> explicit AttentionRule(Op op, FactorKind groupKind) {
    auto q = op.getQ().getType();
    unsigned batch = rule.addFactor(q.getDimSize(0));
    unsigned queries = rule.addFactor(q.getDimSize(1), FactorKind::NeedReplication);
    unsigned keys = rule.addFactor(op.getK().getType().getDimSize(1), FactorKind::NeedReplication);
    unsigned kvHeads = rule.addFactor(q.getDimSize(2)),
             groups = rule.addFactor(q.getDimSize(3), groupKind);
    unsigned size = rule.addFactor(q.getDimSize(4), FactorKind::NeedReplication);
    ofQueries = {{batch}, {queries}, {kvHeads}, {groups}, {size}};
    ofKeys = {{batch}, {keys}, {kvHeads}, {size}};
    perQuery = {{batch}, {queries}, {kvHeads}, {groups}};
    if (!op.getSegments().empty())
      ofSegments = {{{batch}, {queries}}, {{batch}, {keys}}};
  }
  ShardingRule rule;
  TensorFactors ofQueries, ofKeys, perQuery;
  SmallVector<TensorFactors> ofSegments;
};
} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::PassThrough);
  r.rule.operands = {r.ofQueries, r.ofKeys, r.ofKeys};
  llvm::append_range(r.rule.operands, r.ofSegments);
  r.rule.results = {r.ofQueries, r.perQuery};
  return r.rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::Reduction);
  r.rule.operands = {r.ofQueries, r.ofQueries, r.ofKeys, r.ofKeys, r.ofQueries, r.perQuery};
  llvm::append_range(r.rule.operands, r.ofSegments);
  r.rule.results = {r.ofQueries, r.ofKeys, r.ofKeys};
  r.rule.linear = {{0}};
  return r.rule;
}

// Two products forward; five backward, which makes the scores again.
double AttentionOp::getFlops() { return 4 * countPoints(getShardingRule()); }
double AttentionGradOp::getFlops() { return 10 * countPoints(getShardingRule()); }

// Gradients.

FailureOr<SmallVector<Value>> AttentionOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                    const llvm::BitVector &needed) {
  SmallVector<Value> result((*this)->getNumOperands());
  if (cotangents[1])
    return emitOpError() << "has no gradient through its log-sum-exp";
  if (!cotangents[0] || needed.none())
    return result;
  auto grad = builder.create<AttentionGradOp>(
      getLoc(), getQ().getType(), getK().getType(), getV().getType(), cotangents[0], getQ(), getK(),
      getV(), getO(), getLse(), getSegments(), getCausalAttr(), getWindowAttr(), getScaleAttr());
  for (auto [i, value] : llvm::enumerate(grad->getResults()))
    if (needed.test(i))
      result[i] = value;
  return result;
}

FailureOr<SmallVector<Value>> AttentionGradOp::buildVJP(OpBuilder &, ArrayRef<Value>,
                                                        const llvm::BitVector &) {
  return emitOpError() << "has no gradient";
}
