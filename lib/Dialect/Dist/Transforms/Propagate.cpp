// dist-propagate: from annotations on few values to a closed sharding on every value. Shardy's
// algorithm is the model: dimensions are projected to the factors of each op, and open dimensions
// take the axes that their factors have elsewhere, to a fixpoint. What is partial is settled
// afterwards, when dimensions are known.
#include "PartialCut.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"

namespace shoal::dist {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

class Propagation {
public:
  explicit Propagation(PropagationGraph &graph)
      : graph(graph), readReduced(graph.slots.size(), llvm::BitVector(graph.axisSizes.size())) {}

  LogicalResult run() {
    propagateDims();
    settlePartials();
    if (failed(graph.verifyOpaque()))
      return failure();
    reportConflicts();
    return success();
  }

private:
  // Dimensions.

  void propagateDims() {
    int64_t last = 0;
    for (const Slot &slot : graph.slots)
      for (auto [axes, priority] : llvm::zip_equal(slot.layout.dims, slot.priority))
        last = std::max(last, axes.empty() ? 0 : priority);
    // Only priorities that occur: p0 and p1000000 are two rounds.
    for (int64_t priority = 0;; priority = nextPriority(priority)) {
      bool changed = true;
      while (changed) {
        while (sweepForward(priority)) {
        }
        changed = sweepBackward(priority);
      }
      if (priority >= last)
        return;
    }
  }

  int64_t nextPriority(int64_t after) const {
    int64_t next = PropagationGraph::kAllPriorities;
    for (const Slot &slot : graph.slots)
      for (int64_t priority : slot.priority)
        if (priority > after)
          next = std::min(next, priority);
    return next;
  }

  bool sweepForward(int64_t priority) {
    bool changed = false;
    for (const Node &node : graph.nodes)
      changed |= visit(node, priority, /*toOperands=*/false);
    return changed;
  }

  bool sweepBackward(int64_t priority) {
    bool changed = false;
    for (const Node &node : llvm::reverse(graph.nodes))
      changed |= visit(node, priority, /*toOperands=*/true);
    return changed;
  }

  bool visit(const Node &node, int64_t priority, bool toOperands) {
    OpSharding sharding = graph.shard(node, graph.layoutsOf(node.operands, priority),
                                      graph.layoutsOf(node.results, priority),
                                      /*keepPartial=*/false);
    bool changed = false;
    for (auto [slot, layout] : llvm::zip_equal(node.results, sharding.results))
      changed |= extend(node, slot, layout, priority);
    if (toOperands)
      for (auto [slot, layout] : llvm::zip_equal(node.operands, sharding.operands))
        changed |= extend(node, slot, layout, priority);
    return changed;
  }

  /// Appends axes at the minor end of open dimensions, as long as the tensor does not use them.
  bool extend(const Node &node, unsigned index, const Layout &wanted, int64_t priority) {
    Slot &slot = graph.slots[index];
    bool changed = false;
    for (int64_t d = 0; d < slot.rank(); ++d) {
      Axes &axes = slot.layout.dims[d];
      ArrayRef<unsigned> more = wanted.dims[d];
      if (slot.closed[d] || slot.priority[d] > priority || more.size() <= axes.size() ||
          more.take_front(axes.size()) != ArrayRef<unsigned>(axes))
        continue;
      for (unsigned axis : more.drop_front(axes.size())) {
        bool isBehindBatch =
            graph.isOfSequence[axis] && llvm::any_of(axes, [&](unsigned other) { return graph.isOfBatch[other]; });
        if (slot.layout.uses(axis) || isBehindBatch)
          break;
        axes.push_back(axis);
        graph.passCause(node, index, axis);
        changed = true;
      }
    }
    return changed;
  }

  // Partial values.

  /// Lets values stay partial through linear ops, up to the cheapest places to reduce them: there all users of a
  /// value read it reduced, so that it is reduced once.
  void settlePartials() {
    spreadPartials();
    std::vector<OpSharding> shardings;
    for (const Node &node : graph.nodes)
      shardings.push_back(node.isChange ? OpSharding() : shardWithPartials(node));
    PartialCut cut = findPartialCut(graph, shardings);
    readReduced = std::move(cut.reduced);
    do
      spreadPartials();
    while (addReadReduced());
    graph.settleCauses([&](unsigned slot, unsigned axis) { return !readReduced[slot].test(axis); });
    for (auto [slot, axes] : llvm::zip_equal(graph.slots, cut.reducedWhereMade))
      if (!slot.isExact)
        llvm::erase_if(slot.layout.unreduced, [&axes = axes](unsigned axis) { return axes.test(axis); });
  }

  /// In program order, what each op leaves partial.
  void spreadPartials() {
    for (const Node &node : graph.nodes) {
      if (node.isChange)
        continue;
      OpSharding sharding = shardWithPartials(node);
      for (auto [index, result] : llvm::enumerate(sharding.results)) {
        Slot &slot = graph.slots[node.results[index]];
        if (slot.isExact)
          continue;
        slot.layout.unreduced.clear();
        for (unsigned axis : result.unreduced)
          if (!slot.layout.shards(axis))
            slot.layout.unreduced.push_back(axis);
        slot.layout.kind = result.kind;
      }
    }
  }

  /// Where some op needs a value reduced, all do; false when that is so already.
  bool addReadReduced() {
    bool changed = false;
    for (const Node &node : graph.nodes) {
      if (node.isChange)
        continue;
      OpSharding sharding = shardWithPartials(node);
      for (auto [slot, layout] : llvm::zip_equal(node.operands, sharding.operands))
        for (unsigned axis : graph.slots[slot].layout.unreduced)
          if (!llvm::is_contained(layout.unreduced, axis) && !readReduced[slot].test(axis)) {
            readReduced[slot].set(axis);
            changed = true;
          }
    }
    return changed;
  }

  /// How the op computes, with operands partial only where they may be read so.
  OpSharding shardWithPartials(const Node &node, Lead lead = Lead::Operands) const {
    SmallVector<Layout> operands = graph.layoutsOf(node.operands);
    for (auto [slot, layout] : llvm::zip_equal(node.operands, operands))
      llvm::erase_if(layout.unreduced, [&](unsigned axis) {
        return readReduced[slot].test(axis) || !mayPass(node, axis);
      });
    return graph.shard(node, operands, graph.layoutsOf(node.results), /*keepPartial=*/true, lead);
  }

  /// Whether the results may be partial over the axis because operands are.
  bool mayPass(const Node &node, unsigned axis) const {
    return llvm::all_of(node.results, [&](unsigned index) {
      const Slot &slot = graph.slots[index];
      return !slot.layout.shards(axis) &&
             (!slot.isExact || llvm::is_contained(slot.layout.unreduced, axis));
    });
  }

  // Diagnostics.

  /// A remark for every operand that an op reads in another layout, and every result that it makes
  /// in another layout, than the value has. Partial values that are reduced are no conflict.
  void reportConflicts() const {
    for (const Node &node : graph.nodes) {
      if (node.isChange)
        continue;
      OpSharding ofOperands = shardWithPartials(node);
      OpSharding ofResults = shardWithPartials(node, Lead::Results);
      bool resultsMove = conflictBytes(node, ofOperands) < conflictBytes(node, ofResults);
      report(node, resultsMove ? ofOperands : ofResults);
    }
  }

  /// Calls `visit` with each slot of the op that lies otherwise than the op wants it.
  void forEachConflict(
      const Node &node, const OpSharding &sharding,
      function_ref<void(StringRef, unsigned, const Slot &, const Layout &)> visit) const {
    auto visitAll = [&](StringRef what, ArrayRef<unsigned> slots, ArrayRef<Layout> layouts) {
      for (auto [index, slot, layout] : llvm::enumerate(slots, layouts)) {
        // A partial value that is scattered where it is reduced is no conflict either.
        Layout reduced = graph.slots[slot].layout;
        for (Axes &axes : reduced.dims)
          llvm::erase_if(axes, [&made = layout.unreduced](unsigned axis) {
            return llvm::is_contained(made, axis);
          });
        if (!graph.sameDims(graph.slots[slot].layout, layout) && !graph.sameDims(reduced, layout) &&
            !isWanted(node, graph.slots[slot], layout))
          visit(what, index, graph.slots[slot], layout);
      }
    };
    visitAll("reads operand", node.operands, sharding.operands);
    visitAll("makes result", node.results, sharding.results);
  }

  /// Whether only axes that strategies placed lie otherwise: they know, and the collectives' reasons tell.
  bool isWanted(const Node &node, const Slot &slot, const Layout &layout) const {
    auto byStrategy = [&](unsigned axis) {
      Attribute causes = slot.causes[axis];
      for (ArrayRef<unsigned> indices : {ArrayRef(node.operands), ArrayRef(node.results)})
        for (unsigned index : indices)
          causes = causes ? causes : graph.slots[index].causes[axis];
      return causes && llvm::all_of(listCauses(causes), [](CauseAttr cause) { return bool(cause.getStrategy()); });
    };
    return llvm::all_of(llvm::zip_equal(slot.layout.dims, layout.dims), [&](auto dim) {
      const auto &[has, wants] = dim;
      return has == wants || (llvm::all_of(has, byStrategy) && llvm::all_of(wants, byStrategy));
    });
  }

  int64_t conflictBytes(const Node &node, const OpSharding &sharding) const {
    int64_t bytes = 0;
    forEachConflict(node, sharding, [&](StringRef, unsigned, const Slot &slot, const Layout &) {
      bytes += slot.bytes();
    });
    return bytes;
  }

  void report(const Node &node, const OpSharding &sharding) const {
    forEachConflict(node, sharding,
                    [&](StringRef what, unsigned index, const Slot &slot, const Layout &layout) {
                      InFlightDiagnostic diag =
                          emitRemark(node.op->getLoc())
                          << "'" << node.op->getName() << "' " << what << " #" << index << " as "
                          << graph.toSharding(withoutPartials(layout)) << ": it will be resharded";
                      diag.attachNote(slot.loc)
                          << "the value lies as " << graph.toSharding(withoutPartials(slot.layout));
                    });
  }

  static Layout withoutPartials(Layout layout) {
    layout.unreduced.clear();
    return layout;
  }

  PropagationGraph &graph;
  /// The partial axes that every user reads reduced.
  AxisSets readReduced;
};

struct PropagatePass : dist::impl::PropagatePassBase<PropagatePass> {
  void runOnOperation() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return; // one device
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal())
        continue;
      auto graph = PropagationGraph::build(func, mesh);
      if (failed(graph) || failed(Propagation(*graph).run()))
        return signalPassFailure();
      graph->annotate();
    }
  }
};

} // namespace
