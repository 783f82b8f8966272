// rope, and the table and rotation it is made of: what they accept, how they are sharded, gradients.
#include "Build.h"

#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/Elements.h"

#include <cmath>

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

using Values = FailureOr<SmallVector<Value>>;

static LogicalResult verifyBase(Operation *op, APFloat base) {
  double value = base.convertToDouble();
  if (std::isfinite(value) && value > 0)
    return success();
  return op->emitOpError() << "base must be positive, got: " << value;
}

/// Whether a shape is that of the sequence of `x`, dimension 1, or of batch and sequence.
static bool isOfSequence(ArrayRef<int64_t> shape, RankedTensorType x) {
  return shape == x.getShape().slice(1, 1) || shape == x.getShape().take_front(2);
}

// rope.

LogicalResult RopeOp::verify() {
  auto type = getInput().getType();
  if (type.getRank() < 3)
    return emitOpError() << "input must have batch, sequence and a dimension to rotate, got: " << type;
  if (type.getShape().back() % 2 != 0)
    return emitOpError() << "last dimension must be even, since pairs are rotated, got: " << type.getShape().back();
  if (!isOfSequence(getPositions().getType().getShape(), type))
    return emitOpError() << "positions must be those of dimension 1 of the input, or of dimensions 0 and 1, got: "
                         << getPositions().getType() << " for " << type;
  return verifyBase(*this, getBase());
}

/// Pairs lie across the last dimension; all others turn element by element.
ShardingRule RopeOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, getInput().getType().getShape());
  rule.factors.back().kind = FactorKind::NeedReplication;
  unsigned rank = getPositions().getType().getRank();
  rule.operands = {input, TensorFactors(ArrayRef(input).slice(2 - rank, rank))};
  rule.results = {input};
  rule.linear = {{0}};
  return rule;
}

Values RopeOp::decompose(OpBuilder &builder) {
  Build b{builder, getLoc()};
  auto type = getInput().getType(), positions = getPositions().getType();
  int64_t half = type.getShape().back() / 2;
  SmallVector<int64_t> pairs(type.getShape().drop_back()), table(positions.getShape());
  pairs.append({2, half});
  table.push_back(half);
  auto tableType = RankedTensorType::get(table, computeType(type.getElementType()));
  auto tables = builder.create<RopeTableOp>(b.loc, tableType, tableType, getPositions(), getBaseAttr());
  Value x = b.reshape(getInput(), type.clone(pairs));
  Value turned = builder.create<RotateOp>(b.loc, x.getType(), x, tables.getCos(), tables.getSin(), getInverse());
  return SmallVector<Value>{b.reshape(turned, type)};
}

/// The form in which equal tables are one. What is said of the op (its sharding, its number) is said of its
/// value; its origin does not hold for the table, which all layers share.
LogicalResult RopeOp::canonicalize(RopeOp op, PatternRewriter &rewriter) {
  rewriter.setInsertionPoint(op);
  SmallVector<Value> values = *op.decompose(rewriter);
  Operation *last = values[0].getDefiningOp(), *rotate = last->getOperand(0).getDefiningOp();
  last->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (Operation *part : {rotate, rotate->getOperand(0).getDefiningOp()})
    copyOrigin(op, part);
  rewriter.replaceOp(op, values);
  return success();
}

Values RopeOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents, const llvm::BitVector &) {
  SmallVector<Value> result(2);
  if (cotangents[0])
    result[0] = builder.create<RopeOp>(getLoc(), cotangents[0].getType(), cotangents[0], getPositions(),
                                       getBaseAttr(), getInverse() ? UnitAttr() : builder.getUnitAttr());
  return result;
}

// rope_table.

LogicalResult RopeTableOp::verify() {
  auto positions = getPositions().getType(), table = getCos().getType();
  if (table.getRank() != positions.getRank() + 1 || table.getShape().drop_back() != positions.getShape())
    return emitOpError() << "tables must have the dimensions of positions and one of pairs, got: " << table
                         << " for " << positions;
  return verifyBase(*this, getBase());
}

SmallVector<double> RopeTableOp::getFrequencies() {
  int64_t pairs = getCos().getType().getShape().back();
  SmallVector<double> frequencies;
  for (int64_t j = 0; j < pairs; ++j)
    frequencies.push_back(std::pow(getBase().convertToDouble(), -double(j) / double(pairs)));
  return frequencies;
}

ShardingRule RopeTableOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors table = addFactors(rule, getCos().getType().getShape());
  rule.factors.back().kind = FactorKind::NeedReplication;
  rule.operands = {TensorFactors(ArrayRef(table).drop_back())};
  rule.results = {table, table};
  return rule;
}

Values RopeTableOp::buildVJP(OpBuilder &, ArrayRef<Value>, const llvm::BitVector &) {
  return SmallVector<Value>(1); // positions are integers
}

// rotate.

LogicalResult RotateOp::verify() {
  auto type = getInput().getType(), table = getCos().getType();
  if (type.getRank() < 4 || type.getDimSize(type.getRank() - 2) != 2)
    return emitOpError() << "input must have batch, sequence, and a dimension of 2 before the last, got: " << type;
  if (table.getRank() < 1 || table.getShape().back() != type.getShape().back() ||
      !isOfSequence(table.getShape().drop_back(), type))
    return emitOpError() << "tables must have dimension 1 of the input, or dimensions 0 and 1, and the last one, got: "
                         << table << " for " << type;
  if (table.getElementType() != computeType(type.getElementType()))
    return emitOpError() << "tables must have elements of type " << computeType(type.getElementType())
                         << ", got: " << table;
  return success();
}

ShardingRule RotateOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors input = addFactors(rule, getInput().getType().getShape()), table;
  rule.factors[input.size() - 2].kind = FactorKind::NeedReplication;
  for (unsigned d = 3 - getCos().getType().getRank(); d < 2; ++d)
    table.push_back(input[d]);
  table.push_back(input.back());
  rule.operands = {input, table, table};
  rule.results = {input};
  rule.linear = {{0}, {1, 2}};
  return rule;
}

/// The rotation is linear in x, and in the tables: with cosines 0 and sines 1 it is what sines are multiplied by.
Values RotateOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents, const llvm::BitVector &needed) {
  SmallVector<Value> result(3);
  Value ct = cotangents[0];
  if (!ct)
    return result;
  Build b{builder, getLoc()};
  auto type = getInput().getType(), table = getCos().getType();
  if (needed.test(0))
    result[0] = builder.create<RotateOp>(b.loc, type, ct, getCos(), getSin(), !getInverse());
  auto toTable = [&](Value factor) {
    Value product = b.cast(b.mul(ct, factor), table.getElementType());
    auto dims = llvm::to_vector(llvm::seq<int64_t>(2, type.getRank() - 1));
    if (table.getRank() == 2)
      dims.insert(dims.begin(), 0);
    return b.sum(product, dims, /*keepDims=*/false);
  };
  if (needed.test(1))
    result[1] = toTable(getInput());
  if (needed.test(2)) {
    auto full = [&](double value) { return builder.create<ConstantOp>(b.loc, table, value); };
    result[2] = toTable(builder.create<RotateOp>(b.loc, type, getInput(), full(0), full(1), getInverse()));
  }
  return result;
}
