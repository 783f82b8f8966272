// Puts nn.zigzag between a sequence's original order and the stored one; see ZigzagOrder.h.
#include "ZigzagOrder.h"

#include "Causes.h"

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"

using namespace mlir;

namespace shoal::dist {
namespace {

class ZigzagOrder {
public:
  ZigzagOrder(func::FuncOp func, MeshOp mesh, const SequenceDims &sequence, const DimGroups &groups,
              ArrayRef<StringAttr> axes, CauseAttr why)
      : func(func), symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())), sequence(sequence), axes(axes), why(why),
        ranks(mesh.getMesh().getSize(axes)) {
    for (const DimGroups::Entry &entry : groups.getEntries())
      entryOf[entry.op] = &entry;
  }

  LogicalResult run();

private:
  LogicalResult findLength();
  Value getPositions();
  bool isInOriginalOrder(Operation *op) const;
  Value convert(Value value, unsigned dim, bool toStored, Operation *user);
  Value zigzag(OpBuilder &builder, Value value, unsigned dim, bool inverse);

  func::FuncOp func;
  FlatSymbolRefAttr symbol;
  const SequenceDims &sequence;
  ArrayRef<StringAttr> axes;
  CauseAttr why;
  int64_t ranks, length = 0;
  DenseMap<Operation *, const DimGroups::Entry *> entryOf;
  DenseSet<Operation *> original; // ops that compute in the original order
  DenseMap<std::pair<Value, Attribute>, Value> converted;
  Value positions;
  bool toldGather = false;
};

LogicalResult ZigzagOrder::findLength() {
  auto look = [&](Value value) -> LogicalResult {
    std::optional<unsigned> dim = sequence.findDim(value);
    if (!dim)
      return success();
    int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(*dim);
    if (length == 0)
      length = size;
    if (size == length)
      return success();
    return emitError(value.getLoc()) << "the zigzag order needs one length of the sequence, got: " << length << " and "
                                     << size << "; take --context-parallel ring";
  };
  for (BlockArgument argument : func.getArguments())
    if (failed(look(argument)))
      return failure();
  for (Operation &op : func.front())
    for (Value result : op.getResults())
      if (failed(look(result)))
        return failure();
  return success();
}

Value ZigzagOrder::zigzag(OpBuilder &builder, Value value, unsigned dim, bool inverse) {
  return builder.create<nn::ZigzagOp>(value.getLoc(), value.getType(), value, /*offset=*/Value(), dim, ranks, inverse);
}

/// The original place of each stored row, whole on every device: each makes them, none sends them.
Value ZigzagOrder::getPositions() {
  if (positions)
    return positions;
  OpBuilder builder = OpBuilder::atBlockBegin(&func.front());
  auto type = RankedTensorType::get({length}, builder.getI64Type());
  Value rows = builder.create<nn::IotaOp>(func.getLoc(), type, 0);
  positions = zigzag(builder, rows, 0, /*inverse=*/false);
  for (Value value : {rows, positions})
    setSharding(value, shardAlong(symbol, value, 0, {}));
  return positions;
}

/// Updates and results are of the whole model; and some ops ask which index comes next, or which one it is.
bool ZigzagOrder::isInOriginalOrder(Operation *op) const {
  if (isa<nn::OptimizerUpdateOpInterface>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return true;
  auto found = entryOf.find(op);
  if (found == entryOf.end())
    return true;
  if (isa<PositionedOpInterface>(op))
    return false;
  const DimGroups::Entry &entry = *found->second;
  // A dimension of rows and tokens together has no order of tokens to put it in.
  for (ArrayRef<TensorFactors> tensors : {ArrayRef(entry.rule.operands), ArrayRef(entry.rule.results)})
    for (const TensorFactors &tensor : tensors)
      for (ArrayRef<unsigned> dim : tensor)
        if (dim.size() > 1 && llvm::any_of(dim, [&](unsigned factor) { return sequence.contains(entry.groups[factor]); }))
          return true;
  return llvm::any_of(llvm::enumerate(entry.groups), [&](auto item) {
    return sequence.contains(item.value()) &&
           (entry.rule.factors[item.index()].isReadAnywhere() ||
            llvm::is_contained(entry.rule.indexed, item.index()));
  });
}

/// Once for all users; of an argument, which no stage of a pipeline makes, for those of each stage.
Value ZigzagOrder::convert(Value value, unsigned dim, bool toStored, Operation *user) {
  Attribute stage = value.getDefiningOp() ? Attribute() : user->getAttr(origin::kStage);
  Value &made = converted[{value, stage}];
  if (made)
    return made;
  OpBuilder builder(func.getContext());
  if (Operation *def = value.getDefiningOp())
    builder.setInsertionPointAfter(def);
  else
    builder.setInsertionPointToStart(&func.front());
  made = zigzag(builder, value, dim, /*inverse=*/!toStored);
  if (!toStored && !made.getDefiningOp<nn::ZigzagOp>().getOrder().hasEqualChunks() && !toldGather) {
    toldGather = true;
    made.getDefiningOp()->emitRemark("gathers all tokens on each device to bring them into the original order: ")
        << length << " tokens are no two equal chunks for each of " << ranks
        << " devices; with a multiple of " << 2 * ranks << " each device sends two chunks instead";
  }
  if (Operation *def = value.getDefiningOp())
    copyOrigin(def, made.getDefiningOp());
  else if (stage)
    made.getDefiningOp()->setAttr(origin::kStage, stage);
  // In either order the rows of results lie on all devices; what updates read lies as they want it.
  bool isOfUpdate = llvm::any_of(value.getUsers(), [](Operation *user) { return isa<nn::OptimizerUpdateOpInterface>(user); });
  if (toStored || !isOfUpdate)
    setSharding(made, shardAlong(symbol, made, dim, axes));
  addCause(made.getDefiningOp(), axes, why);
  return made;
}

LogicalResult ZigzagOrder::run() {
  if (failed(findLength()))
    return failure();
  SmallVector<Operation *> ops;
  for (Operation &op : func.front()) {
    ops.push_back(&op);
    if (isInOriginalOrder(&op))
      original.insert(&op);
  }
  for (Operation *op : ops) {
    bool wantsOriginal = original.contains(op);
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      std::optional<unsigned> dim = sequence.findDim(value);
      Operation *def = value.getDefiningOp();
      bool isOriginal = !def || original.contains(def);
      if (dim && isOriginal != wantsOriginal)
        operand.set(convert(value, *dim, isOriginal, op));
    }
    if (auto positioned = dyn_cast<PositionedOpInterface>(op))
      if (std::optional<unsigned> dim = sequence.findDim(op->getResult(0)); dim && positioned.dependsOnIndex(*dim))
        if (failed(positioned.setPositions(getPositions(), *dim)))
          return failure();
  }
  return success();
}

} // namespace

LogicalResult storeInZigzag(func::FuncOp func, MeshOp mesh, const SequenceDims &sequence, const DimGroups &groups,
                            ArrayRef<StringAttr> axes, CauseAttr why) {
  return ZigzagOrder(func, mesh, sequence, groups, axes, why).run();
}

} // namespace shoal::dist
