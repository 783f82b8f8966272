// pipe-assign-stages: which stage of the pipeline computes an op of the forward pass. Where the file does not say it,
// consecutive layers are cut such that the slowest stage is as fast as it can be.
#include "CutStages.h"
#include "ScheduleFile.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/OpCost.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Interfaces/BatchDims.h"
#include "shoal/Schedule/Check.h"
#include "shoal/Schedule/Generate.h"
#include "shoal/Support/Elements.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

/// What values are computed from.
struct Roots {
  bool inputs = false, params = false;
  void add(Roots other) {
    inputs |= other.inputs;
    params |= other.params;
  }
};

class Assigner {
public:
  Assigner(func::FuncOp func, int64_t stages, const StageMemory &memory, int64_t lighter, bool forwardOnly)
      : func(func), stages(stages), memory(memory), lighter(lighter),
        mayLackStages(forwardOnly || func->hasAttr(nn::kEvaluationAttr)) {}

  LogicalResult run() {
    findStaged();
    if (staged.empty())
      return emitError(func.getLoc()) << "a pipeline of " << stages << " stages needs ops that compute with a parameter and an "
                              << "input, got: none";
    bool isExplicit = llvm::any_of(func.getBody().front(),
                                   [](Operation &op) { return op.hasAttr(PipeDialect::kStageAttr); });
    if (isExplicit)
      return fillBoundaries();
    return failed(findStatistics()) ? failure() : cutByCost();
  }

private:
  void findStaged();
  LogicalResult findStatistics();
  LogicalResult fillBoundaries();
  FailureOr<SmallVector<StageUnit>> makeUnits();
  void keep(StageUnit &unit, Operation *op);
  LogicalResult cutByCost();
  void set(Operation *op, int64_t stage) {
    op->setAttr(PipeDialect::kStageAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 64), stage));
  }

  func::FuncOp func;
  int64_t stages;
  StageMemory memory;
  int64_t lighter;
  bool mayLackStages;                    // of those that the file names
  SmallVector<Operation *> staged;       // in order
  DenseSet<Operation *> statistics;      // of them, what the rows of the batch or a buffer take of all rows
};

} // namespace

/// Ops that compute with an input and a parameter. What needs no parameter, as masks and positions, is computed again
/// by each stage that reads it; what needs parameters alone, as their casts, is computed where they lie.
void Assigner::findStaged() {
  DenseMap<Value, Roots> roots;
  for (BlockArgument argument : func.getArguments()) {
    nn::ArgRole role = nn::getArgRole(func, argument.getArgNumber());
    bool isParam = role == nn::ArgRole::Param || role == nn::ArgRole::Buffer;
    roots[argument] = {role == nn::ArgRole::Input, isParam};
  }
  for (Operation &op : func.getBody().front().without_terminator()) {
    Roots all;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        all.add(roots.lookup(operand));
    });
    for (Value result : op.getResults())
      roots[result] = all;
    if (all.inputs && all.params)
      staged.push_back(&op);
  }
}

/// An op that says its stage begins it: what follows in the file is in it, too. Evaluation has the stages of its
/// training, and inference those of the file, of which some may have no op here.
LogicalResult Assigner::fillBoundaries() {
  DenseSet<Operation *> isStaged(staged.begin(), staged.end());
  int64_t stage = 0;
  Operation *last = nullptr;
  SmallVector<std::pair<int64_t, Location>> empty; // stages, and where they end
  bool isEmpty = true;
  auto end = [&](int64_t next, Location loc) {
    for (int64_t i = isEmpty ? stage : stage + 1; i < next; ++i)
      empty.push_back({i, loc});
    isEmpty = true;
    stage = next;
  };
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (auto said = op.getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr)) {
      if (said.getInt() < stage || (said.getInt() > stage + 1 && !mayLackStages)) {
        auto diag = op.emitError() << "stages must follow each other in the order of the program: behind stage "
                                   << stage << " comes stage " << stage << " or " << stage + 1 << ", got: " << said.getInt();
        if (said.getInt() > stage)
          diag.attachNote(func.getLoc())
              << "an op whose results nothing needs is gone by here, and its boundary with it";
        if (last)
          diag.attachNote(last->getLoc()) << "stage " << stage << " begins here";
        return diag;
      }
      if (said.getInt() > stage) {
        end(said.getInt(), op.getLoc());
        last = &op;
      }
      op.removeAttr(PipeDialect::kStageAttr);
    }
    if (isStaged.contains(&op)) {
      set(&op, stage);
      isEmpty = false;
    }
  }
  if (stage + 1 > stages || (stage + 1 < stages && !mayLackStages))
    return emitError(func.getLoc()) << "the file must name as many stages as the pipeline has, " << stages
                            << " (ranks along \"pipe\" times chunks), got: " << stage + 1;
  end(stages, func.getLoc());
  // Legal, and wasteful. What evaluation lacks is of no weight: it has the stages of its training.
  if (!func->hasAttr(nn::kEvaluationAttr))
    for (auto [idle, loc] : empty)
      emitRemark(loc) << "stage " << idle << " of the pipeline computes nothing: no op that a result needs computes "
                      << "with a parameter and an input there; move the boundaries (pipe.stage), or take fewer ranks "
                      << "or chunks";
  return success();
}

/// What is made of all rows and read by rows, as the mean of a batch, or becomes a buffer's new value. Between it and
/// its readers is no cut: evaluation reads the buffer instead, where the rows are.
LogicalResult Assigner::findStatistics() {
  FailureOr<int64_t> rows = nn::getBatchRows(func);
  if (failed(rows))
    return failure();
  BatchDims dims(*rows, /*followsOneRow=*/true);
  DenseSet<Value> ofRows;
  for (BlockArgument argument : func.getArguments())
    if (nn::isBatchedInput(func, argument.getArgNumber()))
      dims.setInner(argument, 0, 1);
  auto isRow = [&](Value value) { return dims.isBatched(value); };
  SmallVector<Operation *> sums; // in order
  for (Operation &op : func.getBody().front().without_terminator()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    if (ruled && op.getNumRegions() == 0)
      dims.propagate(&op, ruled.getShardingRule());
    if (llvm::any_of(op.getResults(), isRow) ||
        llvm::none_of(op.getOperands(), [&](Value operand) { return isRow(operand) || ofRows.contains(operand); }))
      continue;
    ofRows.insert(op.result_begin(), op.result_end());
    sums.push_back(&op);
  }
  for (Operation *op : llvm::reverse(sums))
    for (OpOperand &use : op->getUses())
      if (Operation *user = use.getOwner();
          statistics.contains(user) || llvm::any_of(user->getResults(), isRow) ||
          (user->hasTrait<OpTrait::IsTerminator>() &&
           func.getResultAttr(use.getOperandNumber(), nn::NNDialect::kUpdatesAttr)))
        statistics.insert(op);
  return success();
}

/// The parameters that an op reads, also through casts, and what of its results the backward pass finds: all, or under
/// recomputation products alone or only what enters a layer.
void Assigner::keep(StageUnit &unit, Operation *op) {
  for (Value operand : op->getOperands()) {
    while (auto cast = operand.getDefiningOp<nn::CastOp>())
      operand = cast.getInput();
    if (auto argument = dyn_cast<BlockArgument>(operand);
        argument && nn::getArgRole(func, argument.getArgNumber()) == nn::ArgRole::Param)
      unit.parameters.insert({argument, tensorBytes(argument.getType())});
  }
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  bool isInLayer = op->hasAttr(nn::NNDialect::kLayerAttr);
  if (isInLayer && memory.recompute != "none" && !(memory.recompute == "selective" && rule && isContraction(rule.getShardingRule())))
    return;
  for (Value result : op->getResults())
    unit.kept += tensorBytes(result.getType());
}

FailureOr<SmallVector<StageUnit>> Assigner::makeUnits() {
  SmallVector<StageUnit> units;
  Attribute layer;
  Operation *until = nullptr; // with which an op is one unit
  for (Operation *op : staged) {
    Attribute own = op->getAttr(nn::NNDialect::kLayerAttr);
    bool isInside = until && !until->isBeforeInBlock(op);
    if (units.empty() || ((!own || own != layer) && !isInside)) {
      units.emplace_back();
      // What enters a layer is kept whatever is computed again.
      if (own && memory.recompute != "none" && op->getNumOperands())
        units.back().kept += tensorBytes(op->getOperand(0).getType());
    }
    layer = own;
    if (statistics.contains(op))
      for (Operation *user : op->getUsers())
        if (!user->hasTrait<OpTrait::IsTerminator>() && (!until || until->isBeforeInBlock(user)))
          until = user;
    units.back().ops.push_back(op);
    units.back().cost += dist::costOf(op); // backward is twice as much everywhere, so it changes nothing
    keep(units.back(), op);
  }
  if (int64_t(units.size()) < stages)
    return emitError(func.getLoc()) << "a pipeline needs a layer or an op outside of layers for each of its " << stages
                                    << " stages (ranks along \"pipe\" times chunks), got: " << units.size()
                                    << "; take fewer ranks or chunks";
  return units;
}

/// The cut whose slowest stage costs the least, or as often as a lighter one is asked for, that of those that hold fewer
/// bytes than the last.
LogicalResult Assigner::cutByCost() {
  FailureOr<SmallVector<StageUnit>> units = makeUnits();
  if (failed(units))
    return failure();
  std::optional<Cut> cut = cutStages(*units, stages, memory, HUGE_VAL);
  for (int64_t i = 0; i < lighter; ++i) {
    double held = cut->held;
    cut = cutStages(*units, stages, memory, held);
    if (!cut)
      return emitError(func.getLoc()) << "no cut into " << stages << " stages holds fewer than about " << int64_t(held)
                                      << " bytes of each, asked for " << lighter << " lighter ones than the fastest";
  }
  for (int64_t stage = 0; stage < stages; ++stage) {
    int64_t end = stage + 1 < stages ? cut->begins[stage + 1] : int64_t(units->size());
    for (int64_t i = cut->begins[stage]; i < end; ++i)
      for (Operation *op : (*units)[i].ops)
        set(op, stage);
  }
  return success();
}

namespace {

struct AssignStagesPass : impl::AssignStagesPassBase<AssignStagesPass> {
  using AssignStagesPassBase::AssignStagesPassBase;

  void runOnOperation() override {
    dist::MeshOp mesh = dist::lookupMesh(getOperation());
    int64_t ranks = dist::getPipeRanks(getOperation());
    if (chunks < 1) {
      getOperation().emitError() << "chunks must be at least 1, got: " << chunks.getValue();
      return signalPassFailure();
    }
    StageMemory memory;
    int64_t stages = ranks * chunks;
    if (ranks > 1 && (!file.empty() || lighter > 0)) {
      FailureOr<Schedule> order = findSchedule(ranks);
      if (failed(order))
        return signalPassFailure();
      stages = order->shape.getStages();
      memory = getMemory(mesh.getMesh(), *order);
    }
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !nn::hasBatchedInput(func))
        continue;
      // Boundaries say nothing of a program that is not cut.
      if (ranks == 1)
        func.walk([](Operation *op) { op->removeAttr(PipeDialect::kStageAttr); });
      else if (failed(Assigner(func, stages, memory, lighter, forwardOnly).run()))
        return signalPassFailure();
    }
  }

private:
  FailureOr<Schedule> findSchedule(int64_t ranks) {
    if (!file.empty())
      return readScheduleFile(&getContext(), file, fileText, Shape{ranks, microbatches, /*chunks=*/0});
    Shape shape{ranks, microbatches == 0 ? 1 : microbatches, chunks};
    std::string error = findFault(shape);
    std::optional<Schedule> made;
    if (error.empty())
      made = generate(schedule, shape, {}, error);
    if (!made)
      return emitError(getOperation().getLoc()) << error;
    return *made;
  }

  /// Of a stage under the plan.
  StageMemory getMemory(dist::MeshAttr mesh, const Schedule &order) {
    auto sizeOf = [&](ArrayRef<std::string> names) {
      int64_t size = 1;
      for (const std::string &name : names)
        size *= mesh.getSize(dist::resolveAxis(mesh, name));
      return double(size);
    };
    // Activations lie sharded by row and by token.
    std::vector<std::string> tokenAxes = dist::getAxisNames(mesh);
    llvm::erase_if(tokenAxes, [](const std::string &name) {
      dist::AxisRole role = dist::getAxisRole(name);
      return role != dist::AxisRole::Batch && role != dist::AxisRole::Sequence;
    });
    const Shape &shape = order.shape;
    StageMemory memory;
    memory.ofParameter = (heldWhole + heldSharded / sizeOf(shardAxes)) / sizeOf(parameterAxes);
    memory.ofBatch = 1 / (sizeOf(tokenAxes) * double(shape.microbatches));
    memory.recompute = recompute;
    std::vector<int64_t> peak = measurePeak(order);
    for (int64_t stage = 0; stage < shape.getStages(); ++stage)
      memory.live.push_back(llvm::divideCeil(peak[shape.getRank(stage)], shape.chunks));
    return memory;
  }
};

} // namespace

} // namespace shoal::pipe
