// The compiler as pipelines: one list of passes serves shoal-opt, shoalc and the tests.
//
// `buildModelPipeline`        what a model is for: its results, its types, what its means divide by.
// `buildStepPipeline`         L1: gradient, optimizer. The program of one device.
// `buildPlanPipeline`         L1 -> annotated L1: shardings.
// `buildLocalPipeline`        annotated L1 -> L2: one device's program with collectives.
// `buildSchedulePipeline`     the order of a pipeline's stages, which is a part of `buildLocalPipeline` where there is
//                             more than one rank.
// `buildHandWrittenPipeline`  L2 as a user wrote it: checked, nothing moved.
// `buildExecPipeline`         L2 -> L3: kernels outlined, arena, streams.
// A verifier pass stands at each border.
#ifndef SHOAL_PIPELINES_PIPELINES_H
#define SHOAL_PIPELINES_PIPELINES_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Pipelines/PlanOptions.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include <string>

namespace shoal {

/// Sorts the axes of a mesh into the lists of the options. Batch axes split the batch, if there is one;
/// without, they are axes like any other that only annotations in the file use. That of a pipeline is in none.
void setAxes(PlanOptions &options, dist::MeshAttr mesh, bool hasBatchedInput);

/// The stages of each rank of a pipeline.
int64_t getChunks(const PlanOptions &options);

void buildModelPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildStepPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildPlanPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildLocalPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildSchedulePipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildHandWrittenPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildExecPipeline(mlir::OpPassManager &pm, const PlanOptions &options);

/// Evaluation runs between training steps, on their parameters, under their plan. Gives the
/// parameters of `evaluation`, a model before `buildStepPipeline`, the shardings that they have in
/// `training`, which is behind it, and the same parts of mesh axes.
llvm::LogicalResult adoptShardings(mlir::ModuleOp evaluation, mlir::ModuleOp training);
/// Gives ops of `evaluation`, a model before `buildStepPipeline`, the stages of their counterparts in `training`,
/// which is behind it: parameters are read where training holds them.
void adoptStages(mlir::ModuleOp evaluation, mlir::ModuleOp training);
/// Tells `evaluation`, before `buildLocalPipeline`, which buckets `training` has its parameters in behind it.
void adoptBuckets(mlir::ModuleOp evaluation, mlir::ModuleOp training);
/// Tells `evaluation`, both behind `buildLocalPipeline`, which ranks of a pipeline keep what `training` replaces.
void adoptRanks(mlir::ModuleOp evaluation, mlir::ModuleOp training);
/// Moves the evaluation step of one local program, if it has one, into that of the training step, so
/// that they become rank programs on one arena and with common kernels.
void addEvaluation(mlir::ModuleOp training, mlir::ModuleOp evaluation);

/// Every dialect and external model that the pipelines meet.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Every pass and pipeline, for shoal-opt and textual pipelines.
void registerAllPasses();

} // namespace shoal

#endif // SHOAL_PIPELINES_PIPELINES_H
