// Errors about one argument or result of a function, which say which one: in a model of hundreds of parameters the
// place of the function is no help.
#ifndef SHOAL_DIALECT_NN_IR_SIGNATUREERRORS_H
#define SHOAL_DIALECT_NN_IR_SIGNATUREERRORS_H

#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::nn {

/// The place of argument `index`: its own where the function has a body.
inline mlir::Location getArgLoc(mlir::FunctionOpInterface func, unsigned index) {
  // Attributes are verified before regions are.
  if (func->getNumRegions() == 1 && !func->getRegion(0).empty() && index < func->getRegion(0).getNumArguments())
    return func->getRegion(0).getArgument(index).getLoc();
  return func.getLoc();
}

/// Begins an error about argument `index`, at its place: `'func.func' op argument 2 "w": `.
inline mlir::InFlightDiagnostic emitArgError(mlir::FunctionOpInterface func, unsigned index) {
  mlir::InFlightDiagnostic diag = mlir::emitError(getArgLoc(func, index))
                                  << "'" << func->getName() << "' op argument " << index;
  if (llvm::StringRef name = getArgName(func, index); !name.empty())
    diag << " " << mlir::StringAttr::get(func->getContext(), name);
  diag << ": ";
  return diag;
}

/// Begins an error about result `index`, which has no place of its own: `'func.func' op result 1 "logits": `.
inline mlir::InFlightDiagnostic emitResultError(mlir::FunctionOpInterface func, unsigned index) {
  mlir::InFlightDiagnostic diag = func->emitOpError() << "result " << index;
  for (ResultRole role : kResultRoles)
    if (auto name = func.getResultAttrOfType<mlir::StringAttr>(index, getRoleAttr(role))) {
      diag << " " << name;
      break;
    }
  diag << ": ";
  return diag;
}

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_SIGNATUREERRORS_H
