// Errors about one argument of a function, which say which one: in a model of hundreds of parameters the place of
// the function is no help.
#ifndef SHOAL_DIALECT_NN_IR_ARGERRORS_H
#define SHOAL_DIALECT_NN_IR_ARGERRORS_H

#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::nn {

/// Begins an error about argument `index`, at its own place where the function has a body:
/// `'func.func' op argument 2 "w": `.
inline mlir::InFlightDiagnostic emitArgError(mlir::FunctionOpInterface func, unsigned index) {
  // Attributes are verified before regions are.
  mlir::Location place = func.getLoc();
  if (func->getNumRegions() == 1 && !func->getRegion(0).empty() && index < func->getRegion(0).getNumArguments())
    place = func->getRegion(0).getArgument(index).getLoc();
  mlir::InFlightDiagnostic diag = mlir::emitError(place) << "'" << func->getName() << "' op argument " << index;
  if (llvm::StringRef name = getArgName(func, index); !name.empty())
    diag << " " << mlir::StringAttr::get(func->getContext(), name);
  diag << ": ";
  return diag;
}

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_IR_ARGERRORS_H
