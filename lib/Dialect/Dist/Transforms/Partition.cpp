// dist-partition: from whole tensors with shardings to one device's shards with collectives.
//
// The function is rebuilt in program order. For each op the factors' shardings are chosen from the
// annotations (FactorSharding.h), operands are brought into the layouts that follow
// (LocalValues.h), padding is masked where a reduction would see it, the op is built on shards, and
// its results are brought into their annotated layouts.
#include "OneBlock.h"
#include "Partitioner.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Support/DeadOps.h"
#include "shoal/Support/Elements.h"

#include "mlir/Pass/Pass.h"

#include <vector>

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_PARTITIONPASS
#include "shoal/passes/ShoalDist.h.inc"

// Values and what is said of them.

Value Partitioner::placeConstant(OpBuilder &b, Location loc, ArrayRef<unsigned> axes, ArrayRef<int64_t> values) {
  SmallVector<int64_t> ofPosition =
      llvm::map_to_vector(mesh.indicesAlong(axes), [&](int64_t index) { return values[index]; });
  auto op = b.create<PositionConstantOp>(loc, RankedTensorType::get({}, b.getI64Type()), ofPosition);
  this->values.annotate(op, {nullptr});
  return op;
}

Value Partitioner::axisIndex(OpBuilder &b, Location loc, ArrayRef<unsigned> axes, int64_t scale, int64_t back) {
  int64_t devices = groupSize(axes, mesh.sizes());
  if (back % devices != 0) {
    // Of another device than this one: a constant of each position, as what folds at positions is.
    auto behind = llvm::map_to_vector(llvm::seq<int64_t>(0, devices), [&](int64_t index) {
      return ((index - back) % devices + devices) % devices * scale;
    });
    return placeConstant(b, loc, axes, behind);
  }
  auto op = b.create<AxisIndexOp>(loc, RankedTensorType::get({}, b.getI64Type()), mesh.toAxes(axes), scale);
  values.annotate(op, {nullptr});
  return op;
}

ReasonAttr Partitioner::reasonOfPassing(Operation *op, Value global, ArrayRef<unsigned> axes, StringRef what,
                                        StringRef where) {
  Attribute causes;
  auto wanted = op->getAttrOfType<DictionaryAttr>(DistDialect::kWhyAttr);
  for (unsigned axis : axes) {
    StringAttr name = mesh.name(axis);
    for (Attribute more : {traceCauses(global, name), wanted ? findCauses(wanted, name) : Attribute()})
      causes = joinCauses(causes, more);
    // In a program that was not propagated, another operand or a result may be what is annotated.
    for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()), llvm::to_vector<4>(op->getResults())))
      if (!causes)
        causes = joinCauses(findHandCauses(op, value, name), traceCauses(value, name));
  }
  Builder b(op->getContext());
  return ReasonAttr::get(b.getContext(), b.getStringAttr(what + " of " + op->getName().getStringRef()),
                         op->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr), b.getStringAttr(where),
                         listCauses(causes));
}

Value Partitioner::startShift(OpBuilder &b, Operation *op, Value local, Value global, ArrayRef<unsigned> axes,
                              int64_t forward, StringRef what) {
  int64_t devices = groupSize(axes, mesh.sizes());
  auto sources = llvm::to_vector(llvm::seq<int64_t>(0, devices));
  auto targets = llvm::map_to_vector(
      sources, [&](int64_t device) { return ((device + forward) % devices + devices) % devices; });
  std::string places = forward == 1    ? "the next device"
                       : forward == -1 ? "the device before"
                       : forward > 0   ? "the device " + std::to_string(forward) + " places behind"
                                       : "the device " + std::to_string(-forward) + " places before";
  ReasonAttr reason = reasonOfPassing(op, global, axes, what, "to " + places + " around the ring");
  auto type = FutureType::get(b.getContext(), cast<RankedTensorType>(local.getType()));
  auto start = b.create<PermuteStartOp>(op->getLoc(), type, mesh.toAxes(axes), sources, targets, local, reason);
  if (ringOp != op) {
    ringOp = op;
    if (ring < 0) // rings of an earlier run over other axes keep their numbers
      func.walk([&](PermuteStartOp other) {
        if (auto number = other->getAttrOfType<IntegerAttr>(DistDialect::kRingAttr))
          ring = std::max(ring, number.getInt());
      });
    ++ring;
  }
  start->setAttr(DistDialect::kRingAttr, b.getI64IntegerAttr(ring));
  return start;
}

FailureOr<std::optional<PlanMesh::Parts>> Partitioner::annotationOf(Value value) {
  RankedTensorType type = getTensorType(value);
  ShardingAttr sharding = getSharding(value);
  if (!type || !sharding)
    return std::optional<PlanMesh::Parts>();
  auto parts = mesh.split(value.getLoc(), sharding, type);
  if (failed(parts))
    return failure();
  return std::optional(std::move(*parts));
}

FailureOr<Value> Partitioner::get(Operation *user, Value value, const Layout &layout,
                                  const Twine &what) {
  Block *home = value.getParentBlock();
  for (auto &[block, builder] : frames)
    if (block == home)
      return values.get(builder, user, value, layout, what);
  return values.get(builder(), user, value, layout, what);
}

FailureOr<Value> Partitioner::getOperand(Operation *op, Value value, const Layout &layout,
                                         const Twine &what) {
  // A collective of an earlier run is called as it is told.
  OperationName name = op->getName();
  return get(op, value, layout,
             what + " of " + (isa<CollectiveOpInterface>(op) ? name.stripDialect() : name.getStringRef()));
}

GlobalAttr Partitioner::tagOf(Operation *op, unsigned result, const Layout &layout) {
  RankedTensorType type = getTensorType(op->getResult(result));
  if (auto globals = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr))
    return mesh.extend(cast<GlobalAttr>(globals[result]), layout);
  auto id = op->getAttrOfType<IntegerAttr>(DistDialect::kIdAttr);
  if (!id || !type)
    return {};
  return GlobalAttr::get(op->getContext(), id.getInt() + result, type, mesh.toSharding(layout));
}

void Partitioner::keepWhy(Operation *op, Operation *local) const {
  Attribute why = op->getAttr(DistDialect::kWhyAttr);
  if (why && mesh.hasRemaining())
    local->setAttr(DistDialect::kWhyAttr, why);
  else
    local->removeAttr(DistDialect::kWhyAttr);
}

void Partitioner::finish(Operation *op, Operation *last, ArrayRef<Value> operands, ArrayRef<Value> results,
                         ArrayRef<Layout> layouts, ArrayRef<Layout> rests) {
  Block *block = builder().getInsertionBlock();
  Operation *first = last ? last->getNextNode() : &block->front();
  // What is built on the way to the results follows the operands.
  DenseMap<Value, Layout> lies;
  for (auto [local, global] : llvm::zip(operands, op->getOperands()))
    lies.try_emplace(local, values.restOf(global));
  auto restOf = [&](Value local) -> const Layout & {
    RankedTensorType type = getTensorType(local);
    return lies.try_emplace(local, mesh.whole(type ? type.getRank() : 0)).first->second;
  };
  for (Operation *local = first; local; local = local->getNextNode()) {
    local->removeAttr(DistDialect::kIdAttr);
    local->removeAttr(DistDialect::kGlobalsAttr);
    keepWhy(op, local);
    SmallVector<Layout> made;
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(local); ruled && mesh.hasRemaining())
      made = inferRests(local, ruled.getShardingRule(), restOf);
    SmallVector<Attribute> tags;
    for (auto [i, result] : llvm::enumerate(local->getResults())) {
      if (!made.empty())
        lies.insert_or_assign(result, made[i]);
      for (auto [k, value] : llvm::enumerate(results))
        if (value == result) {
          lies.insert_or_assign(result, rests[k]);
          if (GlobalAttr tag = tagOf(op, k, layouts[k]))
            tags.push_back(tag);
        }
    }
    SmallVector<Layout> own = llvm::map_to_vector(local->getResults(), [&](Value result) { return restOf(result); });
    values.annotate(local, llvm::map_to_vector(own, [](const Layout &rest) { return &rest; }));
    if (!tags.empty() && tags.size() == local->getNumResults())
      local->setAttr(DistDialect::kGlobalsAttr, ArrayAttr::get(op->getContext(), tags));
  }
}

LogicalResult Partitioner::defineResult(Operation *op, unsigned result, Value local,
                                        const Layout &made, const Layout &rest,
                                        const std::optional<PlanMesh::Parts> &wanted) {
  Value global = op->getResult(result);
  values.define(global, made, local, rest);
  if (!wanted || wanted->layout == made)
    return success();
  auto annotated = get(op, global, wanted->layout, "result of " + op->getName().getStringRef());
  if (failed(annotated))
    return failure();
  values.setAnnotated(global, wanted->layout);
  if (GlobalAttr tag = tagOf(op, result, wanted->layout))
    annotated->getDefiningOp()->setAttr(DistDialect::kGlobalsAttr,
                                        ArrayAttr::get(op->getContext(), {tag}));
  return success();
}

// The function.

LogicalResult Partitioner::partitionOp(Operation *op) {
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return partitionReshard(reshard);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return partitionAccumulate(accumulate);
  if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
    return partitionRuled(ruled);
  return partitionUnruled(op);
}

LogicalResult Partitioner::partitionBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(partitionOp(&op)))
      return failure();
  return success();
}

LogicalResult Partitioner::setBoundary(bool isArgument, unsigned index, RankedTensorType type,
                                       const Layout &layout, const Layout &rest) {
  auto set = [&](StringRef name, Attribute attr) {
    isArgument ? signature.setArgAttr(index, name, attr)
               : signature.setResultAttr(index, name, attr);
  };
  StringRef global = DistDialect::kGlobalAttr, sharding = DistDialect::kShardingAttr;
  auto tag = isArgument ? func.getArgAttrOfType<GlobalAttr>(index, global)
                        : func.getResultAttrOfType<GlobalAttr>(index, global);
  if (!tag)
    tag = GlobalAttr::get(func.getContext(), index, type, mesh.toSharding(mesh.whole(type.getRank())));
  GlobalAttr extended = mesh.extend(tag, layout);
  if (!extended)
    return (isArgument ? nn::emitArgError(func, index) : nn::emitResultError(func, index))
           << "lies as " << tag << " and then as " << mesh.print(layout)
           << ", which does not divide it: partition these axes in one run";
  set(global, extended);
  set(sharding, mesh.hasRemaining() ? mesh.toSharding(rest) : ShardingAttr());
  if (isArgument && !mesh.hasRemaining())
    set(DistDialect::kWhyAttr, {});
  return success();
}

LogicalResult Partitioner::partitionReturn(func::ReturnOp op) {
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    RankedTensorType type = getTensorType(value);
    Layout layout = values.layoutOf(value), rest = values.restOf(value);
    if (ShardingAttr sharding = getResultSharding(func, i); sharding && type) {
      auto parts = mesh.split(op.getLoc(), sharding, type);
      if (failed(parts))
        return failure();
      layout = parts->layout;
      rest = parts->rest;
    }
    // What leaves the function is reduced.
    layout.unreduced.clear();
    std::string what = "result " + std::to_string(i);
    if (auto roles = nn::getResultRoles(func, i); !roles.empty()) {
      auto [role, name] = roles.front();
      what =
          role == nn::ResultRole::Loss ? "loss" : nn::getRoleAttr(role).drop_front(3).str() + " \"" + name.str() + "\"";
    }
    auto local = get(op, value, layout, what);
    if (failed(local))
      return failure();
    results.push_back(*local);
    if (type && failed(setBoundary(/*isArgument=*/false, i, type, layout, rest)))
      return failure();
  }
  keepWhy(op, builder().create<func::ReturnOp>(op.getLoc(), results));
  return success();
}

LogicalResult Partitioner::run() {
  if (failed(requireOneBlock(func, "partitioned")))
    return failure();
  Block &old = func.getBody().front();
  auto terminator = dyn_cast<func::ReturnOp>(old.getTerminator());
  if (!terminator)
    return func.emitOpError("must end in func.return to be partitioned");

  // The local block is built beside the old one, which goes when nothing refers to it.
  Block *local = new Block();
  func.getBody().push_back(local);
  std::vector<PlanMesh::Parts> arguments;
  for (BlockArgument argument : old.getArguments()) {
    RankedTensorType type = getTensorType(argument);
    auto parts = annotationOf(argument);
    if (failed(parts))
      return failure();
    int64_t rank = type ? type.getRank() : 0;
    PlanMesh::Parts lies = *parts ? **parts : PlanMesh::Parts{mesh.whole(rank), mesh.whole(rank)};
    if (!lies.layout.unreduced.empty())
      return nn::emitArgError(func, argument.getArgNumber()) << "cannot be partial: " << mesh.print(lies.layout);
    Type localType = argument.getType();
    if (type)
      localType = mesh.localType(cast<ShapedType>(localType), lies.layout);
    values.define(argument, lies.layout, local->addArgument(localType, argument.getLoc()),
                  lies.rest);
    arguments.push_back(std::move(lies));
  }
  frames.push_back({&old, OpBuilder::atBlockEnd(local)});
  if (failed(partitionBlock(old)) || failed(partitionReturn(terminator)))
    return failure();

  for (auto [i, argument] : llvm::enumerate(old.getArguments()))
    if (RankedTensorType type = getTensorType(argument))
      if (failed(setBoundary(/*isArgument=*/true, i, type, arguments[i].layout, arguments[i].rest)))
        return failure();
  func.setFunctionType(FunctionType::get(func.getContext(), local->getArgumentTypes(),
                                         local->getTerminator()->getOperandTypes()));
  // A layout that was annotated and that no one reads costs nothing.
  eraseUnread(*local);
  old.dropAllReferences();
  local->moveBefore(&old);
  old.erase();
  return success();
}

namespace {

/// Whether a value of the function has a sharding.
bool isAnnotated(func::FuncOp func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (getSharding(func.getArgument(i)))
      return true;
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (getResultSharding(func, i))
      return true;
  return func
      .walk([](Operation *op) {
        return op->hasAttr(DistDialect::kShardingsAttr) ? WalkResult::interrupt()
                                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Written by hand at L2: one device's program already, whose values belong to no global ones.
bool isHandWritten(func::FuncOp func) {
  return isLocalProgram(func) && !isMadeByPartitioner(func) && !isAnnotated(func);
}

struct PartitionPass : impl::PartitionPassBase<PartitionPass> {
  using PartitionPassBase::PartitionPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshOp meshOp = lookupMesh(module);
    if (!meshOp)
      return; // one device: the global program is the local one
    SmallVector<std::string> names(axes.begin(), axes.end());
    auto mesh = PlanMesh::get(meshOp, names);
    if (failed(mesh))
      return signalPassFailure();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      if (isHandWritten(func)) {
        func.emitRemark("holds collectives and no sharding: a local program already, which is left "
                        "as it is");
        continue;
      }
      if (failed(Partitioner(*mesh, func).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace shoal::dist
