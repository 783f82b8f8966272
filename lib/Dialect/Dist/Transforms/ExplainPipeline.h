// What explanations say of collectives between the stages of a pipeline.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINPIPELINE_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINPIPELINE_H

#include "shoal/Dialect/Dist/Transforms/Explain.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"

namespace shoal::dist {

/// Whether the stages of a pipeline are what brought the collective.
bool isOfPipeline(ReasonAttr reason);
/// What lies in several stages, and what they hand each other, as often as there are micro-batches: in each it is the
/// same.
void tellPipeline(Explanation &it, const StepParts &parts);
/// Where along the axis positions are.
llvm::BitVector getPlaces(const llvm::BitVector &positions, MeshAttr mesh, mlir::StringAttr axis);

// Of Explain.cpp.

/// What a user knows of what an op makes is what is made of it: of one that only moves it, or that cuts out a rank's
/// part, the op behind.
bool passesOn(mlir::Operation *op);
/// How messages call a result of the step: by its role, "result 2" without one.
std::string nameResult(mlir::FunctionOpInterface func, unsigned index);
/// The name of an argument in quotes; of a bucket the tensors in it, since no user named it.
std::string nameArgument(mlir::FunctionOpInterface func, unsigned index);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_EXPLAINPIPELINE_H
