// Sharding rules of the `nn` ops, how those that depend on their position build themselves on one
// shard, and how softmax turns into ops that can be sharded along its dimension.
#include "Build.h"

#include <numeric>

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

// Helpers.

/// An op of one tensor of the same shape in and out, every dimension passing through but `dim`.
static ShardingRule alongDim(RankedTensorType type, int64_t dim, FactorKind kind) {
  ShardingRule rule;
  TensorFactors factors = addFactors(rule, type.getShape());
  rule.factors[dim].kind = kind;
  rule.operands = {factors};
  rule.results = {factors};
  return rule;
}

/// An op that changes the size of `dim`: there input and result need replication.
static ShardingRule resizesDim(Operation *op, int64_t dim) {
  ShardingRule rule;
  auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  TensorFactors in = addFactors(rule, input.getShape());
  rule.factors[dim].kind = FactorKind::NeedReplication;
  TensorFactors out = in;
  out[dim] = {rule.addFactor(result.getDimSize(dim), FactorKind::NeedReplication)};
  rule.operands = {in};
  rule.operands.resize(op->getNumOperands()); // the start of a dynamic slice is a scalar
  rule.results = {out};
  rule.linear = {{0}};
  return rule;
}

// Constant.

ShardingRule ConstantOp::getShardingRule() {
  ShardingRule rule;
  FactorKind kind = getValue().isSplat() ? FactorKind::PassThrough : FactorKind::NeedReplication;
  auto type = cast<RankedTensorType>(getType());
  rule.results = {addFactors(rule, type.getShape(), kind)};
  return rule;
}

/// With a longer dimension, whose last entry is repeated: what a user divides by is no 0 in padding either.
static DenseElementsAttr extend(DenseElementsAttr value, unsigned dim, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t inner = 1, held = shape[dim];
  for (int64_t behind : ArrayRef(shape).drop_front(dim + 1))
    inner *= behind;
  shape[dim] = size;
  SmallVector<Attribute> from(value.getValues<Attribute>()), to;
  for (int64_t outer = 0, end = from.size() / (held * inner); outer < end; ++outer)
    for (int64_t i = 0; i < size; ++i)
      llvm::append_range(to, ArrayRef(from).slice((outer * held + std::min(i, held - 1)) * inner, inner));
  return DenseElementsAttr::get(type.clone(shape), to);
}

/// Every device has the whole of what is not a splat, and reads its part of it.
LogicalResult ConstantOp::localize(OpBuilder &builder, ValueRange, const LocalizeContext &ctx,
                                   SmallVectorImpl<Value> &results) {
  auto type = ctx.localResultType(0);
  auto value = cast<DenseElementsAttr>(getValue());
  if (value.isSplat())
    value = value.resizeSplat(type);
  SmallVector<unsigned> cut;
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    if (int64_t part = type.getDimSize(dim), whole = getType().getDimSize(dim); !value.isSplat() && part != whole) {
      cut.push_back(dim);
      value = extend(value, dim, shardSize(whole, part) * part);
    }
  Value local = builder.create<ConstantOp>(getLoc(), value.getType(), value);
  for (unsigned dim : cut) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(local.getType()).getShape());
    shape[dim] = type.getDimSize(dim);
    local = builder.create<DynamicSliceOp>(getLoc(), type.clone(shape), local, ctx.resultOffset(builder, 0, dim), dim);
  }
  return finishLocalize(*this, local.getDefiningOp(), results);
}

// Elementwise.

/// Numpy broadcasting, and the groups of operands the op is linear in.
static ShardingRule elementwise(Operation *op, ArrayRef<SmallVector<unsigned, 2>> linear = {}) {
  ShardingRule rule = rules::elementwise(op);
  llvm::append_range(rule.linear, linear);
  return rule;
}

ShardingRule AddOp::getShardingRule() { return elementwise(*this, {{0, 1}}); }
ShardingRule SubOp::getShardingRule() { return elementwise(*this, {{0, 1}}); }
ShardingRule MulOp::getShardingRule() { return elementwise(*this, {{0}, {1}}); }
ShardingRule DivOp::getShardingRule() {
  // Division of integers truncates: not linear.
  if (isa<FloatType>(getType().getElementType()))
    return elementwise(*this, {{0}});
  return elementwise(*this);
}
ShardingRule MaximumOp::getShardingRule() { return elementwise(*this); }
ShardingRule MinimumOp::getShardingRule() { return elementwise(*this); }
ShardingRule NegOp::getShardingRule() { return elementwise(*this, {{0}}); }
ShardingRule ExpOp::getShardingRule() { return elementwise(*this); }
ShardingRule LogOp::getShardingRule() { return elementwise(*this); }
ShardingRule SqrtOp::getShardingRule() { return elementwise(*this); }
ShardingRule RsqrtOp::getShardingRule() { return elementwise(*this); }
ShardingRule TanhOp::getShardingRule() { return elementwise(*this); }
ShardingRule ReluOp::getShardingRule() { return elementwise(*this); }
ShardingRule SigmoidOp::getShardingRule() { return elementwise(*this); }
ShardingRule SiluOp::getShardingRule() { return elementwise(*this); }
ShardingRule ErfOp::getShardingRule() { return elementwise(*this); }
ShardingRule ErfcOp::getShardingRule() { return elementwise(*this); }
ShardingRule SinOp::getShardingRule() { return elementwise(*this); }
ShardingRule CosOp::getShardingRule() { return elementwise(*this); }
ShardingRule GeluOp::getShardingRule() { return elementwise(*this); }
ShardingRule CompareOp::getShardingRule() { return elementwise(*this); }
ShardingRule SelectOp::getShardingRule() { return elementwise(*this, {{1, 2}}); }
// Rounding to a narrower type is not linear, so partial sums are reduced in the type they have.
ShardingRule CastOp::getShardingRule() {
  if (getOfTerms())
    return elementwise(*this, {{0}});
  return elementwise(*this);
}

ShardingRule MaskOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors factors = addFactors(rule, getType().getShape());
  rule.operands = {factors};
  rule.operands.resize((*this)->getNumOperands()); // limit and offset are scalars
  rule.results = {factors};
  rule.indexed = {unsigned(getDim())};
  if (getFill().isZero())
    rule.linear = {{0}};
  return rule;
}

LogicalResult MaskOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                               SmallVectorImpl<Value> &results) {
  Value offset = addOffsets(builder, getLoc(), operands.size() > 2 ? operands[2] : Value(),
                            ctx.operandOffset(builder, 0, getDim()));
  auto local = builder.create<MaskOp>(getLoc(), operands[0], operands[1], offset, getDimAttr(),
                                      getFillAttr());
  return finishLocalize(*this, local, results);
}

// Shape.

/// Splits both shapes into common factors from the major end. Where the sizes that remain share
/// no divisor, what is left up to the next common boundary needs replication.
ShardingRule ReshapeOp::getShardingRule() {
  ArrayRef<int64_t> in = getInput().getType().getShape(), out = getType().getShape();
  if (getType().getNumElements() == 0)
    return rules::replicated(*this);
  ShardingRule rule;
  rule.movesOnly = true;
  rule.linear = {{0}};
  TensorFactors inFactors(in.size()), outFactors(out.size());
  size_t i = 0, o = 0;
  int64_t inLeft = in.empty() ? 1 : in[0], outLeft = out.empty() ? 1 : out[0];
  auto nextIn = [&] { inLeft = ++i < in.size() ? in[i] : 1; };
  auto nextOut = [&] { outLeft = ++o < out.size() ? out[o] : 1; };

  while (i < in.size() || o < out.size()) {
    bool inOne = i < in.size() && in[i] == 1, outOne = o < out.size() && out[o] == 1;
    if (inOne && outOne) { // a batch of one stays the same dimension
      unsigned factor = rule.addFactor(1);
      inFactors[i] = {factor};
      outFactors[o] = {factor};
      nextIn();
      nextOut();
      continue;
    }
    if (i < in.size() && inLeft == 1) {
      nextIn();
      continue;
    }
    if (o < out.size() && outLeft == 1) {
      nextOut();
      continue;
    }
    int64_t common = std::gcd(inLeft, outLeft);
    if (common > 1) {
      unsigned factor = rule.addFactor(common);
      inFactors[i].push_back(factor);
      outFactors[o].push_back(factor);
      inLeft /= common;
      outLeft /= common;
      continue;
    }
    // Unaligned: consume whole dimensions until as many elements lie behind on both sides.
    auto takeIn = [&](int64_t size) {
      inFactors[i].push_back(rule.addFactor(size, FactorKind::NeedReplication));
    };
    auto takeOut = [&](int64_t size) {
      outFactors[o].push_back(rule.addFactor(size, FactorKind::NeedReplication));
    };
    takeIn(inLeft);
    takeOut(outLeft);
    int64_t inDone = inLeft, outDone = outLeft;
    nextIn();
    nextOut();
    while (inDone != outDone) {
      if (inDone < outDone) {
        inDone *= inLeft;
        takeIn(inLeft);
        nextIn();
      } else {
        outDone *= outLeft;
        takeOut(outLeft);
        nextOut();
      }
    }
  }
  rule.operands = {inFactors};
  rule.results = {outFactors};
  return rule;
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors in = addFactors(rule, getInput().getType().getShape()), out;
  for (int64_t dim : getPermutation())
    out.push_back(in[dim]);
  rule.operands = {in};
  rule.results = {out};
  rule.linear = {{0}};
  rule.movesOnly = true;
  return rule;
}

ShardingRule BroadcastOp::getShardingRule() {
  ShardingRule rule = elementwise(*this, {{0}});
  rule.movesOnly = true;
  return rule;
}

ShardingRule SliceOp::getShardingRule() {
  ShardingRule rule = resizesDim(*this, getDim());
  rule.movesOnly = true;
  return rule;
}
ShardingRule PadOp::getShardingRule() { return resizesDim(*this, getDim()); }
ShardingRule DynamicSliceOp::getShardingRule() { return resizesDim(*this, getDim()); }

ShardingRule DynamicUpdateSliceOp::getShardingRule() {
  ShardingRule rule = alongDim(getType(), getDim(), FactorKind::NeedReplication);
  TensorFactors update = rule.results[0];
  update[getDim()] = {
      rule.addFactor(getUpdate().getType().getDimSize(getDim()), FactorKind::NeedReplication)};
  rule.operands.push_back(update);
  rule.operands.emplace_back(); // the start is a scalar
  rule.linear = {{0, 1}};
  return rule;
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule;
  int64_t dim = getDim();
  TensorFactors factors = addFactors(rule, getType().getShape());
  rule.factors[dim].kind = FactorKind::NeedReplication;
  rule.results = {factors};
  rule.linear.emplace_back();
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    int64_t size = cast<RankedTensorType>(input.getType()).getDimSize(dim);
    factors[dim] = {rule.addFactor(size, FactorKind::NeedReplication)};
    rule.operands.push_back(factors);
    rule.linear[0].push_back(i);
  }
  return rule;
}

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule;
  rule.results = {addFactors(rule, getType().getShape())};
  rule.indexed = {unsigned(getDim())};
  return rule;
}

LogicalResult IotaOp::localize(OpBuilder &builder, ValueRange, const LocalizeContext &ctx,
                               SmallVectorImpl<Value> &results) {
  auto type = ctx.localResultType(0);
  auto local = builder.create<IotaOp>(getLoc(), type, getDimAttr());
  local->setDiscardableAttrs((*this)->getDiscardableAttrDictionary());
  Value index = local;
  if (Value offset = ctx.resultOffset(builder, 0, getDim())) {
    auto scalar = RankedTensorType::get({}, type.getElementType());
    if (offset.getType() != scalar)
      offset = builder.create<CastOp>(getLoc(), scalar, offset);
    index = builder.create<AddOp>(getLoc(), index, offset);
  }
  results.push_back(index);
  return success();
}

// Contractions and reductions.

ShardingRule MatmulOp::getShardingRule() {
  ShardingRule rule;
  auto aType = getA().getType(), bType = getB().getType();
  ArrayRef<int64_t> am = aType.getShape().take_back(2), bm = bType.getShape().take_back(2);
  TensorFactors a = addFactors(rule, aType.getShape().drop_back(2),
                               getSumBatch() ? FactorKind::Reduction : FactorKind::PassThrough);
  TensorFactors b, c;
  if (bType.getRank() > 2)
    b = a;
  if (!getSumBatch())
    c = a;
  SmallVector<unsigned, 1> m = {rule.addFactor(am[getTransposeA() ? 1 : 0])};
  SmallVector<unsigned, 1> n = {rule.addFactor(bm[getTransposeB() ? 0 : 1])};
  SmallVector<unsigned, 1> k = {rule.addFactor(am[getTransposeA() ? 0 : 1], FactorKind::Reduction)};
  a.push_back(getTransposeA() ? k : m);
  a.push_back(getTransposeA() ? m : k);
  b.push_back(getTransposeB() ? n : k);
  b.push_back(getTransposeB() ? k : n);
  c.push_back(m);
  c.push_back(n);
  rule.operands = {a, b};
  rule.results = {c};
  rule.linear = {{0}, {1}};
  return rule;
}

ShardingRule ReduceOp::getShardingRule() {
  ShardingRule rule;
  auto input = getInput().getType();
  TensorFactors in = addFactors(rule, input.getShape()), out;
  for (auto [d, factors] : llvm::enumerate(in)) {
    if (!llvm::is_contained(getDims(), int64_t(d))) {
      out.push_back(factors);
      continue;
    }
    Factor &factor = rule.factors[factors[0]];
    // A mean of shards is no sum of means: nn-explicit-counts takes means away first.
    factor.kind = getKind() == Reduce::mean ? FactorKind::NeedReplication : FactorKind::Reduction;
    factor.reduce = getKind() == Reduce::max ? ReduceKind::Max : ReduceKind::Sum;
    if (getKeepDims())
      out.emplace_back();
  }
  rule.operands = {in};
  rule.results = {out};
  bool truncates = getKind() == Reduce::mean && !isa<FloatType>(getType().getElementType());
  if (getKind() != Reduce::max && !truncates)
    rule.linear = {{0}};
  return rule;
}

// Softmax.

ShardingRule SoftmaxOp::getShardingRule() {
  return alongDim(getType(), getDim(), FactorKind::Decompose);
}
ShardingRule LogSoftmaxOp::getShardingRule() {
  return alongDim(getType(), getDim(), FactorKind::Decompose);
}

/// x - max(x), which keeps exponentials at most 1.
static Value subtractMax(Build b, Value x, int64_t dim) {
  Value max = b.builder.create<ReduceOp>(b.loc, Reduce::max, x, dim, /*keep_dims=*/true);
  return b.sub(x, max);
}

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) {
  Build b{builder, getLoc()};
  int64_t dim = getDim();
  Value e = builder.create<ExpOp>(b.loc, subtractMax(b, getInput(), dim));
  return SmallVector<Value>{b.div(e, b.sum(e, dim, /*keepDims=*/true))};
}

FailureOr<SmallVector<Value>> LogSoftmaxOp::decompose(OpBuilder &builder) {
  Build b{builder, getLoc()};
  int64_t dim = getDim();
  Value shifted = subtractMax(b, getInput(), dim);
  Value e = builder.create<ExpOp>(b.loc, shifted);
  Value log = builder.create<LogOp>(b.loc, b.sum(e, dim, /*keepDims=*/true));
  return SmallVector<Value>{b.sub(shifted, log)};
}

/// Only features are independent of each other.
ShardingRule BatchNormOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, getInput().getType().getShape(), FactorKind::Decompose);
  rule.factors[1].kind = FactorKind::PassThrough;
  TensorFactors feature = {input[1]};
  rule.operands = {input, feature, feature, feature, feature};
  rule.results = {input, feature, feature};
  return rule;
}

// Losses.

ShardingRule MseLossOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors factors = addFactors(rule, getPrediction().getType().getShape(),
      getReduction() == LossReduction::sum ? FactorKind::Reduction : FactorKind::NeedReplication);
  rule.operands = {factors, factors};
  rule.results = {{}};
  return rule;
}

/// Rows are independent, the class dimension is taken apart where it is sharded.
static std::pair<TensorFactors, TensorFactors> addLogitsAndTargets(ShardingRule &rule,
                                                                   RankedTensorType logits,
                                                                   RankedTensorType targets,
                                                                   FactorKind rowKind) {
  TensorFactors logitsFactors = addFactors(rule, logits.getShape(), rowKind);
  rule.factors.back().kind = FactorKind::Decompose;
  TensorFactors targetsFactors = logitsFactors;
  if (targets.getRank() < logits.getRank()) {
    targetsFactors.pop_back();
    rule.indexed = {unsigned(rule.factors.size() - 1)}; // a target names a class
  }
  return {logitsFactors, targetsFactors};
}

static TensorFactors rowsOf(TensorFactors logits) {
  logits.pop_back();
  return logits;
}

ShardingRule CrossEntropyOp::getShardingRule() {
  ShardingRule rule;
  auto targetsType = getTargets().getType();
  auto [logits, targets] = addLogitsAndTargets(
      rule, getLogits().getType(), targetsType,
      getReduction() == LossReduction::sum ? FactorKind::Reduction : FactorKind::NeedReplication);
  rule.operands = {logits, targets};
  rule.results = {{}, rowsOf(logits)};
  // A padded row must not count: its target is ignored (its probabilities are 0).
  if (!isa<FloatType>(targetsType.getElementType()))
    rule.padding = {std::nullopt, double(int64_t(getIgnoreIndex()))};
  rule.leftOut = {0};
  return rule;
}

ShardingRule CrossEntropyGradOp::getShardingRule() {
  ShardingRule rule;
  auto [logits, targets] = addLogitsAndTargets(rule, getLogits().getType(), getTargets().getType(),
                                               FactorKind::PassThrough);
  rule.operands = {logits, targets, rowsOf(logits), {}};
  rule.results = {logits};
  rule.linear = {{3}};
  return rule;
}

// Optimizer updates.

/// Element by element over tensors of one shape; learning rate and step are scalars.
static ShardingRule update(Operation *op) {
  ShardingRule rule;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  TensorFactors factors = addFactors(rule, type.getShape());
  unsigned tensors = op->getNumResults() + 1; // parameter, gradient, and each state
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    rule.operands.push_back(i < tensors ? factors : TensorFactors());
  rule.results.assign(op->getNumResults(), factors);
  return rule;
}

ShardingRule SgdUpdateOp::getShardingRule() { return update(*this); }
ShardingRule MomentumUpdateOp::getShardingRule() { return update(*this); }
ShardingRule AdamUpdateOp::getShardingRule() { return update(*this); }
