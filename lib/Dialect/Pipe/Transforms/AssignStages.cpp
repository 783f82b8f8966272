// pipe-assign-stages: which stage of the pipeline computes an op of the forward pass. Where the file does not say it,
// consecutive layers are cut such that the slowest stage is as fast as it can be.
#include "ScheduleFile.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Interfaces/BatchDims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

/// What is cut is between units: a layer, or an op that is in none.
struct Unit {
  SmallVector<Operation *> ops;
  double cost = 0;
};

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
  Assigner(func::FuncOp func, int64_t stages) : func(func), stages(stages) {}

  LogicalResult run() {
    findStaged();
    if (staged.empty())
      return emitError(func.getLoc()) << "a pipeline of " << stages << " stages needs ops that compute with a parameter and an "
                              << "input, got: none";
    bool isExplicit = llvm::any_of(staged, [](Operation *op) { return op->hasAttr(PipeDialect::kStageAttr); });
    return isExplicit ? fillBoundaries() : LogicalResult(success(succeeded(findStatistics()) && succeeded(cutByCost())));
  }

private:
  void findStaged();
  LogicalResult findStatistics();
  LogicalResult fillBoundaries();
  LogicalResult cutByCost();
  void set(Operation *op, int64_t stage) {
    op->setAttr(PipeDialect::kStageAttr, IntegerAttr::get(IntegerType::get(op->getContext(), 64), stage));
  }

  func::FuncOp func;
  int64_t stages;
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

/// An op that says its stage begins it: what follows in the file is in it, too. Evaluation has the stages of its training,
/// of which some may compute nothing here.
LogicalResult Assigner::fillBoundaries() {
  bool isEvaluation = func->hasAttr(nn::kEvaluationAttr);
  DenseSet<Operation *> isStaged(staged.begin(), staged.end());
  int64_t stage = 0;
  Operation *last = nullptr;
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (auto said = op.getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr)) {
      if (said.getInt() < stage || (said.getInt() > stage + 1 && !isEvaluation)) {
        auto diag = op.emitError() << "stages must follow each other in the order of the program: behind stage " << stage
                                   << " comes stage " << stage << " or " << stage + 1 << ", got: " << said.getInt();
        if (last)
          diag.attachNote(last->getLoc()) << "stage " << stage << " begins here";
        return diag;
      }
      if (said.getInt() > stage)
        last = &op;
      stage = said.getInt();
      op.removeAttr(PipeDialect::kStageAttr);
    }
    if (isStaged.contains(&op))
      set(&op, stage);
  }
  if (stage + 1 != stages && !isEvaluation)
    return emitError(func.getLoc()) << "the file must name as many stages as the pipeline has, " << stages
                            << " (ranks along \"pipe\" times chunks), got: " << stage + 1;
  return success();
}

/// What is made of all rows and read by rows, as the mean of a batch, or becomes a buffer's new value. Between it and its
/// readers is no cut: evaluation reads the buffer instead, where the rows are.
LogicalResult Assigner::findStatistics() {
  FailureOr<int64_t> rows = nn::getBatchRows(func);
  if (failed(rows))
    return failure();
  BatchDims dims(*rows);
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

/// A proxy of time: operations of products, and bytes that are read and written at so many operations each. Backward is
/// twice as much as forward everywhere, so it changes nothing.
static double costOf(Operation *op) {
  constexpr double kFlopsPerByte = 8; // of one core, and of one GPU in f32, within a factor of two
  double bytes = 0;
  auto add = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += double(tensor.getNumElements()) * std::max(1u, tensor.getElementTypeBitWidth() / 8);
  };
  llvm::for_each(op->getOperandTypes(), add);
  llvm::for_each(op->getResultTypes(), add);
  auto rule = dyn_cast<ShardingRuleOpInterface>(op);
  return (rule ? rule.getFlops() : 0) + kFlopsPerByte * bytes;
}

/// The fewest cost of the slowest of `stages` runs of consecutive units: dynamic programming over (stages, units).
LogicalResult Assigner::cutByCost() {
  SmallVector<Unit> units;
  Attribute layer;
  Operation *until = nullptr; // with which an op is one unit
  for (Operation *op : staged) {
    Attribute own = op->getAttr(nn::NNDialect::kLayerAttr);
    bool isInside = until && !until->isBeforeInBlock(op);
    if (units.empty() || ((!own || own != layer) && !isInside))
      units.emplace_back();
    layer = own;
    if (statistics.contains(op))
      for (Operation *user : op->getUsers())
        if (!user->hasTrait<OpTrait::IsTerminator>() && (!until || until->isBeforeInBlock(user)))
          until = user;
    units.back().ops.push_back(op);
    units.back().cost += costOf(op);
  }
  int64_t count = units.size();
  if (count < stages)
    return emitError(func.getLoc()) << "a pipeline needs a layer or an op outside of layers for each of its " << stages
                            << " stages (ranks along \"pipe\" times chunks), got: " << count
                            << "; take fewer ranks or chunks";
  SmallVector<double> sum(count + 1, 0);
  for (int64_t i = 0; i < count; ++i)
    sum[i + 1] = sum[i] + units[i].cost;
  // best[s][i]: of the first i units in s stages; cut[s][i]: where the last of them begins.
  std::vector<std::vector<double>> best(stages + 1, std::vector<double>(count + 1, HUGE_VAL));
  std::vector<std::vector<int64_t>> cut(stages + 1, std::vector<int64_t>(count + 1, 0));
  best[0][0] = 0;
  for (int64_t s = 1; s <= stages; ++s)
    for (int64_t i = s; i <= count - (stages - s); ++i) {
      // The slowest falls with a later begin in the last stage and rises in those before: where both meet is best.
      int64_t low = s - 1, high = i - 1;
      while (low < high) {
        int64_t middle = (low + high) / 2;
        if (best[s - 1][middle] < sum[i] - sum[middle])
          low = middle + 1;
        else
          high = middle;
      }
      for (int64_t begin : {low - 1, low})
        if (begin >= s - 1)
          if (double slowest = std::max(best[s - 1][begin], sum[i] - sum[begin]); slowest < best[s][i]) {
            best[s][i] = slowest;
            cut[s][i] = begin;
          }
    }
  int64_t end = count;
  for (int64_t s = stages; s > 0; --s) {
    int64_t begin = cut[s][end];
    for (int64_t i = begin; i < end; ++i)
      for (Operation *op : units[i].ops)
        set(op, s - 1);
    end = begin;
  }
  return success();
}

namespace {

struct AssignStagesPass : impl::AssignStagesPassBase<AssignStagesPass> {
  using AssignStagesPassBase::AssignStagesPassBase;

  void runOnOperation() override {
    dist::MeshOp mesh = dist::lookupMesh(getOperation());
    StringAttr axis = mesh ? dist::getPipeAxis(mesh.getMesh()) : StringAttr();
    int64_t ranks = axis ? *mesh.getMesh().getAxisSize(axis) : 1;
    if (chunks < 1) {
      getOperation().emitError() << "chunks must be at least 1, got: " << chunks.getValue();
      return signalPassFailure();
    }
    int64_t perRank = chunks;
    if (ranks > 1 && !file.empty()) {
      FailureOr<Schedule> schedule = readScheduleFile(&getContext(), file);
      if (failed(schedule))
        return signalPassFailure();
      perRank = schedule->shape.chunks;
    }
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !nn::hasBatchedInput(func))
        continue;
      // Boundaries say nothing of a program that is not cut.
      if (ranks == 1)
        func.walk([](Operation *op) { op->removeAttr(PipeDialect::kStageAttr); });
      else if (failed(Assigner(func, ranks * perRank).run()))
        return signalPassFailure();
    }
  }
};

} // namespace

} // namespace shoal::pipe
