// nn.dropout: what it accepts, its gradient, its form in inference, and how a shard knows which
// elements of the whole tensor it holds.
#include "Build.h"
#include "Checks.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

static LogicalResult verifyPositions(DropoutOp op) {
  if (bool(op.getPositions()) != op.getDim().has_value())
    return op.emitOpError() << "takes positions and the dimension that they are of, or none, got "
                            << (op.getPositions() ? "positions" : "a dimension");
  if (!op.getPositions())
    return success();
  if (failed(verifyDim(op, *op.getDim(), op.getType())))
    return failure();
  RankedTensorType positions = op.getPositions().getType();
  if (positions.getShape() != op.getType().getShape().slice(*op.getDim(), 1))
    return op.emitOpError() << "positions must be one for each row of dimension " << *op.getDim() << " of "
                            << op.getType() << ", got: " << positions;
  return success();
}

LogicalResult DropoutOp::verify() {
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError() << "rate must be in [0, 1), got: " << rate;
  int64_t id = getId();
  if (id < 0 || id > int64_t(UINT32_MAX))
    return emitOpError() << "id must be in [0, 2^32), got: " << id;
  if (bool(getSeed()) != bool(getStep()))
    return emitOpError() << "takes a seed and a step, or none, got a " << (getSeed() ? "seed" : "step");
  if (failed(verifyPositions(*this)))
    return failure();
  // A part along the dimension of positions alone has no offset.
  bool fitsOffset = getPositions() ? !getOffset() || getGlobal() : bool(getOffset()) == getGlobal().has_value();
  if (!fitsOffset)
    return emitOpError() << "takes the offset and the shape of the tensor that it is a part of, or none, got "
                         << (getOffset() ? "an offset" : "a shape");
  if (!getGlobal())
    return success();
  ArrayRef<int64_t> shape = getType().getShape(), global = *getGlobal();
  bool fits = shape.size() == global.size() &&
              llvm::all_of(llvm::zip(shape, global), [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
  if (!fits)
    return emitOpError() << "global must be the shape of a tensor that holds " << getType() << ", got: ["
                         << global << "]";
  return success();
}

int64_t DropoutOp::getRandomId() { return getId(); }
bool DropoutOp::isSeeded() { return bool(getSeed()); }

void DropoutOp::setSeed(Value seed, Value step) {
  getSeedMutable().assign(seed);
  getStepMutable().assign(step);
}

void DropoutOp::setPart(Value offset, ArrayRef<int64_t> globalShape) {
  getOffsetMutable().assign(offset);
  setGlobal(globalShape);
}

bool DropoutOp::dependsOnIndex(unsigned) { return true; }

LogicalResult DropoutOp::setPositions(Value positions, unsigned dim) {
  if (getPositions())
    return emitOpError() << "has positions along dimension " << *getDim()
                         << " already, and cannot take those of dimension " << dim << " as well";
  getPositionsMutable().assign(positions);
  setDim(dim);
  return success();
}

SmallVector<Value> DropoutOp::buildInference(OpBuilder &) { return {getInput()}; }

/// The same elements of the cotangent are kept, as often as it is asked for.
FailureOr<SmallVector<Value>> DropoutOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                  const llvm::BitVector &) {
  SmallVector<Value> result((*this)->getNumOperands());
  if (Value ct = cotangents[0])
    result[0] = builder.create<DropoutOp>(getLoc(), getType(), ct, getSeed(), getStep(), getOffset(), getPositions(),
                                          getRateAttr(), getIdAttr(), getGlobalAttr(), getDimAttr());
  return result;
}

ShardingRule DropoutOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors factors = addFactors(rule, getType().getShape());
  rule.operands.resize((*this)->getNumOperands()); // the others are scalars
  rule.operands[0] = factors;
  if (Value positions = getPositions())
    rule.operands.back() = addFactors(rule, typeOf(positions).getShape(), FactorKind::NeedReplication);
  rule.results = {factors};
  rule.linear = {{0}};
  return rule;
}

LogicalResult DropoutOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                  SmallVectorImpl<Value> &results) {
  Build b{builder, getLoc()};
  unsigned next = 1;
  auto take = [&](Value global) { return global ? operands[next++] : Value(); };
  Value seed = take(getSeed()), step = take(getStep()), offset = take(getOffset()), positions = take(getPositions());
  // Offsets of one partition over some axes, and of a later one over others, add up: indices are
  // counted in the shape of the whole tensor.
  ArrayRef<int64_t> shape = getGlobal().value_or(getType().getShape());
  DenseI64ArrayAttr global = getGlobalAttr();
  int64_t stride = 1;
  for (unsigned dim = shape.size(); dim-- > 0; stride *= shape[dim]) {
    Value shard = ctx.operandOffset(builder, 0, dim);
    if (!shard)
      continue;
    global = builder.getDenseI64ArrayAttr(shape);
    if (positions && dim == *getDim()) {
      positions = takePositions(b, positions, shard, typeOf(operands[0]).getDimSize(dim));
      continue;
    }
    auto scalar = RankedTensorType::get({}, builder.getI64Type());
    Value factor = builder.create<ConstantOp>(b.loc, scalar, DenseIntElementsAttr::get(scalar, stride));
    shard = b.mul(shard, factor);
    offset = addOffsets(builder, b.loc, offset, shard);
  }
  auto local = builder.create<DropoutOp>(b.loc, operands[0].getType(), operands[0], seed, step, offset, positions,
                                         getRateAttr(), getIdAttr(), global, getDimAttr());
  return finishLocalize(*this, local, results);
}
