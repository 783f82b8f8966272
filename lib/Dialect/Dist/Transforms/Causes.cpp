// Records of causes, their words, and where to look for one; see Causes.h.
#include "Causes.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/IR/Location.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace shoal::dist {

CauseAttr findCause(DictionaryAttr why, StringAttr axis) {
  if (!why)
    return {};
  if (auto cause = why.getAs<CauseAttr>(axis))
    return cause;
  return why.getAs<CauseAttr>(getAxisOrigin(axis.getValue()));
}

DictionaryAttr getWhy(Value value) {
  StringRef name = DistDialect::kWhyAttr;
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
  return getHandCause("result " + Twine(index), func->getLoc());
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

CauseAttr traceCause(Value value, StringAttr axis) {
  Value start = value;
  while (value) {
    if (DictionaryAttr why = getWhy(value))
      return findCause(why, axis);
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

Attribute mergeReasons(Attribute reason, Attribute other) {
  auto mine = dyn_cast_or_null<ReasonAttr>(reason), theirs = dyn_cast_or_null<ReasonAttr>(other);
  if (!mine || !theirs || mine.getCauses() == theirs.getCauses())
    return reason;
  SmallVector<CauseAttr> causes(mine.getCauses());
  for (CauseAttr cause : theirs.getCauses())
    if (!llvm::is_contained(causes, cause))
      causes.push_back(cause);
  return ReasonAttr::get(reason.getContext(), mine.getAsker(), mine.getLayer(), mine.getChange(), causes);
}

} // namespace shoal::dist
