// nn.zigzag and nn.merge_attention: what they accept, how they are sharded, and gradients.
#include "Build.h"
#include "Checks.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

// zigzag.

Zigzag ZigzagOp::getOrder() { return {getInput().getType().getDimSize(getDim()), int64_t(getRanks())}; }

LogicalResult ZigzagOp::verify() {
  auto input = getInput().getType(), result = getType();
  if (failed(verifyOneDimChanges(*this, getDim(), input, result)))
    return failure();
  if (int64_t(getRanks()) < 1)
    return emitOpError() << "ranks must be at least 1, got: " << int64_t(getRanks());
  if (!getOffset() && result != input)
    return emitOpError() << "result must be " << input << " where no offset says which part of it this is, got: "
                         << result;
  return success();
}

OpFoldResult ZigzagOp::fold(FoldAdaptor adaptor) {
  if (getOffset())
    return {};
  if (getOrder().isIdentity())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat;
  auto producer = getInput().getDefiningOp<ZigzagOp>();
  bool isUndone = producer && !producer.getOffset() && producer.getDim() == getDim() &&
                  producer.getRanks() == getRanks() && producer.getInverse() != getInverse();
  return isUndone ? OpFoldResult(producer.getInput()) : OpFoldResult();
}

/// Rows come from anywhere in the input, which is whole; each shard of the result takes its own.
ShardingRule ZigzagOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, getInput().getType().getShape()), result = input;
  rule.factors[getDim()].kind = FactorKind::NeedReplication;
  result[getDim()] = {rule.addFactor(getType().getDimSize(getDim()))};
  rule.operands = {input};
  rule.operands.resize((*this)->getNumOperands()); // the offset is a scalar
  rule.results = {result};
  rule.linear = {{0}};
  rule.movesOnly = true;
  return rule;
}

LogicalResult ZigzagOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                 SmallVectorImpl<Value> &results) {
  Value offset = addOffsets(builder, getLoc(), getOffset() ? operands[1] : Value(),
                            ctx.resultOffset(builder, 0, getDim()));
  auto local = builder.create<ZigzagOp>(getLoc(), ctx.localResultType(0), operands[0], offset, getDimAttr(),
                                        getRanksAttr(), getInverseAttr());
  return finishLocalize(*this, local, results);
}

/// The other order. A shard's rows first go to their place among zeros; there is room behind for those past the end.
FailureOr<SmallVector<Value>> ZigzagOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                 const llvm::BitVector &) {
  SmallVector<Value> result((*this)->getNumOperands());
  Value ct = cotangents[0];
  if (!ct)
    return result;
  Build b{builder, getLoc()};
  auto type = getInput().getType();
  if (Value offset = getOffset()) {
    SmallVector<int64_t> shape(type.getShape());
    shape[getDim()] += getType().getDimSize(getDim());
    Value zeros = b.broadcast(b.scalar(ct, 0), type.clone(shape));
    Value placed = builder.create<DynamicUpdateSliceOp>(b.loc, zeros.getType(), zeros, ct, offset, getDimAttr());
    ct = builder.create<SliceOp>(b.loc, type, placed, getDimAttr(), builder.getI64IntegerAttr(0));
  }
  result[0] = builder.create<ZigzagOp>(b.loc, type, ct, /*offset=*/Value(), getDimAttr(), getRanksAttr(),
                                       getInverse() ? UnitAttr() : builder.getUnitAttr());
  return result;
}

// merge_attention.

LogicalResult MergeAttentionOp::verify() {
  if (getO().getType().getRank() < 1)
    return emitOpError() << "results of attention must have a row per query, got: " << getO().getType();
  return success();
}

/// Queries are independent, and so are the elements of a row, for which every device has the weights.
ShardingRule MergeAttentionOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors o = addFactors(rule, getO().getType().getShape()), lse(ArrayRef(o).drop_back());
  rule.operands = {o, lse, o, lse};
  rule.results = {o, lse};
  return rule;
}

FailureOr<SmallVector<Value>> MergeAttentionOp::buildVJP(OpBuilder &, ArrayRef<Value>, const llvm::BitVector &) {
  return emitOpError() << "has no gradient";
}
