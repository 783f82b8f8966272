// Other results for a region of micro-batches.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ACCUMULATERESULTS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ACCUMULATERESULTS_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

/// Makes the values, which are of the body, further results, laid out as they are. Those before keep their numbers.
AccumulateOp addResults(AccumulateOp op, llvm::ArrayRef<mlir::Value> yielded);

/// Takes away the results that nothing reads, and what only they were made of.
void dropUnreadResults(AccumulateOp op);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ACCUMULATERESULTS_H
