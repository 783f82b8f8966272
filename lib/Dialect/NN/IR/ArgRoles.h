// Which attributes of arguments say a role: the table of Roles.cpp, for the dialect's verifier.
#ifndef SHOAL_LIB_DIALECT_NN_IR_ARGROLES_H
#define SHOAL_LIB_DIALECT_NN_IR_ARGROLES_H

#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::nn {

/// The role that an attribute of an argument says; None of other attributes.
ArgRole getArgRole(llvm::StringRef attr);

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_IR_ARGROLES_H
