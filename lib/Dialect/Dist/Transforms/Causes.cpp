// Records of causes, their words, and where to look for one; see Causes.h.
#include "Causes.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace shoal::dist {

SmallVector<CauseAttr> listCauses(Attribute causes) {
  if (auto several = dyn_cast_or_null<ArrayAttr>(causes))
    return llvm::map_to_vector(several, [](Attribute cause) { return cast<CauseAttr>(cause); });
  return causes ? SmallVector<CauseAttr>{cast<CauseAttr>(causes)} : SmallVector<CauseAttr>();
}

static void joinCause(SmallVectorImpl<CauseAttr> &causes, CauseAttr cause) {
  constexpr size_t kMost = 4; // a reason is a line, also where hundreds of annotations meet in a bucket
  MLIRContext *context = cause.getContext();
  for (CauseAttr &mine : causes) {
    if (mine.getWhat() != cause.getWhat() || mine.getStrategy() != cause.getStrategy())
      continue;
    if (mine.getLayer() != cause.getLayer())
      mine = CauseAttr::get(context, cause.getWhat(), {}, cause.getStrategy());
    return;
  }
  if (causes.size() < kMost)
    causes.push_back(cause);
  else if (causes.size() == kMost)
    causes.push_back(CauseAttr::get(context, StringAttr::get(context, "others"), {}, {}));
}

Attribute joinCauses(Attribute causes, Attribute more) {
  if (!causes || !more || causes == more)
    return causes ? causes : more;
  SmallVector<CauseAttr> all = listCauses(causes);
  for (CauseAttr cause : listCauses(more))
    joinCause(all, cause);
  if (all.size() == 1)
    return all.front();
  return ArrayAttr::get(causes.getContext(), SmallVector<Attribute>(all.begin(), all.end()));
}

Attribute findCauses(DictionaryAttr why, StringAttr axis) {
  if (!why)
    return {};
  if (Attribute causes = why.get(axis))
    return causes;
  return why.get(getAxisOrigin(axis.getValue()));
}

DictionaryAttr getWhy(Value value) {
  StringRef name = DistDialect::kWhyAttr;
  // Each sum over micro-batches has what brought the axes of its own terms.
  if (auto accumulate = value.getDefiningOp<AccumulateOp>())
    if (DictionaryAttr own = getWhy(accumulate.getBody().front().getTerminator()->getOperand(
            cast<OpResult>(value).getResultNumber())))
      return own;
  if (Operation *op = value.getDefiningOp())
    return op->getAttrOfType<DictionaryAttr>(name);
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  auto func = dyn_cast_or_null<FunctionOpInterface>(parent);
  if (func && argument.getOwner()->isEntryBlock())
    return func.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), name);
  return {};
}

DictionaryAttr addCause(DictionaryAttr why, ArrayRef<StringAttr> axes, CauseAttr cause) {
  NamedAttrList list(why);
  for (StringAttr axis : axes)
    if (!list.get(axis))
      list.set(axis, cause);
  return list.getDictionary(cause.getContext());
}

void addCause(Operation *op, ArrayRef<StringAttr> axes, CauseAttr cause) {
  op->setAttr(DistDialect::kWhyAttr, addCause(op->getAttrOfType<DictionaryAttr>(DistDialect::kWhyAttr), axes, cause));
}

ArrayRef<StrategyRemovals> getStrategyRemovals() {
  static constexpr StringLiteral kOwnState =
      "leave out {1}: every rank of {0} would hold the whole optimizer state, and update all parameters";
  static constexpr StrategyRemovals kRemovals[] = {
      {.strategy = kDataParallel,
       .gradient = "a mesh without {0}: its ranks have rows of their own and the whole parameters",
       .gather = "",
       .scatter = "",
       .refetch = ""},
      {.strategy = kSequenceParallel,
       .gradient = "leave out --sequence-parallel: every rank of {0} would have all tokens, and the whole gradient",
       .gather =
           "leave out --sequence-parallel: every rank of {0} would have all tokens, and what is scattered between "
           "them now would be all-reduced",
       .scatter = "leave out --sequence-parallel: it would be an all-reduce, which sends twice as much",
       .refetch = "--keep-gathered: what the forward pass gathered would be kept for the backward pass"},
      {.strategy = kContextParallel,
       .gradient = "a mesh without {0}: its ranks have tokens of their own and the whole parameters",
       .gather = "--context-parallel ring: keys and values would pass by in a ring, and none be whole",
       .scatter = "--context-parallel ring: these gradients would be added up on their way around a ring",
       .refetch = "--keep-gathered: what the forward pass gathered would be kept for the backward pass",
       .updated = "a mesh without {0}: its ranks have tokens of their own, and update what belongs to these",
       .ring = "a mesh without {0}, whose ranks have tokens of their own; --context-parallel ulysses would exchange "
               "tokens for heads instead",
       .exchange = "a mesh without {0}, whose ranks have tokens of their own; --context-parallel ring would let keys "
                   "and values pass by instead",
       .reorder = "--context-parallel ring: tokens would be stored in their original order",
       .ownGathers = true},
      {.strategy = kZeroStages[0], .gradient = "", .gather = kOwnState, .scatter = "", .refetch = ""},
      {.strategy = kZeroStages[1], .gradient = "", .gather = kOwnState, .scatter = "", .refetch = ""},
      {.strategy = kZeroStages[2],
       .gradient = "",
       .gather = "--zero 2: every rank of {0} would hold the whole parameters, and gather them once, when they are new",
       .scatter = "",
       .refetch = ""},
  };
  return kRemovals;
}

CauseAttr getStrategyCause(MLIRContext *context, StringRef strategy, const Twine &what, Operation *op) {
  auto layer = op ? op->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr) : StringAttr();
  return CauseAttr::get(context, StringAttr::get(context, what), layer, StringAttr::get(context, strategy));
}

/// " at model.mlir:7:5"; without folders, so that what is compiled does not depend on where it lies.
static std::string placeOf(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return "";
  return (" at " + llvm::sys::path::filename(place.getFilename().getValue()) + ":" + Twine(place.getLine()) + ":" +
          Twine(place.getColumn()))
      .str();
}

static CauseAttr getHandCause(const Twine &of, Location loc) {
  MLIRContext *context = loc.getContext();
  return CauseAttr::get(context, StringAttr::get(context, "the annotation of " + of + placeOf(loc)), {}, {});
}

CauseAttr getHandCause(Operation *op) { return getHandCause(op->getName().getStringRef(), op->getLoc()); }

CauseAttr getResultHandCause(Operation *func, unsigned index) {
  std::string name = "result " + std::to_string(index);
  for (nn::NamedRole named : nn::getResultRoles(cast<FunctionOpInterface>(func), index))
    if (named.role != nn::ResultRole::Loss) {
      name += " \"" + named.name.str() + "\"";
      break;
    }
  return getHandCause(name, func->getLoc());
}

CauseAttr getHandCause(Value value) {
  if (Operation *op = value.getDefiningOp())
    return getHandCause(op);
  auto argument = cast<BlockArgument>(value);
  auto func = dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp());
  StringRef name =
      func && argument.getOwner()->isEntryBlock() ? nn::getArgName(func, argument.getArgNumber()) : StringRef();
  return name.empty() ? getHandCause("argument " + Twine(argument.getArgNumber()), argument.getLoc())
                      : getHandCause("\"" + name + "\"", argument.getLoc());
}

Attribute traceCauses(Value value, StringAttr axis) {
  Value start = value;
  while (value) {
    if (DictionaryAttr why = getWhy(value)) {
      // Buckets are sharded behind propagation: what is made of them has such an axis, and a record without it.
      ShardingAttr sharding = getSharding(value);
      if (Attribute causes = findCauses(why, axis); causes || !sharding || !sharding.uses(axis))
        return causes;
    }
    if (auto pack = value.getDefiningOp<PackOp>()) {
      Attribute causes;
      for (Value input : pack.getInputs())
        causes = joinCauses(causes, traceCauses(input, axis));
      return causes;
    }
    if (Operation *op = value.getDefiningOp()) {
      value = op->getNumOperands() ? op->getOperand(0) : Value();
      continue;
    }
    if (ShardingAttr sharding = getSharding(value); sharding && sharding.uses(axis))
      return getHandCause(value);
    auto argument = cast<BlockArgument>(value);
    auto accumulate = dyn_cast_or_null<AccumulateOp>(argument.getOwner()->getParentOp());
    value = accumulate ? accumulate.getInputs()[argument.getArgNumber()] : Value();
  }
  ShardingAttr sharding = getSharding(start);
  return sharding && sharding.uses(axis) ? getHandCause(start) : CauseAttr();
}

Attribute findHandCauses(Operation *user, Value value, StringAttr axis) {
  auto has = [&](ShardingAttr sharding) { return sharding && sharding.uses(axis); };
  Attribute causes;
  if (auto func = dyn_cast<FunctionOpInterface>(user->getParentOp()); func && user->hasTrait<OpTrait::IsTerminator>()) {
    for (OpOperand &operand : user->getOpOperands())
      if (operand.get() == value && has(getResultSharding(func, operand.getOperandNumber())))
        causes = joinCauses(causes, getResultHandCause(func, operand.getOperandNumber()));
    return causes;
  }
  if (llvm::any_of(user->getResults(), [&](Value result) { return has(getSharding(result)); }))
    return getHandCause(user);
  for (Value operand : user->getOperands())
    causes = joinCauses(causes, traceCauses(operand, axis));
  return causes;
}

Attribute mergeReasons(Attribute reason, Attribute other) {
  if (!reason || !other || reason == other)
    return reason ? reason : other;
  auto mine = dyn_cast<ReasonAttr>(reason), theirs = dyn_cast<ReasonAttr>(other);
  if (!mine || !theirs)
    return StringAttr::get(reason.getContext(),
                           getReasonText(reason).getValue() + "; " + getReasonText(other).getValue());
  SmallVector<CauseAttr> causes(mine.getCauses());
  for (CauseAttr cause : theirs.getCauses())
    joinCause(causes, cause);
  return ReasonAttr::get(reason.getContext(), mine.getAsker(), mine.getLayer(), mine.getChange(), causes);
}

} // namespace shoal::dist
