// The order of the compiler's passes, with the reason for each place in it.
#include "shoal/Pipelines/Pipelines.h"

#include "shoal/Codegen/Passes.h"
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/NN/Transforms/Passes.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Schedule/Generate.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <cmath>

using namespace mlir;

namespace shoal {

void setAxes(PlanOptions &options, dist::MeshAttr mesh, bool hasBatchedInput) {
  options.dataAxes.clear();
  options.sequenceAxes.clear();
  options.modelAxes.clear();
  StringAttr pipe = dist::getPipeAxis(mesh);
  options.pipeRanks = pipe ? *mesh.getAxisSize(pipe) : 1;
  for (const std::string &axis : dist::getAxisNames(mesh)) {
    dist::AxisRole role = dist::getAxisRole(axis);
    if (role == dist::AxisRole::Pipe)
      continue;
    bool isOfData = hasBatchedInput && role == dist::AxisRole::Batch, isOfSequence = role == dist::AxisRole::Sequence;
    (isOfData ? options.dataAxes : isOfSequence ? options.sequenceAxes : options.modelAxes).push_back(axis);
  }
}

int64_t getChunks(const PlanOptions &options) {
  return options.pipelineChunks > 0 ? options.pipelineChunks : pipe::getDefaultChunks(options.pipelineSchedule);
}

void buildModelPipeline(OpPassManager &pm, const PlanOptions &options) {
  // What a user wrote, before any pass counts its elements or adds what the next ones believe.
  pm.addPass(nn::createVerifySizesPass());
  pm.addPass(nn::createVerifyModelPass());
  // First what a program is for, so that no later pass works on what falls away.
  nn::SelectResultsPassOptions select;
  select.mode = options.mode;
  pm.addPass(nn::createSelectResultsPass(select));
  // Of what is left, while losses and embeddings are whole ops: plans may take them apart.
  pm.addPass(nn::createBoundIndicesPass());
  // Of what is left: dropout that only training does asks for no seed elsewhere.
  pm.addPass(nn::createSeedPass());
  bool isMixed = options.dtype == "bf16";
  if (!options.dtype.empty()) {
    nn::ConvertDtypePassOptions dtype;
    dtype.to = isMixed ? "f32" : options.dtype;
    pm.addPass(nn::createConvertDtypePass(dtype));
  }
  // Before the gradient: counts and masks are differentiated, so gradients need none of their own.
  pm.addPass(nn::createExplicitCountsPass());
  // Behind it: batch statistics are sums by now, and counts, which bf16 does not hold, are not made of activations.
  // Before the gradient, which has the types of the program that it finds.
  if (isMixed)
    pm.addPass(nn::createMixedPrecisionPass());
}

/// In bytes, rounded up: only 0 is none.
static int64_t getMemoryLimit(const PlanOptions &options) {
  return int64_t(std::ceil(options.memoryLimitGb * double(int64_t(1) << 30)));
}

/// What a rank holds of its stages under the plan, for cuts that hold less than others.
static void setMemory(pipe::AssignStagesPassOptions &stages, const PlanOptions &options) {
  stages.lighter = options.lighterCut;
  stages.schedule = options.pipelineSchedule;
  // Which live as long as options refer to them.
  static const std::string dataAxis = dist::kDataAxis.str(), tensorAxis = dist::kTensorAxis.str();
  stages.shardAxes = dataAxis;
  if (options.tensorParallel)
    stages.parameterAxes = tensorAxis;
  stages.recompute = options.recompute;
  // Of a parameter in f32, in mixed precision its master: what the step computes with, its gradient, its state.
  bool isMixed = options.dtype == "bf16";
  double value = isMixed ? 0.5 : 1, gradient = isMixed && options.gradDtype == "bf16" ? 0.5 : 1;
  double state = double(nn::countStates(options.optimize)) + isMixed;
  stages.heldSharded = (options.zero >= 1 ? state : 0) + (options.zero >= 2 ? gradient : 0) + (options.zero >= 3 ? value : 0);
  stages.heldWhole = value + gradient + state - stages.heldSharded;
}

void buildStepPipeline(OpPassManager &pm, const PlanOptions &options) {
  // Before the gradient, whose ops are of the stage of what they differentiate.
  pipe::AssignStagesPassOptions stages;
  stages.chunks = getChunks(options);
  stages.file = options.scheduleFile;
  stages.fileText = options.scheduleText;
  stages.microbatches = options.microbatches;
  stages.forwardOnly = options.mode != "train";
  setMemory(stages, options);
  pm.addPass(pipe::createAssignStagesPass(stages));
  if (options.mode == "train") {
    pm.addPass(nn::createDifferentiatePass());
    // Next to it: what reads a gradient later reads it in this type.
    if (options.dtype == "bf16") {
      nn::GradientDtypePassOptions gradient;
      gradient.to = options.gradDtype.empty() ? "f32" : options.gradDtype;
      pm.addPass(nn::createGradientDtypePass(gradient));
    }
    // Before anything is added behind the backward pass: its ops read what the forward pass made.
    if (options.recompute != "none") {
      nn::RecomputePassOptions recompute;
      recompute.mode = options.recompute;
      pm.addPass(nn::createRecomputePass(recompute));
    }
    nn::OptimizePassOptions optimize = options.optimize;
    // Clipping computes the norm anyway, and users want to see what it did.
    optimize.gradNorm |= optimize.clipGradNorm > 0;
    pm.addPass(nn::createOptimizePass(optimize));
  }
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // After the last pass that merges ops: the numbers name values of this program to the end.
  pm.addPass(dist::createNumberPass());
}

void buildPlanPipeline(OpPassManager &pm, const PlanOptions &options) {
  // Strategies only annotate; propagation fills in what follows. Evaluation has its parameters' layouts from
  // training, which chose them.
  if (options.tensorParallel && options.mode != "eval")
    pm.addPass(dist::createTensorParallelPass());
  // After it: heads that it shards are fewer for others.
  if (options.contextParallel != "none") {
    dist::ContextParallelPassOptions context;
    context.mode = options.contextParallel;
    context.keepGathered = options.keepGathered;
    pm.addPass(dist::createContextParallelPass(context));
  }
  // After both: the stream is what the products of the first read and add to, and lies along the sequence as the second
  // has laid it.
  if (options.sequenceParallel) {
    dist::SequenceParallelPassOptions sequence;
    sequence.keepGathered = options.keepGathered;
    pm.addPass(dist::createSequenceParallelPass(sequence));
  }
  if (!options.dataAxes.empty()) {
    dist::DataParallelPassOptions dataParallel;
    dataParallel.axes = options.dataAxes;
    pm.addPass(dist::createDataParallelPass(dataParallel));
  }
  if (options.zero > 0 && options.mode != "eval") {
    dist::ZeroPassOptions zero;
    zero.stage = options.zero;
    pm.addPass(dist::createZeroPass(zero));
  }
  if (options.microbatches > 1 || options.pipeRanks > 1) {
    // Hazard: behind the strategies, which look for rows in dimension 0 and do not see into regions.
    dist::MicrobatchPassOptions microbatch;
    microbatch.count = options.microbatches;
    pm.addPass(dist::createMicrobatchPass(microbatch));
    // What is made twice, before the micro-batches and in them, is two values.
    pm.addPass(dist::createNumberPass());
  }
  // Hazard: after every strategy, which would find nothing open.
  pm.addPass(dist::createCloseArgumentsPass());
  pm.addPass(dist::createPropagatePass());
  // The mesh is that of training, which may have more use for it than evaluation.
  if (options.mode != "eval")
    pm.addPass(dist::createVerifyAxesPass());
  pm.addPass(dist::createVerifyGlobalPass());
}

void buildSchedulePipeline(OpPassManager &pm, const PlanOptions &options) {
  // A norm that is only told (--grad-norm) lets no update wait.
  bool isTraining = options.mode == "train", waitsForNorm = options.optimize.clipGradNorm > 0;
  pipe::SchedulePassOptions schedule;
  schedule.ranks = options.pipeRanks;
  schedule.microbatches = options.microbatches;
  schedule.file = options.scheduleFile;
  schedule.fileText = options.scheduleText;
  if (schedule.file.empty()) {
    schedule.schedule = options.pipelineSchedule;
    schedule.chunks = getChunks(options);
  }
  schedule.optimizer = !isTraining ? "none" : waitsForNorm ? "norm" : "update";
  schedule.forwardOnly = !isTraining;
  schedule.estimate = options.pipeRanks > 1; // else there are no stages
  schedule.costsFile = options.pipelineCosts;
  pm.addPass(pipe::createSchedulePass(schedule));
  pm.addPass(pipe::createVerifyPass());
}

void buildLocalPipeline(OpPassManager &pm, const PlanOptions &options) {
  auto partition = [&](std::vector<std::string> axes) {
    // Nothing lies sharded over the axis of a pipeline, which may be the only one.
    if (options.pipeRanks > 1)
      axes.push_back(dist::kPipeAxis.str());
    if (axes.empty())
      return;
    dist::PartitionPassOptions partition;
    partition.axes = axes;
    pm.addPass(dist::createPartitionPass(partition));
  };
  auto packOver = [&](const std::vector<std::string> &axes) {
    if (axes.empty())
      return;
    dist::PackPassOptions pack;
    pack.bucketMb = options.bucketMb;
    pack.axes = axes;
    pack.joint = options.sequenceAxes;
    pack.overlap = options.overlap;
    pm.addPass(dist::createPackPass(pack));
  };
  std::vector<std::string> firstAxes = options.modelAxes;
  llvm::append_range(firstAxes, options.sequenceAxes);
  if (options.mode == "infer") {
    // It has nothing to pack, and tells of what a user lays flat that it stays whole.
    packOver(options.dataAxes);
    // One run, in which a dimension may mix axes in any order.
    llvm::append_range(firstAxes, options.dataAxes);
    partition(firstAxes);
  } else {
    // Evaluation lays its parameters out as training does, in the same two runs, and has nothing else to pack.
    // Model axes first: buckets hold local gradients. Hazard: dist-pack must see gradients that
    // are still partial over the data axes, so it stands between the two partitions. Those that are partial over
    // model axes (of norms, when the sequence is sharded) are packed for these before; over the axes of the sequence
    // only where they are not partial over data axes, too, with which they are reduced at once.
    for (const auto &axes : {firstAxes, options.dataAxes}) {
      if (options.mode == "train" || axes == options.dataAxes)
        packOver(axes);
      partition(axes);
    }
  }
  // Of arguments as they are by now, packed or not.
  if (!options.offload.empty())
    pm.addPass(dist::createOffloadPass());
  pm.addPass(dist::createVerifyLocalPass());
  // Masks, offsets and shards of the same value are common now.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  dist::OptimizeCollectivesPassOptions collectives;
  collectives.overlap = options.overlap;
  collectives.joint = options.sequenceAxes;
  pm.addPass(dist::createOptimizeCollectivesPass(collectives));
  pm.addPass(dist::createVerifyLocalPass());
  if (options.pipeRanks > 1) {
    buildSchedulePipeline(pm, options);
    // Behind all that moves collectives: what stages hand over is what is left on either side.
    pm.addPass(pipe::createSplitPass());
    // Of what leaves this level: its functions are new.
    pm.addPass(pipe::createVerifyPass());
  }
}

void buildHandWrittenPipeline(OpPassManager &pm, const PlanOptions &options) {
  pm.addPass(nn::createVerifySizesPass());
  // What a user wrote is what runs: no pass that moves, merges or replaces collectives.
  pm.addPass(dist::createVerifyLocalPass());
}

void buildExecPipeline(OpPassManager &pm, const PlanOptions &options) {
  // Of programs written by hand; before kernels hide the ops.
  pm.addPass(nn::createBoundIndicesPass());
  // Stages of a pipeline, in the order of their schedule.
  pm.addPass(pipe::createUnrollPass());
  // Everything below sees one straight line for all ranks.
  pm.addPass(dist::createFoldControlFlowPass());
  // Layout changes around collectives become nn ops, so that they fuse into kernels.
  pm.addPass(dist::createExpandCollectivesPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  // Behind what merges and moves ops, before anything is made of them: kernels, buffers and rows are at the positions
  // of their ops.
  pm.addPass(dist::createNarrowPositionsPass());
  // Before kernels are outlined: they run as a whole on the device or on its host.
  pm.addPass(exec::createInsertTransfersPass());
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
  if (int64_t limit = getMemoryLimit(options))
    pm.addPass(exec::createLimitMemoryPass({limit}));
  pm.addPass(exec::createVerifyPass());
}

using Build = void (*)(OpPassManager &, const PlanOptions &);

/// Under `name`, with the options that act in `stages`.
static void registerPipeline(StringRef name, StringRef summary, unsigned stages, ArrayRef<Build> builds) {
  registerPassPipeline(
      name, summary,
      [stages, builds = llvm::to_vector(builds)](OpPassManager &pm, StringRef text,
                                                 function_ref<LogicalResult(const Twine &)> emitError) {
        PipelineOptions options(stages);
        if (failed(options.parseFromString(text)))
          return failure();
        std::string fault;
        PlanOptions plan = options.get(fault);
        if (!fault.empty())
          return emitError(fault);
        for (Build build : builds)
          build(pm, plan);
        return success();
      },
      [stages](function_ref<void(const mlir::detail::PassOptions &)> visit) {
        visit(PipelineOptions(stages));
      });
}

void registerPipelines() {
  registerPipeline("shoal-global", "model to annotated training step (L1)", kToGlobal,
                   {buildModelPipeline, buildStepPipeline, buildPlanPipeline});
  registerPipeline("shoal-local", "annotated step to one device's program (L1 to L2)", kToLocal,
                   {buildLocalPipeline});
  registerPipeline("shoal-exec", "one device's program to the rank program (L2 to L3)", kToExec,
                   {buildExecPipeline});
}

} // namespace shoal
