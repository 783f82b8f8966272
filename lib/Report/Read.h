// What the readers of a page share.
#ifndef SHOAL_LIB_REPORT_READ_H
#define SHOAL_LIB_REPORT_READ_H

#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Report/Page.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::report {

/// "8×256×768 f32"; empty for what is no tensor.
std::string showType(mlir::Type type);

/// What is said of collectives, and where they belong, comes from their explanations.
void readLayers(mlir::func::FuncOp step, llvm::ArrayRef<dist::Explanation> explanations,
                std::vector<PageLayer> &layers);
void readTensors(mlir::func::FuncOp step, Page &page);

} // namespace shoal::report

#endif // SHOAL_LIB_REPORT_READ_H
