// The compiler as pipelines: one list of passes serves shoal-opt, shoalc and the tests.
//
// `buildModelPipeline`        what a model is for: its results, its types, what its means divide by.
// `buildGlobalPipeline`       L1 -> annotated L1: gradient, optimizer, shardings.
// `buildLocalPipeline`        annotated L1 -> L2: one device's program with collectives.
// `buildHandWrittenPipeline`  L2 as a user wrote it: checked, nothing moved.
// `buildExecPipeline`         L2 -> L3: kernels outlined, arena, streams.
// A verifier pass stands at each border.
#ifndef SHOAL_PIPELINES_PIPELINES_H
#define SHOAL_PIPELINES_PIPELINES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace shoal {

/// What a user may choose about a program; the defaults are those of `shoalc`.
struct PlanOptions {
  std::vector<std::string> dataAxes = {"data"}; // of the mesh: axes that split the batch
  std::vector<std::string> modelAxes;           // of the mesh: all others, partitioned first
  std::string mode = "train"; // train | eval | infer
  std::string dtype;          // f32 | f64; empty: as written
  std::string optimizer = "sgd";
  double lr = 0.01;
  std::string lrSchedule = "none"; // none | constant | linear | cosine
  int64_t warmupSteps = 0;
  int64_t decaySteps = 0; // with the warm-up
  double minLr = 0.0;
  double momentum = 0.0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weightDecay = 0.0;
  std::string decay = "all"; // all | matrices
  double clipGradNorm = 0.0; // 0: no clipping
  bool gradNorm = false;     // report the norm even when nothing is clipped
  double bucketMb = 25; // units of 2^20 bytes
  std::string target = "cpu"; // cpu | cuda: whose kernels the arena has workspace for
  bool overlap = true; // start collectives as early as their operands allow
};

/// Sorts the axes of a mesh into the two lists of the options. `data` splits the batch, if there is one;
/// without, it is an axis like any other that only annotations in the file use.
void setAxes(PlanOptions &options, llvm::ArrayRef<std::string> meshAxes, bool hasBatchedInput);

void buildModelPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildGlobalPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildLocalPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildHandWrittenPipeline(mlir::OpPassManager &pm, const PlanOptions &options);
void buildExecPipeline(mlir::OpPassManager &pm, const PlanOptions &options);

/// Evaluation runs between training steps, on their parameters, under their plan. Gives the
/// parameters of `evaluation`, a model before `buildGlobalPipeline`, the shardings that they have in
/// `training`, which is behind it.
void adoptShardings(mlir::ModuleOp evaluation, mlir::ModuleOp training);
/// Moves the evaluation step of one local program, if it has one, into that of the training step, so
/// that they become rank programs on one arena and with common kernels.
void addEvaluation(mlir::ModuleOp training, mlir::ModuleOp evaluation);

/// Every dialect and external model that the pipelines meet.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Every pass and pipeline, for shoal-opt and textual pipelines.
void registerAllPasses();

} // namespace shoal

#endif // SHOAL_PIPELINES_PIPELINES_H
