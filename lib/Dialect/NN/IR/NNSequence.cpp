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

/// Rows come from anywhere in the input. Whole, each shard of the result takes its own; sharded as the result, by as many
/// devices as the order is for, chunks pass to where they belong, if all are of one size.
ShardingRule ZigzagOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, getInput().getType().getShape()), result = input;
  result[getDim()] = {rule.addFactor(getType().getDimSize(getDim()))};
  bool hasChunks = !getOffset() && getOrder().hasEqualChunks();
  rule.factors[getDim()].kind = hasChunks ? FactorKind::Permutation : FactorKind::NeedReplication;
  if (hasChunks)
    rule.reordered = {{result[getDim()].front(), unsigned(getDim()), int64_t(getRanks())}};
  rule.operands = {input};
  rule.operands.resize((*this)->getNumOperands()); // the offset is a scalar
  rule.results = {result};
  rule.linear = {{0}};
  rule.movesOnly = true;
  return rule;
}

/// Of the shards of two chunks each. Ranks store chunks r and 2 * ranks - 1 - r, one of which is even and one odd, as are
/// 2r and 2r + 1: the even chunk of each rank goes to one rank, and the odd one, too.
static Value exchangeChunks(ZigzagOp op, OpBuilder &builder, Value local, const LocalizeContext &ctx) {
  Build b{builder, op.getLoc()};
  unsigned dim = op.getDim();
  int64_t ranks = op.getRanks();
  auto shard = typeOf(local);
  SmallVector<int64_t> shape(shard.getShape());
  int64_t rows = shape[dim] / 2;
  shape[dim] = rows;
  RankedTensorType chunk = shard.clone(shape);
  shape[dim] = 3 * rows;
  RankedTensorType three = shard.clone(shape);

  // Of stored shards, those of odd ranks begin with the odd chunk.
  auto ofOddRanks = [&](int64_t even, int64_t odd) {
    SmallVector<int64_t> numbers;
    for (int64_t rank = 0; rank < ranks; ++rank)
      numbers.push_back(rank % 2 ? odd : even);
    return ctx.numberOfShard(builder, 0, dim, numbers);
  };
  Value moved[2];
  for (int64_t parity : {0, 1}) {
    SmallVector<int64_t> targets;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      int64_t stored = rank % 2 == parity ? rank : 2 * ranks - 1 - rank, inOrder = 2 * rank + parity;
      targets.push_back(op.getInverse() ? stored / 2 : std::min(inOrder, 2 * ranks - 1 - inOrder));
    }
    Value mine;
    if (op.getInverse())
      mine = builder.create<DynamicSliceOp>(b.loc, chunk, local, ofOddRanks(parity * rows, (1 - parity) * rows), dim);
    else
      mine = builder.create<SliceOp>(b.loc, chunk, local, dim, parity * rows);
    moved[parity] = ctx.permute(builder, mine, 0, dim, targets, parity ? "odd chunks" : "even chunks",
                                op.getInverse() ? "to where the original order has them"
                                                : "to where the zigzag order has them");
  }
  if (op.getInverse())
    return builder.create<ConcatOp>(b.loc, shard, ValueRange{moved[0], moved[1]}, dim);
  Value both = builder.create<ConcatOp>(b.loc, three, ValueRange{moved[0], moved[1], moved[0]}, dim);
  return builder.create<DynamicSliceOp>(b.loc, shard, both, ofOddRanks(0, rows), dim);
}

LogicalResult ZigzagOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                 SmallVectorImpl<Value> &results) {
  if (ctx.operandShards(0, getDim()) > 1) {
    Operation *last = findLast(builder);
    results.push_back(exchangeChunks(*this, builder, operands[0], ctx));
    keepAttributes(*this, builder, last);
    return success();
  }
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
