// The cheapest places to reduce partial values, as a minimum cut per axis; see PartialCut.h.
//
// A value has two vertices: `made` (is it partial where it is made?) and `read` (do ops read it so?), and an edge
// between them that costs its reduction. Vertices that must be equal are one: what an op reads and what it makes of it,
// all terms of a sum. Ops that make partial values are the source, ops that read them whole the sink.
#include "PartialCut.h"

#include "DimGroups.h"

#include "llvm/ADT/IntEqClasses.h"

#include <limits>

using namespace mlir;

namespace shoal::dist {
namespace {

constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

/// Dinic's algorithm: flow along shortest ways, of all lengths in turn.
class FlowNetwork {
public:
  explicit FlowNetwork(unsigned vertices) : edgesOf(vertices) {}

  void addEdge(unsigned from, unsigned to, int64_t capacity) {
    edgesOf[from].push_back(edges.size());
    edges.push_back({to, capacity});
    edgesOf[to].push_back(edges.size());
    edges.push_back({from, 0});
  }

  /// The vertices on the sink's side of a minimum cut, as few as there can be.
  llvm::BitVector cut(unsigned source, unsigned sink) {
    while (findLevels(source, sink)) {
      next.assign(edgesOf.size(), 0);
      while (push(source, sink, kInfinite) > 0) {
      }
    }
    llvm::BitVector behind(edgesOf.size());
    SmallVector<unsigned> work{sink};
    behind.set(sink);
    while (!work.empty())
      for (unsigned edge : edgesOf[work.pop_back_val()])
        if (unsigned from = edges[edge].to; edges[edge ^ 1].capacity > 0 && !behind.test(from)) {
          behind.set(from);
          work.push_back(from);
        }
    return behind;
  }

private:
  struct Edge {
    unsigned to;
    int64_t capacity; // that is left
  };

  bool findLevels(unsigned source, unsigned sink) {
    levels.assign(edgesOf.size(), -1);
    levels[source] = 0;
    SmallVector<unsigned> queue{source};
    for (size_t head = 0; head < queue.size() && levels[sink] < 0; ++head)
      for (unsigned edge : edgesOf[queue[head]])
        if (unsigned to = edges[edge].to; edges[edge].capacity > 0 && levels[to] < 0) {
          levels[to] = levels[queue[head]] + 1;
          queue.push_back(to);
        }
    return levels[sink] >= 0;
  }

  int64_t push(unsigned from, unsigned sink, int64_t most) {
    if (from == sink)
      return most;
    for (unsigned &i = next[from]; i < edgesOf[from].size(); ++i) {
      unsigned index = edgesOf[from][i];
      auto [to, capacity] = edges[index];
      if (capacity == 0 || levels[to] != levels[from] + 1)
        continue;
      if (int64_t flow = push(to, sink, std::min(most, capacity))) {
        edges[index].capacity -= flow;
        edges[index ^ 1].capacity += flow;
        return flow;
      }
    }
    return 0;
  }

  std::vector<Edge> edges; // each beside its reverse
  std::vector<SmallVector<unsigned, 4>> edgesOf;
  std::vector<int> levels;
  std::vector<unsigned> next;
};

/// The cut for one axis.
class AxisCut {
public:
  AxisCut(const PropagationGraph &graph, ArrayRef<OpSharding> shardings, unsigned axis)
      : graph(graph), shardings(shardings), axis(axis), source(2 * graph.slots.size()), sink(source + 1),
        classes(sink + 1), readers(graph.slots.size()) {}

  void find(PartialCut &cut);

private:
  /// What ops do with a partial value.
  struct Readers {
    bool needWhole = false, needPart = false; // as it is, or a shard of it
    bool passToProduct = false;
    bool passOn = false, passLess = false; // a result that is as large as the value, or smaller
  };

  bool isPartial(unsigned slot) const { return llvm::is_contained(graph.slots[slot].layout.unreduced, axis); }
  unsigned made(unsigned slot) const { return 2 * slot; }
  unsigned read(unsigned slot) const { return 2 * slot + 1; }
  void join(unsigned a, unsigned b) { classes.join(a, b); }
  bool areJoined(unsigned a, unsigned b) const { return classes.findLeader(a) == classes.findLeader(b); }

  void addReaders(const Node &node, const OpSharding &sharding);
  void addNode(const Node &node, const OpSharding &sharding);
  int64_t weigh(unsigned slot) const;

  const PropagationGraph &graph;
  ArrayRef<OpSharding> shardings;
  unsigned axis, source, sink;
  llvm::IntEqClasses classes;
  std::vector<Readers> readers;
  SmallVector<std::pair<unsigned, bool>> changes; // slots that a dist.reshard reads, and whether it scatters them
};

/// Bytes that a device holds of a value in a step: in a micro-batch region as often as this runs.
int64_t AxisCut::weigh(unsigned index) const {
  const Slot &slot = graph.slots[index];
  int64_t bytes = slot.bytes();
  for (const Axes &axes : slot.layout.dims)
    bytes /= groupSize(axes, graph.axisSizes);
  Value value = slot.value;
  Operation *parent = value ? value.getParentRegion()->getParentOp() : nullptr;
  if (auto accumulate = dyn_cast_or_null<AccumulateOp>(parent))
    bytes *= accumulate.getMicrobatches();
  return std::max<int64_t>(bytes, 1);
}

void AxisCut::addReaders(const Node &node, const OpSharding &sharding) {
  if (node.isChange) {
    if (unsigned from = node.operands.front(); isPartial(from))
      changes.push_back({from, graph.slots[node.results.front()].layout.shards(axis)});
    return;
  }
  int64_t passed = 0;
  for (unsigned result : node.results)
    passed += isPartial(result) ? weigh(result) : 0;
  for (auto [slot, layout] : llvm::zip_equal(node.operands, sharding.operands)) {
    if (!isPartial(slot))
      continue;
    Readers &here = readers[slot];
    if (!llvm::is_contained(layout.unreduced, axis)) {
      join(read(slot), sink);
      (layout.shards(axis) ? here.needPart : here.needWhole) = true;
      continue;
    }
    here.passToProduct |= isContraction(node.rule);
    (passed < weigh(slot) ? here.passLess : here.passOn) = true;
  }
}

void AxisCut::addNode(const Node &node, const OpSharding &sharding) {
  if (node.isChange)
    return;
  SmallVector<unsigned> passed;
  for (auto [slot, layout] : llvm::zip_equal(node.operands, sharding.operands))
    if (llvm::is_contained(layout.unreduced, axis) && isPartial(slot))
      passed.push_back(slot);
  for (unsigned slot : llvm::drop_begin(passed, passed.empty() ? 0 : 1))
    join(read(slot), read(passed.front()));
  for (unsigned result : node.results) {
    if (!isPartial(result))
      continue;
    // What an annotation wants partial stays so, unless that cannot be.
    bool isWanted = graph.slots[result].isExact;
    if (passed.empty() || (isWanted && !areJoined(read(passed.front()), sink)))
      join(made(result), source);
    if (!passed.empty() && (!isWanted || !areJoined(read(passed.front()), sink)))
      join(made(result), read(passed.front()));
  }
}

void AxisCut::find(PartialCut &cut) {
  for (auto [node, sharding] : llvm::zip_equal(graph.nodes, shardings))
    addReaders(node, sharding);
  for (auto [node, sharding] : llvm::zip_equal(graph.nodes, shardings))
    addNode(node, sharding);
  // No collective takes a future.
  for (auto [index, slot] : llvm::enumerate(graph.slots))
    if (slot.value && isa<FutureType>(slot.value.getType()))
      join(made(index), read(index));
  if (areJoined(source, sink))
    return; // annotations that contradict each other: the partitioner says so
  // There may be less to reduce before a product than behind it, as before the weight gradient of few tokens. But the
  // cotangent is waited for, and weight gradients are reduced together beside the computation: it stays partial.
  for (unsigned slot = 0; slot < graph.slots.size(); ++slot)
    if (readers[slot].passToProduct && !areJoined(read(slot), sink))
      join(read(slot), source);
  llvm::BitVector isForced(graph.slots.size());
  for (unsigned slot = 0; slot < graph.slots.size(); ++slot)
    isForced[slot] = areJoined(read(slot), sink);
  classes.compress();
  FlowNetwork network(classes.getNumClasses());
  SmallVector<unsigned> partial;
  for (unsigned slot = 0; slot < graph.slots.size(); ++slot) {
    if (!isPartial(slot))
      continue;
    partial.push_back(slot);
    const Readers &here = readers[slot];
    bool scatters = here.needPart && !here.needWhole && !here.passOn && !here.passLess;
    network.addEdge(classes[made(slot)], classes[read(slot)], (scatters ? 1 : 2) * weigh(slot));
  }
  for (auto [slot, scatters] : changes)
    network.addEdge(classes[read(slot)], classes[sink], (scatters ? 1 : 2) * weigh(slot));
  llvm::BitVector behind = network.cut(classes[source], classes[sink]);
  for (unsigned slot : partial) {
    if (behind.test(classes[made(slot)]) || !behind.test(classes[read(slot)]))
      continue;
    const Readers &here = readers[slot];
    cut.reduced[slot].set(axis);
    if (here.passLess || (here.passOn && !isForced[slot]))
      cut.reducedWhereMade[slot].set(axis);
  }
}

} // namespace

PartialCut findPartialCut(const PropagationGraph &graph, ArrayRef<OpSharding> shardings) {
  AxisSets none(graph.slots.size(), llvm::BitVector(graph.axisSizes.size()));
  PartialCut cut{none, none};
  for (unsigned axis = 0; axis < graph.axisSizes.size(); ++axis)
    AxisCut(graph, shardings, axis).find(cut);
  return cut;
}

} // namespace shoal::dist
