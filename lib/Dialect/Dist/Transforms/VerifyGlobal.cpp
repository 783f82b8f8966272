// dist-verify-global: what the partitioner may rely on in an annotated L1 program.
#include "PropagationGraph.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/MadeByPasses.h"

#include "mlir/IR/Verifier.h"

namespace shoal::dist {
#define GEN_PASS_DEF_VERIFYGLOBALPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

LogicalResult verifyNoCollectives(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    if (StringRef makers = getMakers(op); !makers.empty()) {
      op->emitOpError("is made by ") << makers << "; remove it";
      return WalkResult::interrupt();
    }
    if (!isa_and_nonnull<DistDialect>(op->getDialect()) || isa<MeshOp, ReshardOp, AccumulateOp, YieldOp>(op))
      return WalkResult::advance();
    op->emitOpError("belongs to a local program (L2); a global one names layouts by dist.reshard");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// One function with all its annotations.
class Verifier {
public:
  explicit Verifier(const PropagationGraph &graph) : graph(graph) {}

  LogicalResult verify() {
    for (const Slot &slot : graph.slots)
      if (failed(verifySlot(slot)))
        return failure();
    if (failed(verifyUpdates()) || failed(graph.verifyOpaque()))
      return failure();
    for (const Node &node : graph.nodes)
      if (!node.isChange && failed(verifyPartials(node)))
        return failure();
    WalkResult result = graph.func->walk([](ReshardOp op) {
      return failed(verifyReshard(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

private:
  LogicalResult verifySlot(const Slot &slot) const {
    if (!slot.type)
      return success();
    auto describe = [&]() -> std::string {
      if (!slot.value)
        return "function result #" + std::to_string(slot.result);
      return isa<OpResult>(slot.value) ? "result" : "argument";
    };
    if (!slot.annotation)
      return emitError(slot.loc) << describe() << " has no sharding; run dist-propagate";
    for (auto [index, dim] : llvm::enumerate(slot.annotation.getDims()))
      if (!dim.getIsClosed())
        return emitError(slot.loc) << describe() << " has an open dimension " << index << ": "
                                   << slot.annotation << "; run dist-propagate";
    // Passes build attributes that no parser has seen.
    auto fault = [&] { return emitError(slot.loc) << describe() << " is annotated " << slot.annotation << ": "; };
    if (failed(ShardingAttr::verify(fault, slot.annotation.getMesh(), slot.annotation.getDims(),
                                    slot.annotation.getUnreducedKind(), slot.annotation.getUnreducedAxes())))
      return failure();
    auto argument = dyn_cast_or_null<BlockArgument>(slot.value);
    if ((!slot.value || argument) && !slot.layout.unreduced.empty())
      return emitError(slot.loc) << describe() << " must be reduced, got: " << slot.annotation;
    return success();
  }

  /// A new value takes the buffer of the old one, so both lie alike.
  LogicalResult verifyUpdates() const {
    FunctionOpInterface func = graph.func;
    for (auto [index, argument] : llvm::enumerate(graph.updated)) {
      if (!argument)
        continue;
      ShardingAttr ofArgument = getSharding(func.getArgument(*argument));
      ShardingAttr ofResult = getResultSharding(func, index);
      if (!ofResult)
        return nn::emitResultError(func, index) << "updates argument \"" << nn::getArgName(func, *argument)
                                                << "\" and has no sharding; run dist-propagate";
      if (!ofArgument || !ofArgument.sameLayout(ofResult))
        return nn::emitResultError(func, index) << "updates argument \"" << nn::getArgName(func, *argument)
                                                << "\" and must have its sharding " << ofArgument
                                                << ", got: " << ofResult;
    }
    return success();
  }

  /// Results are partial only where a sharded reduction or a linear op makes them so. Whether
  /// operands or results have the first word is the partitioner's choice, so either will do.
  LogicalResult verifyPartials(const Node &node) const {
    for (auto [index, slotIndex] : llvm::enumerate(node.results)) {
      const Slot &slot = graph.slots[slotIndex];
      for (unsigned axis : slot.layout.unreduced)
        if (!makesPartial(node, index, axis, Lead::Operands) &&
            !makesPartial(node, index, axis, Lead::Results)) {
          InFlightDiagnostic diag =
              node.op->emitOpError("result #")
              << index << " is annotated " << graph.toSharding(slot.layout)
              << ", but the op makes no such partial value: it neither reduces a dimension sharded "
                 "over that axis nor is linear in its partial operands; reduce them first";
          for (unsigned operand : node.operands)
            if (!graph.slots[operand].layout.unreduced.empty())
              diag.attachNote(graph.slots[operand].loc)
                  << "this operand is partial: " << graph.toSharding(graph.slots[operand].layout);
          return diag;
        }
    }
    return success();
  }

  bool makesPartial(const Node &node, unsigned result, unsigned axis, Lead lead) const {
    const Layout &wanted = graph.slots[node.results[result]].layout;
    SmallVector<Layout> operands = graph.layoutsOf(node.operands);
    for (Layout &layout : operands)
      llvm::erase_if(layout.unreduced,
                     [&](unsigned other) { return !llvm::is_contained(wanted.unreduced, other); });
    Layout made =
        graph.shard(node, operands, graph.layoutsOf(node.results), true, lead).results[result];
    return made.kind == wanted.kind && llvm::is_contained(made.unreduced, axis);
  }

  static LogicalResult verifyReshard(ReshardOp op) {
    ShardingAttr from = getSharding(op.getInput()), to = op.getSharding();
    if (ShardingAttr annotated = getSharding(op.getResult()); !to.sameLayout(annotated))
      return op.emitOpError("result is annotated ") << annotated << ", the op reshards to " << to;
    for (StringAttr axis : to.getUnreducedAxes())
      if (!from || !llvm::is_contained(from.getUnreducedAxes(), axis) ||
          from.getUnreducedKind() != to.getUnreducedKind())
        return op.emitOpError("cannot make a value partial: its input lies as ")
               << from << ", wanted: " << to;
    return success();
  }

  const PropagationGraph &graph;
};

struct VerifyGlobalPass : dist::impl::VerifyGlobalPassBase<VerifyGlobalPass> {
  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(mlir::verify(getOperation())))
      return signalPassFailure();
    if (failed(verifyNoCollectives(getOperation())))
      return signalPassFailure();
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      if (!func.isExternal() && failed(verifyRecompute(func)))
        return signalPassFailure();
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return; // one device: there is nothing to annotate
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal())
        continue;
      auto graph = PropagationGraph::build(func, mesh);
      if (failed(graph) || failed(Verifier(*graph).verify()))
        return signalPassFailure();
    }
  }
};

} // namespace
