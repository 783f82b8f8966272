// Builds the slots and nodes of a function and writes their layouts back; see PropagationGraph.h.
#include "PropagationGraph.h"

#include "FittingRule.h"
#include "OneBlock.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/AddFactors.h"
#include "shoal/Support/Elements.h"
#include "shoal/Support/SignatureEdit.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

int64_t Slot::bytes() const { return type ? tensorBytes(type) : 0; }

// Slots.

unsigned PropagationGraph::addSlot(Value value, Location loc, Type type, ShardingAttr annotation) {
  RankedTensorType tensor = getTensorType(type);
  Slot slot{value, 0, loc, tensor, nullptr, {}, {}, {}, false, {}};
  int64_t rank = tensor ? tensor.getRank() : 0;
  slot.layout.dims.resize(rank);
  slot.closed.resize(rank);
  slot.priority.resize(rank);
  slot.causes.resize(axisSizes.size());
  if (annotation) {
    annotateSlot(slot, annotation);
    if (value)
      recordCauses(slot, getWhy(value), [&] { return getHandCause(value); });
  }
  slots.push_back(std::move(slot));
  if (value)
    slotOf[value] = slots.size() - 1;
  return slots.size() - 1;
}

void PropagationGraph::annotateSlot(Slot &slot, ShardingAttr annotation) {
  slot.annotation = annotation;
  slot.isExact = true;
  auto toAxes = [&](ArrayRef<StringAttr> names) {
    Axes axes;
    for (StringAttr name : names)
      axes.push_back(mesh.getAxisIndex(name));
    return axes;
  };
  for (auto [d, dim] : llvm::enumerate(annotation.getDims())) {
    slot.layout.dims[d] = toAxes(dim.getAxes());
    slot.closed[d] = dim.getIsClosed();
    slot.priority[d] = dim.getPriority();
  }
  slot.layout.unreduced = toAxes(annotation.getUnreducedAxes());
  llvm::sort(slot.layout.unreduced);
  slot.layout.kind = fromAttrEnum(annotation.getUnreducedKind());
}

void PropagationGraph::recordCauses(Slot &slot, DictionaryAttr why, function_ref<CauseAttr()> byHand) {
  CauseAttr hand;
  for (unsigned axis = 0; axis < axisSizes.size(); ++axis) {
    if (!slot.layout.uses(axis))
      continue;
    slot.causes[axis] = findCauses(why, mesh.getAxes()[axis].getName());
    if (!slot.causes[axis])
      slot.causes[axis] = hand ? hand : (hand = byHand());
  }
}

void PropagationGraph::passCause(const Node &node, unsigned slot, unsigned axis) {
  if (slots[slot].causes[axis])
    return;
  for (ArrayRef<unsigned> others : {ArrayRef(node.operands), ArrayRef(node.results)})
    for (unsigned other : others)
      if (other != slot && slots[other].causes[axis]) {
        slots[slot].causes[axis] = slots[other].causes[axis];
        return;
      }
}

void PropagationGraph::settleCauses(function_ref<bool(unsigned, unsigned)> isRead) {
  for (const Node &node : nodes) {
    for (unsigned index : node.results) {
      Slot &slot = slots[index];
      if (node.isChange || slot.isExact)
        continue;
      for (unsigned axis : slot.layout.unreduced) {
        Attribute causes;
        for (unsigned operand : node.operands)
          if (llvm::is_contained(slots[operand].layout.unreduced, axis) && isRead(operand, axis))
            causes = joinCauses(causes, slots[operand].causes[axis]);
        slot.causes[axis] = causes;
        passCause(node, index, axis);
      }
    }
  }
}

SmallVector<unsigned> PropagationGraph::slotsOf(ValueRange values) const {
  SmallVector<unsigned> found;
  for (Value value : values)
    found.push_back(slotOf.lookup(value));
  return found;
}

// Construction.

FailureOr<PropagationGraph> PropagationGraph::build(FunctionOpInterface func, MeshOp mesh) {
  PropagationGraph graph(func);
  graph.mesh = mesh.getMesh();
  graph.symbol = FlatSymbolRefAttr::get(mesh.getSymNameAttr());
  for (MeshAxisAttr axis : graph.mesh.getAxes()) {
    graph.axisSizes.push_back(axis.getSize());
    graph.isOfBatch.push_back(getAxisRole(axis.getName()) == AxisRole::Batch);
    graph.isOfSequence.push_back(getAxisRole(axis.getName()) == AxisRole::Sequence);
  }
  if (failed(requireOneBlock(func, "sharded")))
    return failure();
  for (BlockArgument argument : func.getArguments())
    graph.addSlot(argument, argument.getLoc(), argument.getType(), getSharding(argument));
  if (failed(graph.addBlock(func.getFunctionBody().front())))
    return failure();
  return graph;
}

LogicalResult PropagationGraph::addBlock(Block &block) {
  for (Operation &op : block)
    if (failed(addOp(op)))
      return failure();
  return success();
}

LogicalResult PropagationGraph::addOp(Operation &op) {
  if (isa<YieldOp>(op))
    return success(); // its accumulate adds a node for it
  if (isa<FunctionOpInterface>(op.getParentOp()) && op.hasTrait<OpTrait::IsTerminator>())
    return addReturn(op);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return addAccumulate(accumulate);
  for (OpResult result : op.getResults())
    addSlot(result, op.getLoc(), result.getType(), getSharding(result));
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    // Says where the layout changes, so nothing is propagated through the dimensions that it closes.
    unsigned from = slotOf.lookup(reshard.getInput()), to = slotOf.lookup(reshard.getResult());
    if (!slots[to].annotation) {
      annotateSlot(slots[to], reshard.getSharding());
      recordCauses(slots[to], getWhy(reshard), [&] { return getHandCause(reshard.getResult()); });
    }
    Node change{&op, {}, {from}, {to}, /*isChange=*/true};
    TensorFactors input, result;
    for (auto [d, size] : llvm::enumerate(reshard.getResult().getType().getShape())) {
      input.push_back({change.rule.addFactor(size)});
      result.push_back(slots[to].closed[d] ? TensorFactors::value_type{change.rule.addFactor(size)} : input.back());
    }
    change.rule.operands = {input};
    change.rule.results = {result};
    nodes.push_back(std::move(change));
    return success();
  }
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled) {
    SmallVector<unsigned> read = slotsOf(op.getOperands());
    op.walk([&](Operation *inner) {
      if (inner != &op)
        for (Value operand : inner->getOperands())
          if (auto it = slotOf.find(operand); it != slotOf.end())
            read.push_back(it->second);
    });
    opaque.push_back({&op, std::move(read)});
    return success();
  }
  FailureOr<ShardingRule> rule = getFittingRule(ruled);
  if (failed(rule))
    return failure();
  nodes.push_back({&op, std::move(*rule), slotsOf(op.getOperands()), slotsOf(op.getResults()), /*isChange=*/false});
  return success();
}

void PropagationGraph::addIdentity(Operation *op, unsigned from, unsigned to, bool isLinear) {
  ShardingRule rule;
  TensorFactors factors;
  if (slots[to].type)
    factors = addFactors(rule, slots[to].type.getShape());
  rule.operands = {factors};
  rule.results = {factors};
  rule.movesOnly = isLinear;
  nodes.push_back({op, std::move(rule), {from}, {to}, /*isChange=*/false});
}

// Inputs become arguments of the body a part at a time: what holds of their dimensions holds of the
// argument's. Yields of all parts are added, which is linear.
LogicalResult PropagationGraph::addAccumulate(AccumulateOp op) {
  for (auto [input, argument] : llvm::zip(op.getInputs(), op.getBody().getArguments())) {
    unsigned to = addSlot(argument, argument.getLoc(), argument.getType(), getSharding(argument));
    addIdentity(op, slotOf.lookup(input), to, /*isLinear=*/false);
  }
  if (failed(addBlock(op.getBody().front())))
    return failure();
  Operation *yield = op.getBody().front().getTerminator();
  for (auto [value, result] : llvm::zip(yield->getOperands(), op.getResults())) {
    unsigned to = addSlot(result, op.getLoc(), result.getType(), getSharding(result));
    addIdentity(op, slotOf.lookup(value), to, /*isLinear=*/true);
    // Maxima of parts do not add up to a maximum: only sums stay partial.
    nodes.back().rule.movesOnly = false;
    nodes.back().rule.linear = {{0}};
  }
  return success();
}

LogicalResult PropagationGraph::addReturn(Operation &op) {
  if (op.getNumOperands() != func.getNumResults())
    return op.emitOpError("must return ")
           << func.getNumResults() << " values to be sharded, got: " << op.getNumOperands();
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    unsigned from = slotOf.lookup(operand);
    ShardingAttr annotation = getResultSharding(func, index);
    auto byHand = [&, index = index] { return getResultHandCause(func, index); };
    std::optional<unsigned> argument = updated[index];
    if (argument && func.getArgumentTypes()[*argument] == operand.getType()) {
      // The new value takes the buffer of the old one: one layout for both.
      Slot &slot = slots[*argument];
      if (annotation && slot.annotation && !annotation.sameLayout(slot.annotation)) {
        InFlightDiagnostic diag = nn::emitResultError(func, index)
                                  << "updates argument \"" << nn::getArgName(func, *argument)
                                  << "\" and must have its sharding " << slot.annotation << ", got: " << annotation;
        diag.attachNote(slot.loc) << "the argument is here";
        return diag;
      }
      if (annotation && !slot.annotation) {
        annotateSlot(slot, annotation);
        recordCauses(slot, {}, byHand);
      }
      // The op that makes it lays it so at once: an update reads a gradient that lies otherwise, instead of making
      // value and state otherwise to move them afterwards.
      if (slot.annotation && !slots[from].annotation && isa<OpResult>(operand)) {
        annotateSlot(slots[from], slot.annotation);
        slots[from].causes = slot.causes;
      }
      addIdentity(&op, from, *argument, /*isLinear=*/true);
      continue;
    }
    unsigned to = addSlot({}, func.getLoc(), operand.getType(), annotation);
    slots[to].result = index;
    slots[to].isExact = true;
    recordCauses(slots[to], {}, byHand);
    addIdentity(&op, from, to, /*isLinear=*/true);
  }
  return success();
}

// Layouts.

SmallVector<Layout> PropagationGraph::layoutsOf(ArrayRef<unsigned> indices,
                                                int64_t priority) const {
  SmallVector<Layout> layouts;
  for (unsigned index : indices) {
    const Slot &slot = slots[index];
    Layout &layout = layouts.emplace_back(slot.layout);
    for (auto [axes, dimPriority] : llvm::zip_equal(layout.dims, slot.priority))
      if (dimPriority > priority)
        axes.clear();
  }
  return layouts;
}

OpSharding PropagationGraph::shard(const Node &node, ArrayRef<Layout> operands,
                                   ArrayRef<Layout> results, bool keepPartial, Lead lead) const {
  auto toPointers = [](ArrayRef<Layout> layouts) {
    return llvm::map_to_vector(layouts, [](const Layout &layout) { return &layout; });
  };
  SmallVector<int64_t> bytes;
  for (unsigned slot : node.operands)
    bytes.push_back(slots[slot].bytes());
  return shardOp(node.rule, axisSizes, toPointers(operands), bytes, toPointers(results), lead,
                 keepPartial);
}

bool PropagationGraph::sameDims(const Layout &a, const Layout &b) const {
  auto strip = [&](const Axes &axes) {
    return llvm::to_vector(
        llvm::make_filter_range(axes, [&](unsigned axis) { return axisSizes[axis] > 1; }));
  };
  return llvm::all_of(llvm::zip_equal(a.dims, b.dims), [&](auto pair) {
    return strip(std::get<0>(pair)) == strip(std::get<1>(pair));
  });
}

bool PropagationGraph::isSharded(const Layout &layout) const {
  Layout whole;
  whole.dims.resize(layout.dims.size());
  return !sameDims(layout, whole) ||
         llvm::any_of(layout.unreduced, [&](unsigned axis) { return axisSizes[axis] > 1; });
}

ShardingAttr PropagationGraph::toSharding(const Layout &layout) const {
  MLIRContext *context = mesh.getContext();
  auto toNames = [&](ArrayRef<unsigned> axes) {
    return llvm::map_to_vector(axes, [&](unsigned axis) { return mesh.getAxes()[axis].getName(); });
  };
  SmallVector<DimShardingAttr> dims;
  for (const Axes &axes : layout.dims)
    dims.push_back(DimShardingAttr::get(context, toNames(axes), /*isClosed=*/true, 0));
  return ShardingAttr::get(context, symbol, dims,
                           layout.unreduced.empty() ? ReduceKindAttrEnum::sum
                                                    : toAttrEnum(layout.kind),
                           toNames(layout.unreduced));
}

LogicalResult PropagationGraph::verifyOpaque() const {
  for (const auto &[op, read] : opaque)
    for (unsigned index : read) {
      const Slot &slot = slots[index];
      if (!isSharded(slot.layout))
        continue;
      InFlightDiagnostic diag =
          op->emitOpError("has no sharding rule, and meets an operand sharded as ")
          << toSharding(slot.layout) << "; implement ShardingRuleOpInterface for '" << op->getName()
          << "', or put a dist.reshard to a replicated layout before it";
      diag.attachNote(slot.loc) << "the operand is defined here";
      return diag;
    }
  return success();
}

void PropagationGraph::annotate() {
  SignatureEdit signature(func);
  // Per op and attribute; an array of shardings is written once, when it is complete.
  llvm::MapVector<std::pair<Operation *, StringRef>, SmallVector<Attribute>> arrays;
  Block *entry = &func.getFunctionBody().front();
  for (const Slot &slot : slots) {
    ShardingAttr sharding = toSharding(slot.layout);
    auto argument = dyn_cast_or_null<BlockArgument>(slot.value);
    if (!slot.value)
      signature.setResultAttr(slot.result, DistDialect::kShardingAttr, sharding);
    else if (!argument)
      arrays[{slot.value.getDefiningOp(), DistDialect::kShardingsAttr}].push_back(sharding);
    else if (argument.getOwner() != entry)
      arrays[{argument.getOwner()->getParentOp(), DistDialect::kArgShardingsAttr}].push_back(
          sharding);
    else if (slot.type)
      signature.setArgAttr(argument.getArgNumber(), DistDialect::kShardingAttr, sharding);
  }
  for (auto &[key, shardings] : arrays) {
    auto [op, name] = key;
    TypeRange types = name == DistDialect::kShardingsAttr
                          ? TypeRange(op->getResultTypes())
                          : TypeRange(op->getRegion(0).getArgumentTypes());
    // An op whose results are no tensors has nothing to say.
    if (llvm::none_of(types, [](Type type) { return getTensorType(type) != nullptr; }))
      continue;
    op->setAttr(name, ArrayAttr::get(op->getContext(), shardings));
    if (auto reshard = dyn_cast<ReshardOp>(op))
      reshard.setShardingAttr(cast<ShardingAttr>(shardings.front()));
  }
  annotateCauses(signature);
  // Results in the buffer of an argument have its layout.
  for (auto [index, argument] : llvm::enumerate(updated))
    if (argument && func.getArgumentTypes()[*argument] == func.getResultTypes()[index])
      signature.setResultAttr(index, DistDialect::kShardingAttr, toSharding(slots[*argument].layout));
}

void PropagationGraph::annotateCauses(SignatureEdit &signature) {
  auto toRecord = [&](ArrayRef<Attribute> causes) {
    SmallVector<NamedAttribute> entries;
    for (auto [axis, cause] : llvm::zip_equal(mesh.getAxes(), causes))
      if (cause)
        entries.push_back({axis.getName(), cause});
    return entries.empty() ? DictionaryAttr() : DictionaryAttr::get(mesh.getContext(), entries);
  };
  Block *entry = &func.getFunctionBody().front();
  for (const Slot &slot : slots) {
    auto argument = dyn_cast_or_null<BlockArgument>(slot.value);
    if (!argument || argument.getOwner() != entry)
      continue;
    DictionaryAttr record = toRecord(slot.causes);
    // Why its elements lie in a bucket, which no dimension tells, stays known.
    auto flat = func.getArgAttrOfType<FlatAttr>(argument.getArgNumber(), DistDialect::kFlatAttr);
    for (StringAttr axis : flat ? flat.getAxes() : ArrayRef<StringAttr>())
      if (auto cause = dyn_cast_or_null<CauseAttr>(findCauses(getWhy(argument), axis)))
        record = addCause(record, axis, cause);
    signature.setArgAttr(argument.getArgNumber(), DistDialect::kWhyAttr, record);
  }
  // An op tells of its results, and of what it reads: that may be reduced or cut for it, or partial values be added
  // and then reduced where that is cheaper.
  llvm::MapVector<Operation *, SmallVector<Attribute>> records;
  for (const Node &node : nodes) {
    SmallVector<Attribute> &causes = records[node.op];
    causes.resize(axisSizes.size());
    for (unsigned axis = 0; axis < axisSizes.size(); ++axis) {
      Attribute &mine = causes[axis];
      for (unsigned index : node.results)
        mine = mine ? mine : slots[index].causes[axis];
      Attribute partial;
      for (unsigned index : node.operands)
        if (llvm::is_contained(slots[index].layout.unreduced, axis))
          partial = joinCauses(partial, slots[index].causes[axis]);
      mine = mine ? mine : partial;
      for (unsigned index : node.operands)
        mine = mine ? mine : slots[index].causes[axis];
    }
  }
  for (auto &[op, causes] : records)
    if (DictionaryAttr record = toRecord(causes))
      op->setAttr(DistDialect::kWhyAttr, record);
    else
      op->removeAttr(DistDialect::kWhyAttr);
}
