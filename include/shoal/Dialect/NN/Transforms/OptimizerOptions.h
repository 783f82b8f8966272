// The options of nn-optimize as a table, and which of them go together: said once, for the pass and for
// every command line that brings an optimizer.
#ifndef SHOAL_DIALECT_NN_TRANSFORMS_OPTIMIZEROPTIONS_H
#define SHOAL_DIALECT_NN_TRANSFORMS_OPTIMIZEROPTIONS_H

#include "shoal/Dialect/NN/Transforms/Passes.h"
#include "shoal/Support/OptionTable.h"

namespace shoal::nn {

llvm::ArrayRef<OptionRow<OptimizePassOptions>> getOptimizerOptions();

/// Tensors of state that each parameter has: momentum's velocity, Adam's two moments.
unsigned countStates(const OptimizePassOptions &options);

/// Which rule the options break, alone or together, in the words of one who calls an option `spell(name)` and
/// has given those for which `isGiven(name)` holds; empty when none.
std::string findOptimizerFault(const OptimizePassOptions &options,
                               llvm::function_ref<bool(llvm::StringRef)> isGiven,
                               llvm::function_ref<std::string(llvm::StringRef)> spell);
/// The same for the pass: by the options' own names, those are given that differ from their defaults.
std::string findOptimizerFault(const OptimizePassOptions &options);

} // namespace shoal::nn

#endif // SHOAL_DIALECT_NN_TRANSFORMS_OPTIMIZEROPTIONS_H
