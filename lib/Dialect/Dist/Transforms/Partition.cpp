// dist-partition: from whole tensors with shardings to one device's shards with collectives.
//
// The function is rebuilt in program order. For each op the factors' shardings are chosen from the
// annotations (FactorSharding.h), operands are brought into the layouts that follow
// (LocalValues.h), padding is masked where a reduction would see it, the op is built on shards, and
// its results are brought into their annotated layouts.
#include "FactorSharding.h"
#include "LocalValues.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"

#include <limits>
#include <vector>

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_PARTITIONPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

int64_t globalBytes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() * elementBytes(type.getElementType()) : 0;
}

/// `nn.matmul in h.3`: who asks for a collective.
std::string nameOf(Operation *op) {
  std::string name = op->getName().getStringRef().str();
  if (auto layer = op->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr))
    name += " in " + layer.getValue().str();
  return name;
}

class Partitioner {
public:
  Partitioner(const PlanMesh &mesh, func::FuncOp func) : mesh(mesh), func(func), values(mesh) {}

  LogicalResult run();

private:
  LogicalResult partitionBlock(Block &block);
  LogicalResult partitionOp(Operation *op);
  LogicalResult partitionRuled(ShardingRuleOpInterface op);
  LogicalResult partitionUnruled(Operation *op);
  LogicalResult partitionReshard(ReshardOp op);
  LogicalResult partitionAccumulate(AccumulateOp op);
  LogicalResult partitionReturn(func::ReturnOp op);
  LogicalResult decompose(ShardingRuleOpInterface op, const OpSharding &sharding);

  /// What the annotation of a value says; nothing when it has none.
  FailureOr<std::optional<PlanMesh::Parts>> annotationOf(Operation *at, Value value);
  /// The layout over the axes of later runs, by the op's rule, where nothing is annotated.
  Layout inferRest(Operation *op, const ShardingRule &rule, unsigned result);
  FailureOr<OpSharding> choose(ShardingRuleOpInterface op, const ShardingRule &rule,
                               ArrayRef<const Layout *> wanted);
  LogicalResult checkRule(Operation *op, const ShardingRule &rule);

  FailureOr<Value> getOperand(Operation *op, Value value, const Layout &layout,
                              const Twine &what);
  /// The value in `layout`, built in the block where it is defined.
  FailureOr<Value> get(Operation *user, Value value, const Layout &layout, const Twine &reason);
  Value maskPadding(Operation *op, Value local, Value global, const Layout &layout, unsigned dim,
                    double fill);
  /// Interchanges rows so that a device's part of every micro-batch lies together.
  FailureOr<Value> exchangeMicrobatches(AccumulateOp op, unsigned input, const Layout &wanted);

  Value axisIndex(OpBuilder &b, Location loc, ArrayRef<unsigned> axes, int64_t scale);
  /// Annotates and tags what was built for `op` since `last`.
  void finish(Operation *op, Operation *last, ArrayRef<Value> results,
              ArrayRef<Layout> layouts, ArrayRef<Layout> rests);
  GlobalAttr tagOf(Operation *op, unsigned result, const Layout &layout);
  /// Defines a result that was made in `made`, and brings it into the annotated layout.
  LogicalResult defineResult(Operation *op, unsigned result, Value local, const Layout &made,
                             const Layout &rest, const std::optional<PlanMesh::Parts> &wanted);
  void setBoundary(bool isArgument, unsigned index, RankedTensorType type, const Layout &layout,
                   const Layout &rest);

  OpBuilder &builder() { return frames.back().second; }

  const PlanMesh &mesh;
  func::FuncOp func;
  LocalValues values;
  /// Blocks being rebuilt, outermost first, with where their local ops go.
  SmallVector<std::pair<Block *, OpBuilder>, 2> frames;

  friend class Context;
};

/// What an op's `localize` asks.
class Context : public LocalizeContext {
public:
  Context(Partitioner &partitioner, Operation *op, const OpSharding &sharding)
      : partitioner(partitioner), op(op), sharding(sharding) {}

  RankedTensorType localResultType(unsigned result) const override {
    return partitioner.mesh.localType(cast<RankedTensorType>(op->getResult(result).getType()),
                                      sharding.results[result]);
  }
  int64_t globalOperandSize(unsigned operand, unsigned dim) const override {
    return cast<RankedTensorType>(op->getOperand(operand).getType()).getDimSize(dim);
  }
  Value operandOffset(OpBuilder &builder, unsigned operand, unsigned dim) const override {
    return offset(builder, op->getOperand(operand), sharding.operands[operand], dim);
  }
  Value resultOffset(OpBuilder &builder, unsigned result, unsigned dim) const override {
    return offset(builder, op->getResult(result), sharding.results[result], dim);
  }

private:
  Value offset(OpBuilder &builder, Value global, const Layout &layout, unsigned dim) const {
    if (layout.dims[dim].empty())
      return {};
    auto type = partitioner.mesh.localType(cast<RankedTensorType>(global.getType()), layout);
    return partitioner.axisIndex(builder, op->getLoc(), layout.dims[dim], type.getDimSize(dim));
  }

  Partitioner &partitioner;
  Operation *op;
  const OpSharding &sharding;
};

//===-- small pieces ------------------------------------------------------------===//

Value Partitioner::axisIndex(OpBuilder &b, Location loc, ArrayRef<unsigned> axes, int64_t scale) {
  auto op = b.create<AxisIndexOp>(loc, RankedTensorType::get({}, b.getI64Type()),
                                  mesh.toAxes(axes), scale);
  values.annotate(op, {nullptr});
  return op.getResult();
}

FailureOr<std::optional<PlanMesh::Parts>> Partitioner::annotationOf(Operation *at, Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  ShardingAttr sharding = getSharding(value);
  if (!type || !sharding)
    return std::optional<PlanMesh::Parts>();
  auto parts = mesh.split(at, sharding, type);
  if (failed(parts))
    return failure();
  return std::optional(std::move(*parts));
}

FailureOr<Value> Partitioner::get(Operation *user, Value value, const Layout &layout,
                                  const Twine &reason) {
  Block *home = value.getParentBlock();
  for (auto &[block, builder] : frames)
    if (block == home)
      return values.get(builder, user, value, layout, reason);
  return values.get(builder(), user, value, layout, reason);
}

FailureOr<Value> Partitioner::getOperand(Operation *op, Value value, const Layout &layout,
                                         const Twine &what) {
  std::string change = mesh.print(values.layoutOf(value)) + " -> " + mesh.print(layout);
  return get(op, value, layout, what + " of " + nameOf(op) + ": " + change);
}

GlobalAttr Partitioner::tagOf(Operation *op, unsigned result, const Layout &layout) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(result).getType());
  if (auto globals = op->getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr)) {
    auto tag = cast<GlobalAttr>(globals[result]);
    return GlobalAttr::get(op->getContext(), tag.getId(), tag.getType(),
                           mesh.extend(tag.getSharding(), layout));
  }
  auto id = op->getAttrOfType<IntegerAttr>(DistDialect::kIdAttr);
  if (!id || !type)
    return {};
  return GlobalAttr::get(op->getContext(), id.getInt(), type, mesh.toSharding(layout));
}

void Partitioner::finish(Operation *op, Operation *last, ArrayRef<Value> results,
                         ArrayRef<Layout> layouts, ArrayRef<Layout> rests) {
  Block *block = builder().getInsertionBlock();
  Operation *first = last ? last->getNextNode() : &block->front();
  for (Operation *local = first; local; local = local->getNextNode()) {
    local->removeAttr(DistDialect::kIdAttr);
    local->removeAttr(DistDialect::kGlobalsAttr);
    SmallVector<const Layout *> restOf(local->getNumResults(), nullptr);
    SmallVector<Attribute> tags;
    for (auto [i, result] : llvm::enumerate(local->getResults()))
      for (auto [k, value] : llvm::enumerate(results))
        if (value == result) {
          restOf[i] = &rests[k];
          if (GlobalAttr tag = tagOf(op, k, layouts[k]))
            tags.push_back(tag);
        }
    values.annotate(local, restOf);
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
  auto annotated = get(op, global, wanted->layout,
                       "result of " + nameOf(op) + ": " + mesh.print(made) + " -> " +
                           mesh.print(wanted->layout));
  if (failed(annotated))
    return failure();
  if (op->getNumResults() == 1)
    if (GlobalAttr tag = tagOf(op, result, wanted->layout))
      annotated->getDefiningOp()->setAttr(DistDialect::kGlobalsAttr,
                                          ArrayAttr::get(op->getContext(), {tag}));
  return success();
}

Value Partitioner::maskPadding(Operation *op, Value local, Value global, const Layout &layout,
                               unsigned dim, double fill) {
  OpBuilder &b = builder();
  Location loc = op->getLoc();
  auto type = cast<RankedTensorType>(local.getType());
  int64_t size = cast<RankedTensorType>(global.getType()).getDimSize(dim);
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  auto limit = b.create<nn::ConstantOp>(loc, scalar, DenseIntElementsAttr::get(scalar, size));
  values.annotate(limit, {nullptr});
  Value offset = axisIndex(b, loc, layout.dims[dim], type.getDimSize(dim));
  auto mask = b.create<nn::MaskOp>(loc, type, local, limit, offset, b.getI64IntegerAttr(dim),
                                   b.getF64FloatAttr(fill));
  values.annotate(mask, {&values.restOf(global)});
  return mask;
}

/// The identity of a reduction in an element type.
static double identityOf(ReduceKind kind, Type elementType) {
  if (kind == ReduceKind::Sum)
    return 0.0;
  double sign = kind == ReduceKind::Max ? -1.0 : 1.0;
  if (auto type = dyn_cast<IntegerType>(elementType))
    return type.getWidth() == 32 ? (sign < 0 ? -2147483648.0 : 2147483647.0)
                                 : sign * 9007199254740992.0;
  return sign * std::numeric_limits<double>::infinity();
}

//===-- ops with a sharding rule ------------------------------------------------===//

LogicalResult Partitioner::checkRule(Operation *op, const ShardingRule &rule) {
  auto fits = [](ArrayRef<TensorFactors> tensors, TypeRange types) {
    if (tensors.size() != types.size())
      return false;
    for (auto [tensor, type] : llvm::zip(tensors, types)) {
      auto ranked = dyn_cast<RankedTensorType>(type);
      if (static_cast<int64_t>(tensor.size()) != (ranked ? ranked.getRank() : 0))
        return false;
    }
    return true;
  };
  if (fits(rule.operands, op->getOperandTypes()) && fits(rule.results, op->getResultTypes()))
    return success();
  return op->emitOpError("sharding rule does not fit the op's operands and results");
}

FailureOr<OpSharding> Partitioner::choose(ShardingRuleOpInterface op, const ShardingRule &rule,
                                          ArrayRef<const Layout *> wanted) {
  SmallVector<const Layout *> operands;
  SmallVector<int64_t> bytes;
  for (Value operand : op->getOperands()) {
    operands.push_back(&values.layoutOf(operand));
    bytes.push_back(globalBytes(operand));
  }
  // Bytes sent, then work done by one device; the annotation of the results leads where both are
  // equal.
  std::optional<std::pair<int64_t, int64_t>> bestRank;
  OpSharding best;
  for (Lead lead : {Lead::Results, Lead::Operands})
    for (bool keepPartial : {true, false}) {
      OpSharding candidate =
          shardOp(rule, mesh.sizes(), operands, bytes, wanted, lead, keepPartial);
      std::optional<int64_t> sent = 0;
      auto add = [&](std::optional<int64_t> more) {
        sent = sent && more ? std::optional(*sent + *more) : std::nullopt;
      };
      for (auto [operand, layout] : llvm::zip_equal(op->getOperands(), candidate.operands))
        add(values.cost(operand, layout));
      for (auto [result, made, want] :
           llvm::zip_equal(op->getResults(), candidate.results, wanted))
        if (want && made != *want) {
          auto type = cast<RankedTensorType>(result.getType());
          auto plan = planReshard(type.getShape(), elementBytes(type.getElementType()),
                                  mesh.sizes(), made, *want);
          add(plan ? std::optional(plan->sentBytes) : std::nullopt);
        }
      if (!sent)
        continue;
      std::pair<int64_t, int64_t> rank{*sent, candidate.localWork(rule, mesh.sizes())};
      if (!bestRank || rank < *bestRank) {
        bestRank = rank;
        best = std::move(candidate);
      }
    }
  if (bestRank)
    return best;
  for (auto [i, want] : llvm::enumerate(wanted))
    if (want && !want->unreduced.empty())
      return op->emitOpError("cannot leave result ")
             << i << " partial as annotated: " << mesh.print(*want)
             << "; it is linear in no partial operand, and no reduction is sharded by these axes";
  return op->emitOpError("has no way to compute its results in their annotated layouts");
}

Layout Partitioner::inferRest(Operation *op, const ShardingRule &rule, unsigned result) {
  SmallVector<const Layout *> operands, none(op->getNumResults(), nullptr);
  SmallVector<int64_t> bytes;
  for (Value operand : op->getOperands()) {
    operands.push_back(&values.restOf(operand));
    bytes.push_back(globalBytes(operand));
  }
  return shardOp(rule, mesh.sizes(), operands, bytes, none, Lead::Operands, true).results[result];
}

LogicalResult Partitioner::partitionRuled(ShardingRuleOpInterface op) {
  ShardingRule rule = op.getShardingRule();
  if (failed(checkRule(op, rule)))
    return failure();
  std::vector<std::optional<PlanMesh::Parts>> annotations;
  SmallVector<const Layout *> wanted;
  SmallVector<Layout> rests;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    auto parts = annotationOf(op, result);
    if (failed(parts))
      return failure();
    annotations.push_back(std::move(*parts));
    rests.push_back(annotations.back() ? annotations.back()->rest : inferRest(op, rule, i));
  }
  for (auto &parts : annotations)
    wanted.push_back(parts ? &parts->layout : nullptr);

  auto sharding = choose(op, rule, wanted);
  if (failed(sharding))
    return failure();
  if (sharding->shards(rule, FactorKind::Decompose))
    return decompose(op, *sharding);

  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    const Layout &layout = sharding->operands[i];
    auto local = getOperand(op, operand, layout, "operand " + Twine(i));
    if (failed(local))
      return failure();
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    for (auto [d, factors] : llvm::enumerate(rule.operands[i])) {
      bool isReduced = factors.size() == 1 &&
                       rule.factors[factors[0]].kind == FactorKind::Reduction &&
                       !layout.dims[d].empty();
      if (!isReduced || type.getDimSize(d) % groupSize(layout.dims[d], mesh.sizes()) == 0)
        continue;
      double fill = identityOf(rule.factors[factors[0]].reduce, type.getElementType());
      if (i < rule.padding.size() && rule.padding[i])
        fill = *rule.padding[i];
      *local = maskPadding(op, *local, operand, layout, d, fill);
    }
    operands.push_back(*local);
  }

  OpBuilder &b = builder();
  Block *block = b.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  SmallVector<Value> results;
  Context context(*this, op, *sharding);
  if (failed(op.localize(b, operands, context, results)))
    return op->emitOpError("cannot be built on shards");
  if (results.size() != op->getNumResults())
    return op->emitOpError("builds ") << results.size() << " local results, expected "
                                      << op->getNumResults();
  finish(op, last, results, sharding->results, rests);
  for (auto [i, local] : llvm::enumerate(results))
    if (failed(defineResult(op, i, local, sharding->results[i], rests[i], annotations[i])))
      return failure();
  return success();
}

LogicalResult Partitioner::decompose(ShardingRuleOpInterface op, const OpSharding &sharding) {
  Operation *before = op->getPrevNode();
  OpBuilder parts(op);
  auto replacements = op.decompose(parts);
  if (failed(replacements) || replacements->size() != op->getNumResults())
    return op->emitOpError("is sharded along a dimension that it cannot be split over: ")
           << mesh.print(sharding.operands.front());
  Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
  for (Operation *part = first; part != op; part = part->getNextNode()) {
    // What stands for the op itself carries its annotation and its identity.
    for (auto [i, value] : llvm::enumerate(*replacements))
      if (value.getDefiningOp() == part && part->getNumResults() == op->getNumResults()) {
        for (StringRef name : {DistDialect::kShardingsAttr, DistDialect::kIdAttr,
                               DistDialect::kGlobalsAttr})
          if (Attribute attr = op->getAttr(name))
            part->setAttr(name, attr);
      }
    if (Attribute layer = op->getAttr(nn::NNDialect::kLayerAttr))
      part->setAttr(nn::NNDialect::kLayerAttr, layer);
    if (failed(partitionOp(part)))
      return failure();
  }
  for (auto [result, value] : llvm::zip_equal(op->getResults(), *replacements))
    result.replaceAllUsesWith(value);
  return success();
}

//===-- other ops -----------------------------------------------------------------===//

LogicalResult Partitioner::partitionUnruled(Operation *op) {
  IRMapping mapping;
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, used);
  for (Value value : used) {
    Layout whole = mesh.whole(values.layoutOf(value).dims.size());
    if (values.layoutOf(value) != whole)
      return op->emitOpError("has no sharding rule, but uses a value that lies as ")
             << mesh.print(values.layoutOf(value))
             << ": implement ShardingRuleOpInterface, or reshard the value to be whole";
    auto local = get(op, value, whole, "");
    if (failed(local))
      return failure();
    mapping.map(value, *local);
  }
  SmallVector<Layout> rests;
  for (Value result : op->getResults()) {
    auto parts = annotationOf(op, result);
    if (failed(parts))
      return failure();
    auto type = dyn_cast<RankedTensorType>(result.getType());
    Layout whole = mesh.whole(type ? type.getRank() : 0);
    if (*parts && (*parts)->layout != whole)
      return op->emitOpError("has no sharding rule, but its result is annotated ")
             << mesh.print((*parts)->layout)
             << ": implement ShardingRuleOpInterface, or leave the result whole";
    rests.push_back(*parts ? (*parts)->rest : whole);
  }
  Operation *last =
      builder().getInsertionBlock()->empty() ? nullptr : &builder().getInsertionBlock()->back();
  Operation *local = builder().clone(*op, mapping);
  SmallVector<Layout> layouts;
  for (const Layout &rest : rests)
    layouts.push_back(mesh.whole(rest.dims.size()));
  finish(op, last, SmallVector<Value>(local->getResults()), layouts, rests);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    values.define(result, layouts[i], local->getResult(i), rests[i]);
  return success();
}

LogicalResult Partitioner::partitionReshard(ReshardOp op) {
  auto parts = mesh.split(op, op.getSharding(), op.getResult().getType());
  if (failed(parts))
    return failure();
  std::string reason = op.getReason() ? op.getReason()->str()
                                      : nameOf(op) + ": " +
                                            mesh.print(values.layoutOf(op.getInput())) + " -> " +
                                            mesh.print(parts->layout);
  auto local = get(op, op.getInput(), parts->layout, reason);
  if (failed(local))
    return failure();
  if (values.restOf(op.getInput()) != parts->rest) {
    auto later = builder().create<ReshardOp>(op.getLoc(), *local, mesh.toSharding(parts->rest),
                                             op.getReasonAttr());
    values.annotate(later, {&parts->rest});
    *local = later;
  }
  values.define(op.getResult(), parts->layout, *local, parts->rest);
  return success();
}

FailureOr<Value> Partitioner::exchangeMicrobatches(AccumulateOp op, unsigned input,
                                                   const Layout &wanted) {
  Value global = op.getInputs()[input];
  auto type = cast<RankedTensorType>(global.getType());
  int64_t count = op.getMicrobatches(), rows = type.getDimSize(0) / count;
  if (!values.restOf(global).dims[0].empty())
    return op->emitOpError("input ")
           << input << " is sharded along its rows by axes of this run and of a later one";
  // Seen as [micro-batch, row, ...], a shard of rows is a shard of whole micro-batches, when it
  // holds whole ones, and what is wanted is a shard of each.
  Layout have = values.layoutOf(global);
  if (count % groupSize(have.dims[0], mesh.sizes()) != 0)
    have.dims[0].clear();
  have.unreduced.clear();
  auto split = [](const Layout &layout, Axes micro, Axes row) {
    Layout view = layout;
    view.dims.front() = std::move(row);
    view.dims.insert(view.dims.begin(), std::move(micro));
    return view;
  };
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = rows;
  shape.insert(shape.begin(), count);
  Layout from = split(have, have.dims[0], {}), to = split(wanted, {}, wanted.dims[0]);
  Layout rest = split(values.restOf(global), {}, {});

  std::string reason = "input " + std::to_string(input) + " of " + nameOf(op) +
                       ": a shard of rows -> a shard of every micro-batch";
  auto local = get(op, global, have, reason);
  auto plan = planReshard(shape, elementBytes(type.getElementType()), mesh.sizes(), from, to);
  if (failed(local) || !plan)
    return failure();
  OpBuilder &b = builder();
  auto reshape = [&](Value value, ArrayRef<int64_t> to, const Layout &rest) {
    auto op = b.create<nn::ReshapeOp>(value.getLoc(), type.clone(to), value);
    values.annotate(op, {&rest});
    return op.getResult();
  };
  Value view = reshape(*local, localShape(shape, mesh.sizes(), from), rest);
  for (const ReshardStep &step : plan->steps)
    view = values.emit(b, op.getLoc(), view, step, rest, b.getStringAttr(reason));
  SmallVector<int64_t> flat = localShape(shape, mesh.sizes(), to);
  flat[1] *= flat[0];
  return reshape(view, ArrayRef(flat).drop_front(), values.restOf(global));
}

LogicalResult Partitioner::partitionAccumulate(AccumulateOp op) {
  Block &body = op.getBody().front();
  auto region = std::make_unique<Region>();
  Block &local = region->emplaceBlock();
  SmallVector<Value> inputs;
  SmallVector<Layout> argumentRests;
  for (auto [i, argument] : llvm::enumerate(body.getArguments())) {
    auto parts = annotationOf(op, argument);
    if (failed(parts))
      return failure();
    Value global = op.getInputs()[i];
    PlanMesh::Parts lies = *parts ? **parts
                                  : PlanMesh::Parts{values.layoutOf(global), values.restOf(global)};
    bool exchanges = op.getMicrobatches() > 1 && !lies.layout.dims.empty() &&
                     !lies.layout.dims[0].empty();
    auto input = exchanges ? exchangeMicrobatches(op, i, lies.layout)
                           : getOperand(op, global, lies.layout, "input " + Twine(i));
    if (failed(input))
      return failure();
    inputs.push_back(*input);
    auto type = mesh.localType(cast<RankedTensorType>(argument.getType()), lies.layout);
    values.define(argument, lies.layout, local.addArgument(type, argument.getLoc()), lies.rest);
    argumentRests.push_back(lies.rest);
  }

  frames.push_back({&body, OpBuilder::atBlockEnd(&local)});
  if (failed(partitionBlock(body)))
    return failure();
  SmallVector<Value> yields;
  SmallVector<Layout> layouts, rests;
  for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    // Sums of micro-batches may be summed over devices later, and once; other kinds may not.
    Layout layout = values.layoutOf(value);
    if (layout.kind != ReduceKind::Sum)
      layout.unreduced.clear();
    auto yielded = getOperand(op, value, layout, "yield " + Twine(i));
    if (failed(yielded))
      return failure();
    yields.push_back(*yielded);
    layouts.push_back(layout);
    rests.push_back(values.restOf(value));
  }
  builder().create<YieldOp>(body.getTerminator()->getLoc(), yields);
  frames.pop_back();

  OperationState state(op.getLoc(), op->getName(), inputs, TypeRange(ValueRange(yields)),
                       op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion(std::move(region));
  Operation *last =
      builder().getInsertionBlock()->empty() ? nullptr : &builder().getInsertionBlock()->back();
  Operation *made = builder().create(state);
  made->removeAttr(DistDialect::kArgShardingsAttr);
  finish(op, last, SmallVector<Value>(made->getResults()), layouts, rests);
  if (mesh.hasRemaining())
    for (auto [argument, rest] : llvm::zip_equal(made->getRegion(0).getArguments(), argumentRests))
      setSharding(argument, mesh.toSharding(rest));
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    auto parts = annotationOf(op, result);
    if (failed(parts) || failed(defineResult(op, i, made->getResult(i), layouts[i], rests[i],
                                             *parts)))
      return failure();
  }
  return success();
}

//===-- the function ----------------------------------------------------------------===//

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

void Partitioner::setBoundary(bool isArgument, unsigned index, RankedTensorType type,
                              const Layout &layout, const Layout &rest) {
  MLIRContext *context = func.getContext();
  auto set = [&](StringRef name, Attribute attr) {
    isArgument ? func.setArgAttr(index, name, attr) : func.setResultAttr(index, name, attr);
  };
  StringRef global = DistDialect::kGlobalAttr, sharding = DistDialect::kShardingAttr;
  auto tag = isArgument ? func.getArgAttrOfType<GlobalAttr>(index, global)
                        : func.getResultAttrOfType<GlobalAttr>(index, global);
  if (!tag)
    tag = GlobalAttr::get(context, index, type, mesh.toSharding(mesh.whole(type.getRank())));
  set(global, GlobalAttr::get(context, index, tag.getType(),
                              mesh.extend(tag.getSharding(), layout)));
  if (mesh.hasRemaining())
    set(sharding, mesh.toSharding(rest));
  else if (isArgument)
    func.removeArgAttr(index, StringAttr::get(context, sharding));
  else
    func.removeResultAttr(index, StringAttr::get(context, sharding));
}

LogicalResult Partitioner::partitionReturn(func::ReturnOp op) {
  SmallVector<Value> results;
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    Layout layout = values.layoutOf(value), rest = values.restOf(value);
    if (ShardingAttr sharding = getResultSharding(func, i); sharding && type) {
      auto parts = mesh.split(op, sharding, type);
      if (failed(parts))
        return failure();
      layout = parts->layout;
      rest = parts->rest;
    }
    // What leaves the function is reduced.
    layout.unreduced.clear();
    std::string what = "result " + std::to_string(i);
    for (StringRef role : {nn::NNDialect::kGradAttr, nn::NNDialect::kUpdatesAttr,
                           nn::NNDialect::kOutputAttr, nn::NNDialect::kMetricAttr})
      if (auto name = func.getResultAttrOfType<StringAttr>(i, role))
        what = role.drop_front(3).str() + " \"" + name.getValue().str() + "\"";
    if (func.getResultAttr(i, nn::NNDialect::kLossAttr))
      what = "loss";
    auto local = get(op, value, layout,
                     what + ": " + mesh.print(values.layoutOf(value)) + " -> " +
                         mesh.print(layout));
    if (failed(local))
      return failure();
    results.push_back(*local);
    if (type)
      setBoundary(/*isArgument=*/false, i, type, layout, rest);
  }
  builder().create<func::ReturnOp>(op.getLoc(), results);
  return success();
}

LogicalResult Partitioner::run() {
  if (!func.getBody().hasOneBlock())
    return func.emitOpError("must have one block to be partitioned, got: ")
           << func.getBody().getBlocks().size();
  Block &old = func.getBody().front();
  auto terminator = dyn_cast<func::ReturnOp>(old.getTerminator());
  if (!terminator)
    return func.emitOpError("must end in func.return to be partitioned");

  // The local block is built beside the old one, which goes when nothing refers to it.
  Block *local = new Block();
  func.getBody().push_back(local);
  std::vector<PlanMesh::Parts> arguments;
  for (BlockArgument argument : old.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto parts = annotationOf(func, argument);
    if (failed(parts))
      return failure();
    int64_t rank = type ? type.getRank() : 0;
    PlanMesh::Parts lies =
        *parts ? **parts : PlanMesh::Parts{mesh.whole(rank), mesh.whole(rank)};
    if (!lies.layout.unreduced.empty())
      return func.emitOpError("argument ")
             << argument.getArgNumber() << " cannot be partial: " << mesh.print(lies.layout);
    Type localType = type ? mesh.localType(type, lies.layout) : argument.getType();
    values.define(argument, lies.layout, local->addArgument(localType, argument.getLoc()),
                  lies.rest);
    arguments.push_back(std::move(lies));
  }
  frames.push_back({&old, OpBuilder::atBlockEnd(local)});
  if (failed(partitionBlock(old)) || failed(partitionReturn(terminator)))
    return failure();

  for (auto [i, argument] : llvm::enumerate(old.getArguments()))
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      setBoundary(/*isArgument=*/true, i, type, arguments[i].layout, arguments[i].rest);
  func.setFunctionType(FunctionType::get(func.getContext(), local->getArgumentTypes(),
                                         local->getTerminator()->getOperandTypes()));
  old.dropAllReferences();
  local->moveBefore(&old);
  old.erase();
  return success();
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
    for (auto func : module.getOps<func::FuncOp>())
      if (!func.isExternal() && failed(Partitioner(*mesh, func).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace shoal::dist
