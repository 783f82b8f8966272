// Values in several layouts and the collectives between them; see LocalValues.h.
#include "LocalValues.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::dist {

void LocalValues::define(Value global, const Layout &layout, Value local, const Layout &rest) {
  Entry &entry = entries[global];
  entry.type = dyn_cast<RankedTensorType>(global.getType());
  entry.annotated = layout;
  entry.rest = rest;
  entry.variants.push_back({layout, local});
}

const Layout &LocalValues::layoutOf(Value global) const {
  return entries.find(global)->second.annotated;
}
const Layout &LocalValues::restOf(Value global) const { return entries.find(global)->second.rest; }

const std::optional<ReshardPlan> &LocalValues::plan(RankedTensorType type, const Layout &from,
                                                    const Layout &to) const {
  int64_t bytes = elementBytes(type.getElementType());
  std::vector<int64_t> key(type.getShape());
  key.push_back(bytes);
  for (const Layout *layout : {&from, &to}) {
    for (const Axes &axes : layout->dims) {
      key.insert(key.end(), axes.begin(), axes.end());
      key.push_back(-1);
    }
    key.insert(key.end(), layout->unreduced.begin(), layout->unreduced.end());
    key.push_back(-1 - static_cast<int64_t>(layout->kind));
  }
  auto [found, isNew] = plans.try_emplace(std::move(key));
  if (isNew)
    found->second = planReshard(type.getShape(), bytes, mesh.sizes(), from, to);
  return found->second;
}

std::optional<std::pair<ReshardPlan, Value>> LocalValues::plan(const Entry &entry,
                                                               const Layout &to) const {
  for (auto &[layout, local] : entry.variants)
    if (layout == to)
      return std::make_pair(ReshardPlan(), local);
  if (!entry.type)
    return std::nullopt;
  std::optional<std::pair<ReshardPlan, Value>> best;
  for (auto &[layout, local] : entry.variants) {
    const std::optional<ReshardPlan> &found = plan(entry.type, layout, to);
    if (!found)
      continue;
    auto rank = [](const ReshardPlan &plan) {
      return std::make_pair(plan.sentBytes, plan.steps.size());
    };
    if (!best || rank(*found) < rank(best->first))
      best = {*found, local};
  }
  return best;
}

std::optional<int64_t> LocalValues::cost(Value global, const Layout &to) const {
  auto found = plan(entries.find(global)->second, to);
  return found ? std::optional(found->first.sentBytes) : std::nullopt;
}

ReasonAttr LocalValues::reasonOf(const ReshardStep &step, Operation *user, Value global, StringAttr what,
                                 StringAttr change) const {
  using Kind = ReshardStep::Kind;
  bool comesFromValue = step.kind != Kind::AllSlice;
  bool goesToUser = step.kind != Kind::AllReduce && step.kind != Kind::AllGather;
  auto wanted = user->getAttrOfType<DictionaryAttr>(DistDialect::kWhyAttr);
  Attribute causes;
  auto findWanted = [&](StringAttr axis) {
    return wanted ? findCauses(wanted, axis) : findHandCauses(user, global, axis);
  };
  for (unsigned axis : step.axes) {
    if (comesFromValue)
      causes = joinCauses(causes, traceCauses(global, mesh.name(axis)));
    if (goesToUser)
      causes = joinCauses(causes, findWanted(mesh.name(axis)));
  }
  // In a program that was not propagated, what a value is made of may have an axis that its annotation lacks, and a way
  // between two annotations may cut by an axis of the first.
  Operation *maker = global.getDefiningOp();
  for (unsigned axis : causes ? ArrayRef<unsigned>() : ArrayRef<unsigned>(step.axes)) {
    for (Attribute more : {traceCauses(global, mesh.name(axis)), findWanted(mesh.name(axis)),
                           maker ? findHandCauses(maker, global, mesh.name(axis)) : Attribute()})
      causes = joinCauses(causes, more);
  }
  return ReasonAttr::get(user->getContext(), what, user->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr), change,
                         listCauses(causes));
}

FailureOr<Value> LocalValues::get(OpBuilder &builder, Operation *user, Value global,
                                  const Layout &to, const Twine &what) {
  auto found = plan(entries.find(global)->second, to);
  if (!found) {
    bool isOnItsWay = isa<FutureType>(global.getType());
    return user->emitError("no collectives lead from ")
           << mesh.print(layoutOf(global)) << " to " << mesh.print(to) << ": "
           << (isOnItsWay ? "a future is laid as what it was started with; annotate both alike"
                          : "a whole value cannot become partial")
           << " (" << what << ")";
  }
  auto &[plan, value] = *found;
  if (plan.steps.empty())
    return value;
  Layout rest = restOf(global);
  StringAttr asker = builder.getStringAttr(what);
  StringAttr change = builder.getStringAttr(mesh.print(layoutOf(global)) + " -> " + mesh.print(to));
  for (const ReshardStep &step : plan.steps) {
    value = emit(builder, user->getLoc(), value, step, rest, reasonOf(step, user, global, asker, change));
    Entry &entry = entries.find(global)->second;
    // What lies on the way serves later users too.
    if (llvm::none_of(entry.variants, [&](auto &v) { return v.first == step.layout; }))
      entry.variants.push_back({step.layout, value});
  }
  return value;
}

FailureOr<Value> LocalValues::fetchAgain(OpBuilder &builder, Operation *user, Value global, const Layout &to,
                                         const Twine &what) {
  const Entry &entry = entries.find(global)->second;
  Entry alone{entry.type, entry.annotated, entry.rest, {}};
  for (auto &variant : entry.variants)
    if (variant.first == entry.annotated)
      alone.variants.push_back(variant);
  auto found = plan(alone, to);
  if (!found)
    return user->emitError("no collectives lead from ")
           << mesh.print(entry.annotated) << " to " << mesh.print(to) << " (" << what << ")";
  auto [plan, value] = *found;
  StringAttr asker = builder.getStringAttr(what);
  StringAttr change = builder.getStringAttr(mesh.print(entry.annotated) + " -> " + mesh.print(to));
  for (const ReshardStep &step : plan.steps) {
    value = emit(builder, user->getLoc(), value, step, entry.rest, reasonOf(step, user, global, asker, change));
    for (StringRef name : {DistDialect::kFetchAttr, DistDialect::kRefetchAttr})
      if (Attribute attr = user->getAttr(name))
        value.getDefiningOp()->setAttr(name, attr);
  }
  return value;
}

Value LocalValues::emit(OpBuilder &builder, Location loc, Value input, const ReshardStep &step,
                        const Layout &rest, ReasonAttr reason) const {
  using Kind = ReshardStep::Kind;
  auto type = cast<RankedTensorType>(input.getType()).clone(step.shape);
  AxesAttr axes = mesh.toAxes(step.axes);
  Value result;
  switch (step.kind) {
  case Kind::AllSlice:
    result = builder.create<AllSliceOp>(loc, type, axes, step.dim, input, reason);
    break;
  case Kind::AllGather:
    result = builder.create<AllGatherOp>(loc, type, axes, step.dim, input, reason);
    break;
  case Kind::ReduceScatter:
    result = builder.create<ReduceScatterOp>(loc, type, axes, toAttrEnum(step.layout.kind),
                                             step.dim, input, reason);
    break;
  case Kind::AllToAll:
    result = builder.create<AllToAllOp>(loc, type, axes, step.dim, step.concat, input, reason);
    break;
  case Kind::AllReduce:
    result =
        builder.create<AllReduceOp>(loc, type, axes, toAttrEnum(step.layout.kind), input, reason);
    break;
  case Kind::Permute:
    result = builder.create<CollectivePermuteOp>(loc, type, axes, step.sources, step.targets, input,
                                                 reason);
    break;
  }
  annotate(result.getDefiningOp(), &rest);
  return result;
}

void LocalValues::annotate(Operation *op, ArrayRef<const Layout *> rests) const {
  if (!mesh.hasRemaining() || op->getNumResults() == 0) {
    op->removeAttr(DistDialect::kShardingsAttr);
    return;
  }
  SmallVector<Attribute> shardings;
  for (auto [result, rest] : llvm::zip_equal(op->getResults(), rests)) {
    RankedTensorType type = getTensorType(result);
    int64_t rank = type ? type.getRank() : 0;
    shardings.push_back(mesh.toSharding(rest && type ? *rest : mesh.whole(rank)));
  }
  op->setAttr(DistDialect::kShardingsAttr, ArrayAttr::get(op->getContext(), shardings));
}

} // namespace shoal::dist
