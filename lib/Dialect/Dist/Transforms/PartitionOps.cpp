// One op on shards: by its sharding rule, decomposed, or as it is when all it touches is whole.
#include "FittingRule.h"
#include "ForeignAttrs.h"
#include "Partitioner.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/Decomposition.h"
#include "shoal/Support/Elements.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

#include <vector>

using namespace mlir;

namespace shoal::dist {

/// What an op's `localize` asks.
class ShardContext : public LocalizeContext {
public:
  ShardContext(Partitioner &partitioner, Operation *op, const OpSharding &sharding)
      : partitioner(partitioner), op(op), sharding(sharding) {}

  RankedTensorType localResultType(unsigned result) const override {
    return partitioner.mesh.localType(getTensorType(op->getResult(result)), sharding.results[result]);
  }
  int64_t globalOperandSize(unsigned operand, unsigned dim) const override {
    return getTensorType(op->getOperand(operand)).getDimSize(dim);
  }
  Value operandOffset(OpBuilder &builder, unsigned operand, unsigned dim) const override {
    return neighborOffset(builder, operand, dim, /*back=*/0);
  }
  Value neighborOffset(OpBuilder &builder, unsigned operand, unsigned dim, int64_t back) const override {
    return offset(builder, op->getOperand(operand), sharding.operands[operand], dim, back);
  }
  Value resultOffset(OpBuilder &builder, unsigned result, unsigned dim) const override {
    return offset(builder, op->getResult(result), sharding.results[result], dim, /*back=*/0);
  }
  int64_t operandShards(unsigned operand, unsigned dim) const override {
    return groupSize(axesOf(operand, dim), partitioner.mesh.sizes());
  }
  Value startShift(OpBuilder &builder, Value local, unsigned operand, unsigned dim, int64_t forward,
                   StringRef what) const override {
    return partitioner.startShift(builder, op, local, op->getOperand(operand), axesOf(operand, dim), forward, what);
  }
  Value finishShift(OpBuilder &builder, Value started) const override {
    auto future = cast<FutureType>(started.getType());
    return builder.create<WaitOp>(op->getLoc(), future.getTensor(), started);
  }
  Value numberOfShard(OpBuilder &builder, unsigned operand, unsigned dim, ArrayRef<int64_t> ofShard) const override {
    return partitioner.placeConstant(builder, op->getLoc(), axesOf(operand, dim), ofShard);
  }
  Value permute(OpBuilder &builder, Value local, unsigned operand, unsigned dim, ArrayRef<int64_t> targets,
                StringRef what, StringRef where) const override {
    const Axes &axes = axesOf(operand, dim);
    auto sources = llvm::to_vector(llvm::seq<int64_t>(0, targets.size()));
    if (ArrayRef(sources) == targets)
      return local;
    ReasonAttr reason = partitioner.reasonOfPassing(op, op->getOperand(operand), axes, what, where);
    return builder.create<CollectivePermuteOp>(op->getLoc(), local.getType(), partitioner.mesh.toAxes(axes), sources,
                                               targets, local, reason);
  }

private:
  const Axes &axesOf(unsigned operand, unsigned dim) const { return sharding.operands[operand].dims[dim]; }
  Value offset(OpBuilder &builder, Value global, const Layout &layout, unsigned dim, int64_t back) const {
    const Axes &axes = layout.dims[dim];
    if (axes.empty())
      return {};
    RankedTensorType type = partitioner.mesh.localType(getTensorType(global), layout);
    return partitioner.axisIndex(builder, op->getLoc(), axes, type.getDimSize(dim), back);
  }

  Partitioner &partitioner;
  Operation *op;
  const OpSharding &sharding;
};

Value Partitioner::maskPadding(Operation *op, Value local, Value global, const Layout &layout,
                               unsigned dim, double fill) {
  for (auto [masked, with, value] : masks[local])
    if (masked == dim && with == fill && value.getParentBlock() == builder().getBlock())
      return value;
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
  masks[local].push_back({dim, fill, mask});
  return mask;
}

// Ops with a sharding rule.

/// The rule of an op that has whole what could pass from device to device.
static std::optional<ShardingRule> withoutPassing(ShardingRule rule) {
  if (rule.aligned.empty())
    return std::nullopt;
  for (AlignedFactors pair : rule.aligned)
    rule.factors[pair.passing].kind = FactorKind::NeedReplication;
  rule.aligned.clear();
  return rule;
}

std::optional<OpSharding> Partitioner::chooseCheapest(ShardingRuleOpInterface op, const ShardingRule &rule,
                                                      ArrayRef<const Layout *> wanted) {
  SmallVector<const Layout *> operands;
  SmallVector<int64_t> bytes;
  for (Value operand : op->getOperands()) {
    operands.push_back(&values.layoutOf(operand));
    bytes.push_back(tensorBytes(getTensorType(operand)));
  }
  // Bytes sent, then work done by one device; where both are equal the annotation of the results leads, and what is
  // reduced is the operand: others read that too.
  std::optional<std::pair<int64_t, double>> bestRank;
  OpSharding best;
  for (Lead lead : {Lead::Results, Lead::Operands})
    for (bool keepPartial : {false, true}) {
      OpSharding candidate =
          shardOp(rule, mesh.sizes(), operands, bytes, wanted, lead, keepPartial);
      std::optional<int64_t> sent = 0;
      auto add = [&](std::optional<int64_t> more) {
        sent = sent && more ? std::optional(*sent + *more) : std::nullopt;
      };
      // What is read twice in one layout, as by a square, is brought into it once.
      for (unsigned i = 0; i < op->getNumOperands(); ++i) {
        auto readsTheSame = [&](unsigned j) {
          return op->getOperand(j) == op->getOperand(i) && candidate.operands[j] == candidate.operands[i];
        };
        if (llvm::none_of(llvm::seq(0u, i), readsTheSame))
          add(values.cost(op->getOperand(i), candidate.operands[i]));
      }
      for (auto [result, made, want] : llvm::zip_equal(op->getResults(), candidate.results, wanted))
        if (want && made != *want) {
          auto type = dyn_cast<RankedTensorType>(result.getType());
          std::optional<ReshardPlan> none;
          const std::optional<ReshardPlan> &plan = type ? values.plan(type, made, *want) : none;
          add(plan ? std::optional(plan->sentBytes) : std::nullopt);
        }
      if (!sent)
        continue;
      std::pair<int64_t, double> rank{*sent, candidate.localWork(rule, mesh.sizes())};
      if (!bestRank || rank < *bestRank) {
        bestRank = rank;
        best = std::move(candidate);
      }
    }
  return bestRank ? std::optional(std::move(best)) : std::nullopt;
}

FailureOr<OpSharding> Partitioner::choose(ShardingRuleOpInterface op, const ShardingRule &rule,
                                          ArrayRef<const Layout *> wanted) {
  if (std::optional<OpSharding> found = chooseCheapest(op, rule, wanted))
    return *found;
  // Annotations that disagree, of keys and of values, are no ring's; what passes by none is whole on all.
  if (std::optional<ShardingRule> whole = withoutPassing(rule))
    if (std::optional<OpSharding> found = chooseCheapest(op, *whole, wanted))
      return *found;
  for (auto [i, want] : llvm::enumerate(wanted))
    if (want && !want->unreduced.empty())
      return op->emitOpError("cannot leave result ")
             << i << " partial as annotated: " << mesh.print(*want)
             << "; it is linear in no partial operand, and no reduction is sharded by these axes";
  return op->emitOpError("has no way to compute its results in their annotated layouts");
}

SmallVector<Layout> Partitioner::inferRests(Operation *op, const ShardingRule &rule,
                                            function_ref<const Layout &(Value)> restOf) const {
  SmallVector<Layout> rests;
  SmallVector<const Layout *> operands, none(op->getNumResults(), nullptr);
  SmallVector<int64_t> bytes;
  for (Value operand : op->getOperands()) {
    rests.push_back(restOf(operand));
    bytes.push_back(tensorBytes(getTensorType(operand)));
  }
  for (const Layout &rest : rests)
    operands.push_back(&rest);
  return shardOp(rule, mesh.sizes(), operands, bytes, none, Lead::Operands, true).results;
}

LogicalResult Partitioner::partitionRuled(ShardingRuleOpInterface op) {
  FailureOr<ShardingRule> found = getFittingRule(op);
  if (failed(found))
    return failure();
  const ShardingRule &rule = *found;
  std::vector<std::optional<PlanMesh::Parts>> annotations;
  SmallVector<const Layout *> wanted;
  for (Value result : op->getResults()) {
    auto parts = annotationOf(result);
    if (failed(parts))
      return failure();
    annotations.push_back(std::move(*parts));
  }
  SmallVector<Layout> rests(op->getNumResults());
  if (llvm::any_of(annotations, [](const auto &parts) { return !parts; }))
    rests = inferRests(op, rule, [&](Value value) -> const Layout & { return values.restOf(value); });
  for (auto [rest, parts] : llvm::zip_equal(rests, annotations))
    if (parts)
      rest = parts->rest;
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
    RankedTensorType type = getTensorType(operand);
    bool isRead = !llvm::is_contained(rule.unread, i);
    for (auto [d, factors] : llvm::enumerate(rule.operands[i])) {
      // Sums see all of these, as products with 0 where the op itself leaves out what pads them.
      bool isSummed = isRead && factors.size() == 1 && !layout.dims[d].empty() &&
                      (rule.factors[factors[0]].kind == FactorKind::Reduction ||
                       rule.factors[factors[0]].kind == FactorKind::Permutation);
      if (!isSummed || type.getDimSize(d) % groupSize(layout.dims[d], mesh.sizes()) == 0)
        continue;
      std::optional<double> fill = i < rule.padding.size() ? rule.padding[i] : std::nullopt;
      if (!fill)
        fill = reductionIdentity(rule.factors[factors[0]].reduce, type.getElementType());
      if (!fill)
        return op->emitOpError("has no mask value for the padding of operand ")
               << i << ", " << type << ": shard dimension " << d << " by axes that divide it";
      *local = maskPadding(op, *local, operand, layout, d, *fill);
    }
    operands.push_back(*local);
  }

  OpBuilder &b = builder();
  Block *block = b.getInsertionBlock();
  Operation *last = block->empty() ? nullptr : &block->back();
  SmallVector<Value> results;
  ShardContext context(*this, op, *sharding);
  if (failed(op.localize(b, operands, context, results)))
    return op->emitOpError("cannot be built on shards");
  if (results.size() != op->getNumResults())
    return op->emitOpError("builds ")
           << results.size() << " local results, expected " << op->getNumResults();
  finish(op, last, operands, results, sharding->results, rests);
  for (auto [i, local] : llvm::enumerate(results))
    if (failed(defineResult(op, i, local, sharding->results[i], rests[i], annotations[i])))
      return failure();
  return success();
}

/// Whether a shape broadcasts to another of the same rank.
static bool spreadsTo(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  return from.size() == to.size() &&
         llvm::all_of(llvm::zip_equal(from, to), [](auto sizes) {
           auto [one, other] = sizes;
           return one == 1 || one == other;
         });
}

/// A part that reads nothing, as the positions of elements, would be whole on every device: it lies as
/// the operand that its shape broadcasts to.
void Partitioner::placeSource(Operation *part, Operation *op, const OpSharding &sharding) {
  if (part->getNumOperands() != 0 || part->getNumResults() != 1)
    return;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(part->getResult(0).getType()).getShape();
  for (auto [operand, layout] : llvm::zip_equal(op->getOperands(), sharding.operands)) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (shape.empty() || !type || !spreadsTo(shape, type.getShape()))
      continue;
    Layout lies = layout, rest = values.restOf(operand);
    for (Layout *part : {&lies, &rest}) {
      part->unreduced.clear();
      for (auto [size, axes] : llvm::zip_equal(shape, part->dims))
        if (size == 1)
          axes.clear();
    }
    setSharding(part->getResult(0), mesh.extend(mesh.toSharding(lies), rest));
    return;
  }
}

/// A part that computes results of the op carries what is said of them: annotations, and numbers, which
/// count results.
static void identify(Operation *part, Operation *op, ArrayRef<Value> values) {
  SmallVector<int64_t> standsFor;
  for (Value result : part->getResults()) {
    auto at = llvm::find(values, result);
    if (at == values.end())
      return;
    standsFor.push_back(at - values.begin());
  }
  Builder b(op->getContext());
  for (StringRef name : {DistDialect::kShardingsAttr, DistDialect::kGlobalsAttr})
    if (auto entries = op->getAttrOfType<ArrayAttr>(name))
      part->setAttr(name, b.getArrayAttr(llvm::map_to_vector(
                              standsFor, [&](int64_t i) { return entries[i]; })));
  auto inOrder = llvm::seq<int64_t>(standsFor.front(), standsFor.front() + standsFor.size());
  if (auto id = op->getAttrOfType<IntegerAttr>(DistDialect::kIdAttr);
      id && llvm::equal(standsFor, inOrder))
    part->setAttr(DistDialect::kIdAttr, b.getI64IntegerAttr(id.getInt() + standsFor.front()));
}

LogicalResult Partitioner::decompose(ShardingRuleOpInterface op, const OpSharding &sharding) {
  OpBuilder before(op);
  auto made = decomposeBefore(op, before, [&](OpBuilder &b) { return op.decompose(b); });
  if (failed(made))
    return op->emitOpError("is sharded along a dimension that it cannot be split over: ")
           << mesh.print(sharding.operands.front());
  // Its parts know its causes, not its annotations.
  if (!op->hasAttr(DistDialect::kWhyAttr))
    for (unsigned axis = 0; axis < mesh.sizes().size(); ++axis)
      for (CauseAttr cause : listCauses(findHandCauses(op, /*value=*/{}, mesh.name(axis))))
        addCause(op, mesh.name(axis), cause);
  for (Operation &part : made->parts) {
    identify(&part, op, made->values);
    copyOrigin(op, &part);
    if (Attribute why = op->getAttr(DistDialect::kWhyAttr))
      part.setAttr(DistDialect::kWhyAttr, why);
    placeSource(&part, op, sharding);
    if (failed(partitionOp(&part)))
      return failure();
  }
  op->replaceAllUsesWith(made->values);
  return success();
}

// Other ops.

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
    auto parts = annotationOf(result);
    if (failed(parts))
      return failure();
    RankedTensorType type = getTensorType(result);
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
  finish(op, last, {}, SmallVector<Value>(local->getResults()), layouts, rests);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    values.define(result, layouts[i], local->getResult(i), rests[i]);
  return success();
}

LogicalResult Partitioner::partitionReshard(ReshardOp op) {
  auto parts = mesh.split(op.getLoc(), op.getSharding(), op.getResult().getType());
  if (failed(parts))
    return failure();
  StringRef what = op.getReason().value_or(op->getName().getStringRef());
  auto local = isFetch(op) ? values.fetchAgain(builder(), op, op.getInput(), parts->layout, what)
                   : get(op, op.getInput(), parts->layout, what);
  if (failed(local))
    return failure();
  // What later levels are to know of the value.
  if (Operation *made = local->getDefiningOp(); isa_and_nonnull<CollectiveOpInterface>(made))
    copyForeignAttrs(op, made);
  if (values.restOf(op.getInput()) != parts->rest) {
    auto later = builder().create<ReshardOp>(op.getLoc(), *local, mesh.toSharding(parts->rest),
                                             op.getReasonAttr());
    values.annotate(later, {&parts->rest});
    keepWhy(op, later);
    copyOrigin(op, later);
    copyForeignAttrs(op, later);
    *local = later;
  }
  values.define(op.getResult(), parts->layout, *local, parts->rest);
  return success();
}

} // namespace shoal::dist
