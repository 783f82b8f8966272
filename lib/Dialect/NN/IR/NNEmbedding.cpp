// embedding and the gradient of its table. The rows of a table shard: each device yields zeros for
// those it lacks, so that the results add up, and takes from a gradient those that it has.
#include "Build.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr attributes,
                                            OpaqueProperties properties, RegionRange regions,
                                            SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  auto table = cast<RankedTensorType>(adaptor.getTable().getType());
  if (table.getRank() < 1)
    return emitOptionalError(loc, "table must have rows, got: ", table);
  SmallVector<int64_t> shape(cast<RankedTensorType>(adaptor.getIds().getType()).getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  types.push_back(table.clone(shape));
  return success();
}

LogicalResult EmbeddingOp::verify() {
  if (getTable().getType().getRank() < 1 || getTable().getType().getDimSize(0) < 1)
    return emitOpError() << "table must have rows, got: " << getTable().getType();
  if (getVocab() && int64_t(*getVocab()) < 1)
    return emitOpError() << "vocab must be at least 1, got: " << int64_t(*getVocab());
  int64_t rows = getTable().getType().getDimSize(0);
  if (!getOffset() && getNumRows() != rows)
    return emitOpError() << "vocab must be the table's " << rows
                         << " rows where no offset says which part of the whole they are, got: " << getNumRows();
  if (getOffset() && !getVocab())
    return emitOpError()
           << "with an offset the table is a part, and vocab must be the rows of the whole, got none beside the part's "
           << rows << " rows";
  return success();
}

LogicalResult EmbeddingGradOp::verify() {
  auto ids = getIds().getType(), cotangent = getCotangent().getType(), table = getType();
  if (table.getRank() < 1 || table.getDimSize(0) < 1)
    return emitOpError() << "result must have rows, got: " << table;
  SmallVector<int64_t> shape(ids.getShape());
  llvm::append_range(shape, table.getShape().drop_front());
  RankedTensorType wanted = table.clone(shape);
  if (cotangent != wanted)
    return emitOpError() << "cotangent must be a row of the table per number, " << wanted
                         << ", got: " << cotangent;
  return success();
}

std::optional<IndexRange> EmbeddingOp::getIndexRange(unsigned operand) {
  if (operand != 1)
    return std::nullopt;
  return IndexRange{getNumRows()};
}

/// The factors of table, numbers and rows by number.
static std::array<TensorFactors, 3> addTableFactors(ShardingRule &rule, RankedTensorType table, RankedTensorType ids,
                                                    FactorKind rowsKind, FactorKind idsKind) {
  std::array<TensorFactors, 3> factors;
  auto &[ofTable, ofIds, ofRows] = factors;
  ofIds = ofRows = addFactors(rule, ids.getShape(), idsKind);
  ofTable = addFactors(rule, table.getShape().take_front(), rowsKind);
  rule.indexed = {ofTable.front().front()}; // a number names a row
  TensorFactors ofFeatures = addFactors(rule, table.getShape().drop_front());
  for (TensorFactors *tensor : {&ofTable, &ofRows})
    llvm::append_range(*tensor, ofFeatures);
  return factors;
}

ShardingRule EmbeddingOp::getShardingRule() {
  ShardingRule rule;
  auto [table, ids, rows] = addTableFactors(rule, getTable().getType(), getIds().getType(),
                                            FactorKind::Reduction, FactorKind::PassThrough);
  rule.operands = {table, ids};
  rule.operands.resize((*this)->getNumOperands()); // the offset is a scalar
  rule.results = {rows};
  rule.linear = {{0}};
  rule.unread = {0};
  return rule;
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  ShardingRule rule;
  auto [table, ids, rows] = addTableFactors(rule, getType(), getIds().getType(),
                                            FactorKind::PassThrough, FactorKind::Reduction);
  rule.operands = {ids, rows};
  rule.operands.resize((*this)->getNumOperands());
  rule.results = {table};
  rule.linear = {{1}};
  // A number that no row has adds nothing, whatever its cotangent.
  rule.padding = {-1.0, std::nullopt};
  rule.leftOut = {1};
  rule.unread = {1};
  return rule;
}

LogicalResult EmbeddingOp::localize(OpBuilder &builder, ValueRange operands,
                                    const LocalizeContext &ctx, SmallVectorImpl<Value> &results) {
  Value offset = addOffsets(builder, getLoc(), getOffset() ? operands[2] : Value(),
                            ctx.operandOffset(builder, 0, 0));
  IntegerAttr vocab = getVocabAttr();
  if (offset && !vocab)
    vocab = builder.getI64IntegerAttr(ctx.globalOperandSize(0, 0));
  auto local = builder.create<EmbeddingOp>(getLoc(), operands[0], operands[1], offset, vocab);
  return finishLocalize(*this, local, results);
}

LogicalResult EmbeddingGradOp::localize(OpBuilder &builder, ValueRange operands,
                                        const LocalizeContext &ctx,
                                        SmallVectorImpl<Value> &results) {
  Value offset = addOffsets(builder, getLoc(), getOffset() ? operands[2] : Value(),
                            ctx.resultOffset(builder, 0, 0));
  auto local = builder.create<EmbeddingGradOp>(getLoc(), ctx.localResultType(0), operands[0],
                                               operands[1], offset);
  return finishLocalize(*this, local, results);
}

FailureOr<SmallVector<Value>> EmbeddingOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                    const llvm::BitVector &needed) {
  SmallVector<Value> result((*this)->getNumOperands());
  if (cotangents[0] && needed.test(0))
    result[0] = builder.create<EmbeddingGradOp>(getLoc(), getTable().getType(), getIds(),
                                                cotangents[0], getOffset());
  return result;
}

FailureOr<SmallVector<Value>> EmbeddingGradOp::buildVJP(OpBuilder &, ArrayRef<Value>,
                                                        const llvm::BitVector &) {
  return emitOpError() << "has no gradient";
}
