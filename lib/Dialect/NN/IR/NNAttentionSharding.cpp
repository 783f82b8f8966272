// How nn.attention and nn.attention_grad are sharded.
#include "Build.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

// Sequences and the head size are whole on every device. Batch and key/value heads are independent; so are the query heads
// of one key/value head, but dk and dv are sums over them.

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
      ofMasks = {{{batch}, {queries}}, {{batch}, {keys}}};
    // Every device has all of them.
    for (Value positions : op.getPositions())
      ofMasks.push_back({{rule.addFactor(typeOf(positions).getDimSize(0), FactorKind::NeedReplication)}});
  }
  ShardingRule rule;
  TensorFactors ofQueries, ofKeys, perQuery;
  SmallVector<TensorFactors> ofMasks; // segments, positions
};
} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::PassThrough);
  r.rule.operands = {r.ofQueries, r.ofKeys, r.ofKeys};
  llvm::append_range(r.rule.operands, r.ofMasks);
  r.rule.results = {r.ofQueries, r.perQuery};
  return r.rule;
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::Reduction);
  r.rule.operands = {r.ofQueries, r.ofQueries, r.ofKeys, r.ofKeys, r.ofQueries, r.perQuery};
  llvm::append_range(r.rule.operands, r.ofMasks);
  r.rule.results = {r.ofQueries, r.ofKeys, r.ofKeys};
  r.rule.linear = {{0}};
  return r.rule;
}

// Two products forward; five backward, which makes the scores again.
template <typename Op> static double getFlopsOfProduct(Op op) {
  return 2 * double(op.getQ().getType().getNumElements()) * double(op.getK().getType().getDimSize(1));
}
double AttentionOp::getFlops() { return 2 * getFlopsOfProduct(*this); }
double AttentionGradOp::getFlops() { return 5 * getFlopsOfProduct(*this); }

LogicalResult AttentionOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                    SmallVectorImpl<Value> &results) {
  return localizeByCloning(*this, builder, operands, ctx, results);
}
LogicalResult AttentionGradOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                        SmallVectorImpl<Value> &results) {
  return localizeByCloning(*this, builder, operands, ctx, results);
}
