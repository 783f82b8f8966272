// The order of the compiler's passes, with the reason for each place in it.
#include "shoal/Pipelines/Pipelines.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "mlir/Pass/PassOptions.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace shoal {

void setAxes(PlanOptions &options, llvm::ArrayRef<std::string> meshAxes, bool hasBatchedInput) {
  options.dataAxes.clear();
  options.modelAxes.clear();
  for (const std::string &axis : meshAxes)
    (axis == "data" && hasBatchedInput ? options.dataAxes : options.modelAxes).push_back(axis);
}

void buildModelPipeline(OpPassManager &pm, const PlanOptions &options) {
  // First what a program is for, so that no later pass works on what falls away.
  nn::SelectResultsPassOptions select;
  select.mode = options.mode;
  pm.addPass(nn::createSelectResultsPass(select));
  if (!options.dtype.empty()) {
    nn::ConvertDtypePassOptions dtype;
    dtype.to = options.dtype;
    pm.addPass(nn::createConvertDtypePass(dtype));
  }
  // Before the gradient: counts and masks are differentiated, so gradients need none of their own.
  pm.addPass(nn::createExplicitCountsPass());
}

void buildGlobalPipeline(OpPassManager &pm, const PlanOptions &options) {
  if (options.mode == "train") {
    pm.addPass(nn::createDifferentiatePass());
    nn::OptimizePassOptions optimize;
    optimize.optimizer = options.optimizer;
    optimize.lr = options.lr;
    optimize.lrSchedule = options.lrSchedule;
    optimize.warmupSteps = options.warmupSteps;
    optimize.decaySteps = options.decaySteps;
    optimize.minLr = options.minLr;
    optimize.momentum = options.momentum;
    optimize.nesterov = options.nesterov;
    optimize.beta1 = options.beta1;
    optimize.beta2 = options.beta2;
    optimize.eps = options.eps;
    optimize.weightDecay = options.weightDecay;
    optimize.decay = options.decay;
    optimize.clipGradNorm = options.clipGradNorm;
    // Clipping computes the norm anyway, and users want to see what it did.
    optimize.gradNorm = options.gradNorm || options.clipGradNorm > 0;
    pm.addPass(nn::createOptimizePass(optimize));
  }
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // After the last pass that merges ops: the numbers name values of this program to the end.
  pm.addPass(dist::createNumberPass());
  // Strategies only annotate; propagation fills in what follows.
  for (const std::string &axis : options.dataAxes) {
    dist::DataParallelPassOptions dataParallel;
    dataParallel.axis = axis;
    pm.addPass(dist::createDataParallelPass(dataParallel));
  }
  pm.addPass(dist::createPropagatePass());
  pm.addPass(dist::createVerifyGlobalPass());
}

void buildLocalPipeline(OpPassManager &pm, const PlanOptions &options) {
  auto partition = [&](const std::vector<std::string> &axes) {
    if (axes.empty())
      return;
    dist::PartitionPassOptions partition;
    partition.axes = axes;
    pm.addPass(dist::createPartitionPass(partition));
  };
  if (options.mode == "infer") {
    // No gradients to pack: one run, in which a dimension may mix axes in any order.
    std::vector<std::string> axes = options.modelAxes;
    axes.insert(axes.end(), options.dataAxes.begin(), options.dataAxes.end());
    partition(axes);
  } else {
    // Evaluation lays its parameters out as training does, in the same two runs, but has nothing to pack.
    // Model axes first: buckets hold local gradients. Hazard: dist-pack must see gradients that
    // are still partial over the data axes, so it stands between the two partitions.
    partition(options.modelAxes);
    if (options.mode == "train" && !options.dataAxes.empty()) {
      dist::PackPassOptions pack;
      pack.bucketMb = options.bucketMb;
      pack.axes = options.dataAxes;
      pm.addPass(dist::createPackPass(pack));
    }
    partition(options.dataAxes);
  }
  pm.addPass(dist::createVerifyLocalPass());
  // Masks, offsets and shards of the same value are common now.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  dist::OptimizeCollectivesPassOptions collectives;
  collectives.overlap = options.overlap;
  pm.addPass(dist::createOptimizeCollectivesPass(collectives));
  pm.addPass(dist::createVerifyLocalPass());
}

void buildHandWrittenPipeline(OpPassManager &pm, const PlanOptions &options) {
  // What a user wrote is what runs: no pass that moves, merges or replaces collectives.
  pm.addPass(dist::createVerifyLocalPass());
}

void buildExecPipeline(OpPassManager &pm, const PlanOptions &options) {
  // First: everything below sees one straight line for all ranks.
  pm.addPass(dist::createFoldControlFlowPass());
  // Layout changes around collectives become nn ops, so that they fuse into kernels.
  pm.addPass(dist::createExpandCollectivesPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(exec::createOutlineKernelsPass());
  // Hazard: the arena needs the workspace of every kernel, before kernels are compiled.
  codegen::KernelWorkspacePassOptions workspace;
  workspace.target = options.target;
  pm.addPass(codegen::createKernelWorkspacePass(workspace));
  exec::LowerPassOptions lower;
  lower.overlap = options.overlap;
  pm.addPass(exec::createLowerPass(lower));
  // After both programs have their own offsets.
  pm.addPass(exec::createShareArenaPass());
  pm.addPass(exec::createVerifyPass());
}

namespace {

/// PlanOptions as options of a textual pipeline.
struct PipelineOptions : public PassPipelineOptions<PipelineOptions> {
  ListOption<std::string> dataAxes{*this, "data-axes", llvm::cl::desc("axes that split the batch")};
  ListOption<std::string> modelAxes{*this, "model-axes", llvm::cl::desc("all other mesh axes")};
  Option<std::string> mode{*this, "mode", llvm::cl::desc("train, eval or infer"),
                           llvm::cl::init(PlanOptions().mode)};
  Option<std::string> dtype{*this, "dtype", llvm::cl::desc("f32 or f64"), llvm::cl::init("")};
  Option<std::string> optimizer{*this, "optimizer", llvm::cl::desc("sgd, adam or adamw"),
                                llvm::cl::init(PlanOptions().optimizer)};
  Option<double> lr{*this, "lr", llvm::cl::desc("learning rate"), llvm::cl::init(PlanOptions().lr)};
  Option<std::string> lrSchedule{*this, "lr-schedule",
                                 llvm::cl::desc("none, constant, linear or cosine"),
                                 llvm::cl::init(PlanOptions().lrSchedule)};
  Option<int64_t> warmupSteps{*this, "warmup-steps", llvm::cl::desc("steps up to the full rate"),
                              llvm::cl::init(0)};
  Option<int64_t> decaySteps{*this, "decay-steps", llvm::cl::desc("steps down to min-lr"),
                             llvm::cl::init(0)};
  Option<double> minLr{*this, "min-lr", llvm::cl::desc("rate after decay-steps"),
                       llvm::cl::init(0.0)};
  Option<double> momentum{*this, "momentum", llvm::cl::desc("of sgd"), llvm::cl::init(0.0)};
  Option<bool> nesterov{*this, "nesterov", llvm::cl::desc("of sgd's momentum"), llvm::cl::init(false)};
  Option<double> beta1{*this, "beta1", llvm::cl::desc("of adam"), llvm::cl::init(PlanOptions().beta1)};
  Option<double> beta2{*this, "beta2", llvm::cl::desc("of adam"), llvm::cl::init(PlanOptions().beta2)};
  Option<double> eps{*this, "eps", llvm::cl::desc("of adam"), llvm::cl::init(PlanOptions().eps)};
  Option<std::string> decay{*this, "decay", llvm::cl::desc("all or matrices"),
                            llvm::cl::init(PlanOptions().decay)};
  Option<double> weightDecay{*this, "weight-decay", llvm::cl::desc("L2, or decoupled for adamw"),
                             llvm::cl::init(0.0)};
  Option<double> clipGradNorm{*this, "clip-grad-norm", llvm::cl::desc("0: no clipping"),
                              llvm::cl::init(0.0)};
  Option<bool> gradNorm{*this, "grad-norm", llvm::cl::desc("report the gradient norm"),
                        llvm::cl::init(false)};
  Option<double> bucketMb{*this, "bucket-mb", llvm::cl::desc("size of a gradient bucket, MiB"),
                          llvm::cl::init(PlanOptions().bucketMb)};
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu or cuda"),
                             llvm::cl::init(PlanOptions().target)};
  Option<bool> overlap{*this, "overlap", llvm::cl::desc("communicate during the backward pass"),
                       llvm::cl::init(true)};

  PlanOptions get() const {
    PlanOptions options;
    options.dataAxes.assign(dataAxes.begin(), dataAxes.end());
    options.modelAxes.assign(modelAxes.begin(), modelAxes.end());
    options.mode = mode;
    options.dtype = dtype;
    options.optimizer = optimizer;
    options.lr = lr;
    options.lrSchedule = lrSchedule;
    options.warmupSteps = warmupSteps;
    options.decaySteps = decaySteps;
    options.minLr = minLr;
    options.momentum = momentum;
    options.nesterov = nesterov;
    options.beta1 = beta1;
    options.beta2 = beta2;
    options.eps = eps;
    options.decay = decay;
    options.weightDecay = weightDecay;
    options.clipGradNorm = clipGradNorm;
    options.gradNorm = gradNorm;
    options.bucketMb = bucketMb;
    options.target = target;
    options.overlap = overlap;
    return options;
  }
};

} // namespace

void registerPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "shoal-global", "model to annotated training step (L1)",
      [](OpPassManager &pm, const PipelineOptions &o) {
        buildModelPipeline(pm, o.get());
        buildGlobalPipeline(pm, o.get());
      });
  PassPipelineRegistration<PipelineOptions>(
      "shoal-local", "annotated step to one device's program (L1 to L2)",
      [](OpPassManager &pm, const PipelineOptions &o) { buildLocalPipeline(pm, o.get()); });
  PassPipelineRegistration<PipelineOptions>(
      "shoal-exec", "one device's program to the rank program (L2 to L3)",
      [](OpPassManager &pm, const PipelineOptions &o) { buildExecPipeline(pm, o.get()); });
}

} // namespace shoal
