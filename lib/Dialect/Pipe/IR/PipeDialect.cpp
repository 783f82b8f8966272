// The pipe dialect and its attributes.
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "shoal/Dialect/Pipe/PipeDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "shoal/Dialect/Pipe/PipeAttrs.cpp.inc"

namespace shoal::pipe {

static_assert(std::string_view(PipeDialect::kStageAttr) == std::string_view(origin::kStage));

void PipeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "shoal/Dialect/Pipe/PipeAttrs.cpp.inc"
      >();
}

void PipeDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "shoal/Dialect/Pipe/PipeOps.cpp.inc"
      >();
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kStageAttr)
    return op->emitOpError() << "unknown attribute " << attribute.getName()
                             << ", the pipe dialect knows on ops: " << kStageAttr;
  if (isa<FunctionOpInterface>(op))
    return op->emitOpError() << "'" << kStageAttr
                             << "' belongs on the ops of a model, not on its function, got: " << attribute.getValue();
  auto stage = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!stage || !stage.getType().isSignlessInteger(64) || stage.getInt() < 0)
    return op->emitOpError() << "'" << kStageAttr << "' must be an i64 of at least 0, got: " << attribute.getValue();
  return success();
}

LogicalResult PipeDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  auto emit = [&] { return func ? nn::emitArgError(func, index) : op->emitOpError(); };
  if (attribute.getName() != kRanksAttr)
    return emit() << "unknown attribute " << attribute.getName()
                  << ", the pipe dialect knows on arguments: " << kRanksAttr << "; an op has a stage";
  auto ranks = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (!ranks || ranks.empty() || ranks.asArrayRef().front() < 0 ||
      !llvm::is_sorted(ranks.asArrayRef(), std::less_equal<int64_t>()))
    return emit() << "'" << kRanksAttr << "' must be ranks along \"pipe\" in ascending order, got: "
                             << attribute.getValue();
  return success();
}

LogicalResult PipeDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned, NamedAttribute attribute) {
  return op->emitOpError() << "unknown attribute " << attribute.getName()
                           << ": the pipe dialect knows none on results; an op has a stage";
}

} // namespace shoal::pipe
