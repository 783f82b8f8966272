// dist-verify-local: what holds of an L2 program when nothing is left to partition. Partial values
// are followed from the tags of the partitioner: what a tag calls partial must be reduced once
// before an op that is not linear in it.
#include "VerifyLocal.h"

#include "FactorSharding.h"
#include "FoldControlFlow.h"

#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Means.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::dist {
#define GEN_PASS_DEF_VERIFYLOCALPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

/// What is known of a value: the axes over which it is certainly partial, and whether it may be so
/// over others (an op without a tag that reduces).
struct Partial {
  Axes axes;
  ReduceKind kind = ReduceKind::Sum;
  bool mayBeMore = false;
};

LogicalResult verifyPartitioned(Operation *op, Attribute attr) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(attr);
  if (!sharding)
    return success();
  for (DimShardingAttr dim : sharding.getDims())
    for (StringAttr axis : dim.getAxes())
      return op->emitOpError("still has a sharding over ")
             << axis << ": " << sharding << "; run dist-partition over that axis";
  for (StringAttr axis : sharding.getUnreducedAxes())
    return op->emitOpError("still has a value partial over ")
           << axis << ": " << sharding << "; run dist-partition over that axis";
  return success();
}

} // namespace

LogicalResult shoal::dist::verifyNothingLeft(Operation *op) {
  if (isa<ReshardOp>(op))
    return op->emitOpError("belongs to a global program (L1); run dist-partition");
  if (auto random = dyn_cast<nn::RandomOpInterface>(op); random && !random.isSeeded())
    return op->emitOpError("has no seed and step to draw from; run nn-seed on the global program");
  if (failed(nn::verifyNoMean(op)))
    return failure();
  if (op->hasAttr(DistDialect::kWhyAttr))
    return op->emitOpError("still records why its values are sharded, in dist.why; run dist-partition over all axes");
  for (StringRef name : {DistDialect::kShardingsAttr, DistDialect::kArgShardingsAttr})
    if (auto shardings = op->getAttrOfType<ArrayAttr>(name))
      for (Attribute sharding : shardings)
        if (failed(verifyPartitioned(op, sharding)))
          return failure();
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return success();
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (failed(verifyPartitioned(op, func.getArgAttr(i, DistDialect::kShardingAttr))))
      return failure();
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (failed(verifyPartitioned(op, func.getResultAttr(i, DistDialect::kShardingAttr))))
      return failure();
  return success();
}

namespace {

LogicalResult verifyReason(CollectiveOpInterface op) {
  Attribute reason = op.getReasonAttr();
  if (auto words = dyn_cast_or_null<StringAttr>(reason); !reason || (words && words.empty()))
    return op->emitOpError("must say its reason: the op and the annotation that caused it");
  if (auto made = dyn_cast<ReasonAttr>(reason); made && made.getCauses().empty())
    return op->emitOpError("must name the annotation that caused it, got: ") << reason;
  return success();
}

/// Collectives that only some positions run, as the program says itself.
LogicalResult verifyGroups(FunctionOpInterface func, MeshAttr mesh) {
  WalkResult walked = func->walk([&](CollectiveOpInterface op) {
    return failed(verifyWholeGroups(op, mesh, getPositions(op, mesh))) ? WalkResult::interrupt()
                                                                        : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

/// Control flow must be known for every position: the function as the straight line that it is then; none where it is
/// one already.
FailureOr<OwningOpRef<func::FuncOp>> foldCopy(FunctionOpInterface function, MeshAttr mesh) {
  auto func = dyn_cast<func::FuncOp>(*function);
  if (!func || !func.getBody().hasOneBlock() || !hasControlFlow(func))
    return OwningOpRef<func::FuncOp>();
  OwningOpRef<func::FuncOp> copy = func.clone();
  if (failed(foldControlFlow(*copy, mesh, kMaxUnrolledOps)))
    return failure();
  return copy;
}

class PartialVerifier {
public:
  explicit PartialVerifier(MeshAttr mesh) : mesh(mesh) {
    for (MeshAxisAttr axis : mesh.getAxes())
      axisSizes.push_back(axis.getSize());
  }

  LogicalResult verify(FunctionOpInterface func) {
    for (BlockArgument argument : func.getArguments())
      known[argument] = fromArgument(
          func.getArgAttrOfType<GlobalAttr>(argument.getArgNumber(), DistDialect::kGlobalAttr));
    for (Block &block : func.getFunctionBody()) {
      if (failed(verify(block)))
        return failure();
      Operation *end = block.getTerminator();
      for (OpOperand &operand : end->getOpOperands()) {
        GlobalAttr tag = operand.getOperandNumber() < func.getNumResults()
                             ? func.getResultAttrOfType<GlobalAttr>(operand.getOperandNumber(),
                                                                    DistDialect::kGlobalAttr)
                             : nullptr;
        Axes allowed = fromTag(tag).axes;
        for (unsigned axis : known[operand.get()].axes)
          if (!llvm::is_contained(allowed, axis))
            return emitUnreduced(end, operand.get(), axis) << "; function results are reduced";
      }
    }
    return success();
  }

private:
  LogicalResult verify(Block &block) {
    for (Operation &op : block.without_terminator())
      if (failed(verify(op)))
        return failure();
    return success();
  }

  LogicalResult verify(Operation &op) {
    if (auto accumulate = dyn_cast<AccumulateOp>(op))
      return verifyAccumulate(accumulate);
    SmallVector<Partial> results(op.getNumResults());
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (collective && collective.getReduction()) {
      if (failed(verifyReduction(collective, results.front())))
        return failure();
    } else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op)) {
      if (failed(verifyRuled(op, ruled.getShardingRule(), results)))
        return failure();
    } else {
      for (Value operand : op.getOperands())
        for (unsigned axis : known[operand].axes)
          return emitUnreduced(&op, operand, axis) << "; the op has no sharding rule";
      for (Partial &result : results)
        result.mayBeMore = true;
    }
    return settle(op, results);
  }

  /// The operand must be partial over what is reduced, and no longer is.
  LogicalResult verifyReduction(CollectiveOpInterface op, Partial &result) {
    Partial operand = known[op->getOperand(0)];
    ReduceKind kind = fromAttrEnum(*op.getReduction());
    Axes reduced = toAxes(op.getAxesAttr().getAxes());
    for (unsigned axis : reduced) {
      bool isPartial = llvm::is_contained(operand.axes, axis) && operand.kind == kind;
      if (!isPartial && !operand.mayBeMore && axisSizes[axis] > 1)
        return op->emitOpError("reduces over ")
               << name(axis) << ", over which its operand is no partial "
               << stringifyReduceKindAttrEnum(toAttrEnum(kind)) << ": it would count twice";
    }
    result = operand;
    llvm::erase_if(result.axes, [&](unsigned axis) { return llvm::is_contained(reduced, axis); });
    return success();
  }

  LogicalResult verifyRuled(Operation &op, const ShardingRule &rule,
                            SmallVectorImpl<Partial> &results) {
    SmallVector<Layout> layouts;
    bool mayBeMore = llvm::any_of(
        rule.factors, [](const Factor &factor) { return factor.kind == FactorKind::Reduction; });
    for (auto [operand, tensor] : llvm::zip_equal(op.getOperands(), rule.operands)) {
      const Partial &partial = known[operand];
      Layout &layout = layouts.emplace_back();
      layout.dims.resize(tensor.size());
      layout.unreduced = partial.axes;
      layout.kind = partial.kind;
      mayBeMore |= partial.mayBeMore;
    }
    assumePartial(op, rule, layouts);
    SmallVector<const Layout *> operands;
    for (const Layout &layout : layouts)
      operands.push_back(&layout);
    SmallVector<int64_t> bytes(operands.size(), 0);
    SmallVector<const Layout *> wishes(op.getNumResults(), nullptr);
    OpSharding sharding =
        shardOp(rule, axisSizes, operands, bytes, wishes, Lead::Operands, /*keepPartial=*/true);
    for (auto [operand, before, read] :
         llvm::zip_equal(op.getOperands(), layouts, sharding.operands))
      for (unsigned axis : before.unreduced)
        if (!llvm::is_contained(read.unreduced, axis) && axisSizes[axis] > 1)
          return emitUnreduced(&op, operand, axis) << "; the op is not linear in it";
    for (auto [result, layout] : llvm::zip_equal(results, sharding.results))
      result = {layout.unreduced, layout.kind, mayBeMore};
    return success();
  }

  /// What may be partial, and is added to what certainly is, is taken to be so too: of a sum that no tag describes, as that
  /// of the squares of a bucket, nothing else tells.
  void assumePartial(Operation &op, const ShardingRule &rule, SmallVectorImpl<Layout> &layouts) {
    for (const auto &group : rule.linear) {
      // The few that differ: a bucket has many operands.
      SmallVector<Partial, 1> all;
      for (unsigned other : group) {
        const Partial &theirs = known[op.getOperand(other)];
        auto isSame = [&](const Partial &seen) { return seen.kind == theirs.kind && seen.axes == theirs.axes; };
        if (!theirs.axes.empty() && llvm::none_of(all, isSame))
          all.push_back(theirs);
      }
      for (unsigned mine : group) {
        if (!known[op.getOperand(mine)].mayBeMore)
          continue;
        Layout &layout = layouts[mine];
        for (const Partial &theirs : all) {
          if (!layout.unreduced.empty() && layout.kind != theirs.kind)
            continue;
          for (unsigned axis : theirs.axes)
            if (!llvm::is_contained(layout.unreduced, axis))
              layout.unreduced.push_back(axis);
          layout.kind = theirs.kind;
        }
      }
    }
  }

  LogicalResult verifyAccumulate(AccumulateOp op) {
    for (auto [input, argument] : llvm::zip(op.getInputs(), op.getBody().getArguments())) {
      Partial outer = known[input]; // a copy: the map grows
      known[argument] = std::move(outer);
    }
    Block &body = op.getBody().front();
    if (failed(verify(body)))
      return failure();
    SmallVector<Partial> results;
    for (Value value : body.getTerminator()->getOperands()) {
      const Partial &yielded = known[value];
      // A sum over micro-batches of maxima over parts is no maximum over the whole.
      if (op.getMicrobatches() > 1 && yielded.kind != ReduceKind::Sum)
        for (unsigned axis : yielded.axes)
          if (axisSizes[axis] > 1)
            return emitUnreduced(body.getTerminator(), value, axis)
                   << "; micro-batches are summed, which only partial sums pass";
      results.push_back(yielded);
    }
    return settle(*op, results);
  }

  /// Records what is known of the results. A tag is exact, and must not deny what operands make.
  LogicalResult settle(Operation &op, ArrayRef<Partial> made) {
    auto tags = op.getAttrOfType<ArrayAttr>(DistDialect::kGlobalsAttr);
    for (auto [result, partial] : llvm::zip_equal(op.getResults(), made)) {
      known[result] = partial;
      if (!tags)
        continue;
      auto tag = cast<GlobalAttr>(tags[result.getResultNumber()]);
      known[result] = fromTag(tag);
      for (unsigned axis : partial.axes)
        if (!llvm::is_contained(known[result].axes, axis) && axisSizes[axis] > 1)
          return op.emitOpError("is tagged ")
                 << tag.getSharding() << ", but partial operands make its result partial over "
                 << name(axis) << ": a reduction is missing";
    }
    return success();
  }

  InFlightDiagnostic emitUnreduced(Operation *op, Value operand, unsigned axis) {
    InFlightDiagnostic diag = op->emitOpError("meets a value that is partial over ");
    diag.attachNote(operand.getLoc()) << "the partial value is made here";
    diag << name(axis) << ": a reduction is missing";
    return diag;
  }

  /// No argument is partial but one that says so.
  Partial fromArgument(GlobalAttr tag) { return tag ? fromTag(tag) : Partial(); }

  Partial fromTag(GlobalAttr tag) {
    Partial partial;
    if (!tag) {
      partial.mayBeMore = true;
      return partial;
    }
    partial.axes = toAxes(tag.getSharding().getUnreducedAxes());
    partial.kind = fromAttrEnum(tag.getSharding().getUnreducedKind());
    return partial;
  }

  Axes toAxes(ArrayRef<StringAttr> names) const {
    Axes axes;
    for (StringAttr axis : names)
      axes.push_back(mesh.getAxisIndex(axis));
    return axes;
  }

  StringAttr name(unsigned axis) const { return mesh.getAxes()[axis].getName(); }

  MeshAttr mesh;
  SmallVector<int64_t> axisSizes;
  llvm::DenseMap<Value, Partial> known;
};

struct VerifyLocalPass : dist::impl::VerifyLocalPassBase<VerifyLocalPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(mlir::verify(getOperation())))
      return signalPassFailure();
    WalkResult walked = getOperation()->walk([](Operation *op) {
      return failed(verifyNothingLeft(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    MeshOp mesh = lookupMesh(getOperation());
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal())
        continue;
      if (failed(verifyRecompute(func)))
        return signalPassFailure();
      if (!mesh)
        continue;
      if (failed(verifyGroups(func, mesh.getMesh())))
        return signalPassFailure();
      // What follows values follows them through branches and loops, too.
      FailureOr<OwningOpRef<func::FuncOp>> copy = foldCopy(func, mesh.getMesh());
      if (failed(copy))
        return signalPassFailure();
      FunctionOpInterface line = *copy ? FunctionOpInterface(**copy) : func;
      if (failed(verifyPerUse(line, mesh.getMesh())))
        return signalPassFailure();
      if (!isMadeByPartitioner(func))
        continue;
      WalkResult reasons = func->walk([](CollectiveOpInterface op) {
        return failed(verifyReason(op)) ? WalkResult::interrupt() : WalkResult::advance();
      });
      if (reasons.wasInterrupted() || failed(PartialVerifier(mesh.getMesh()).verify(line)))
        return signalPassFailure();
    }
  }
};

} // namespace
