// Fusion decisions. A cluster iterates over one space (the shape of its largest values). Its values
// are
//   full:  one element per point of the space;
//   row:   one element per row (all but the last dimension), made by reductions over the last
//   dimension; final: made by any other reduction; complete only when the whole space has been
//   visited.
// Full and row values may be consumed where they are made, final ones only by other kernels.
#include "KernelClusters.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Interfaces/Lowering.h"
#include "shoal/Support/Elements.h"

#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>
#include <queue>

using namespace mlir;

namespace shoal::exec {

// A kernel larger than this is split: compile time of a loop nest grows faster than its length.
static constexpr size_t kMaxClusterOps = 48;
// Values up to this size may live longer for the sake of a fusion.
static constexpr int64_t kSmallBytes = 4096;
static constexpr unsigned kNoNode = ~0u;
// From how many ops a way round a merge is looked for in the tree.
static constexpr size_t kMaxStarts = 64;

// What an op does in a kernel follows from its sharding rule: a factor that passes through is a
// loop, one that the results lack is reduced, one that must be whole is visited from end to end
// before the results are there.

using Shape = ArrayRef<int64_t>;
static Shape shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static int64_t bytesOf(Value value) { return tensorBytes(value.getType()); }

static bool hasFactor(ArrayRef<unsigned> dim, unsigned factor) {
  return dim.size() == 1 && dim[0] == factor;
}

/// Whether a tensor of the rule has the factors `space`, one per dimension.
static bool spans(const TensorFactors &tensor, ArrayRef<unsigned> space) {
  return tensor.size() == space.size() &&
         llvm::all_of(llvm::zip(tensor, space), [](auto entry) {
           return hasFactor(std::get<0>(entry), std::get<1>(entry));
         });
}

/// Whether it has one element per row of the space, the row's dimension kept as 1 or dropped.
static bool spansRows(const TensorFactors &tensor, ArrayRef<unsigned> space) {
  if (space.empty())
    return false;
  ArrayRef<SmallVector<unsigned, 1>> dims(tensor);
  if (dims.size() == space.size() && dims.back().empty())
    dims = dims.drop_back();
  return spans(TensorFactors(dims), space.drop_back());
}

/// Whether an operand is a table: whole on every device in factors that nothing else has, and read anywhere at each
/// point of an op that passes through (the positions of rows). It comes from outside of the kernel, and is no loop.
static bool isTable(const ShardingRule &rule, unsigned operand) {
  const TensorFactors &table = rule.operands[operand];
  auto isOwn = [&](unsigned factor) {
    auto holdsIt = [&](const TensorFactors &tensor) { return holds(tensor, factor); };
    return rule.factors[factor].isReadAnywhere() && llvm::count_if(rule.operands, holdsIt) == 1 &&
           llvm::none_of(rule.results, holdsIt);
  };
  auto passes = [&](unsigned factor) { return rule.factors[factor].kind == FactorKind::PassThrough; };
  auto all = [](const TensorFactors &tensor, auto test) {
    return llvm::all_of(tensor, [&](ArrayRef<unsigned> dim) { return llvm::all_of(dim, test); });
  };
  return !table.empty() && all(table, isOwn) &&
         llvm::all_of(rule.results, [&](const TensorFactors &result) { return all(result, passes); });
}

/// What of an op's rule matters for fusion.
struct Iteration {
  ShardingRule rule;
  SmallVector<unsigned> space; // the factors in the order of the tensor that has them all
  Shape shape;                 // that tensor's
};

/// The points an op visits; none for ops that are never fused (they move elements, or normalise
/// over another dimension than the last).
static std::optional<Iteration> computeIteration(Operation *op) {
  auto sharded = dyn_cast<ShardingRuleOpInterface>(op);
  if (!sharded || !lowersAs(op, LoweringKind::Kernel))
    return std::nullopt;
  Iteration result{sharded.getShardingRule(), {}, {}};
  const ShardingRule &rule = result.rule;
  size_t loops = rule.factors.size();
  SmallVector<unsigned> read; // operands but for tables
  for (unsigned i = 0; i < rule.operands.size(); ++i)
    if (isTable(rule, i))
      loops -= rule.operands[i].size();
    else
      read.push_back(i);
  auto takeSpace = [&](const TensorFactors &tensor, Value value) {
    SmallVector<unsigned> factors;
    for (ArrayRef<unsigned> dim : tensor)
      if (dim.size() == 1 && !llvm::is_contained(factors, dim[0]))
        factors.push_back(dim[0]);
    if (factors.size() != loops || factors.size() != tensor.size())
      return false;
    result.space = std::move(factors);
    result.shape = shapeOf(value);
    return true;
  };
  bool found = false;
  for (unsigned i = 0; i < rule.results.size() && !found; ++i)
    found = takeSpace(rule.results[i], op->getResult(i));
  for (unsigned i : read)
    found = found || takeSpace(rule.operands[i], op->getOperand(i));
  if (!found)
    return std::nullopt;
  // Every tensor keeps the order of the space: nothing is transposed.
  auto inOrder = [&](const TensorFactors &tensor) {
    ArrayRef<unsigned> rest(result.space);
    for (ArrayRef<unsigned> dim : tensor)
      for (unsigned factor : dim) {
        auto at = llvm::find(rest, factor);
        if (at == rest.end())
          return false;
        rest = rest.drop_front(at - rest.begin() + 1);
      }
    return true;
  };
  if (!llvm::all_of(read, [&](unsigned i) { return inOrder(rule.operands[i]); }) ||
      !llvm::all_of(rule.results, inOrder))
    return std::nullopt;
  for (const TensorFactors &tensor : rule.results)
    for (ArrayRef<unsigned> dim : tensor)
      for (unsigned factor : dim) {
        // A reduced factor that a result has passes through there.
        FactorKind kind = rule.factors[factor].kind;
        bool passes = kind == FactorKind::PassThrough || kind == FactorKind::Reduction;
        if (!passes && factor != result.space.back())
          return std::nullopt;
      }
  return result;
}

static bool isElementwise(Operation *op, const Iteration &iteration) {
  const ShardingRule &rule = iteration.rule;
  size_t rank = iteration.space.size();
  auto aligned = [&](const TensorFactors &tensor, Value value) {
    if (tensor.size() > rank)
      return false;
    for (auto [d, dim] : llvm::enumerate(tensor)) {
      bool stretched = dim.empty() && shapeOf(value)[d] == 1;
      if (!stretched && !hasFactor(dim, iteration.space[rank - tensor.size() + d]))
        return false;
    }
    return true;
  };
  return llvm::all_of(rule.factors,
                      [](Factor factor) { return factor.kind == FactorKind::PassThrough; }) &&
         llvm::all_of(rule.results,
                      [&](const TensorFactors &tensor) { return spans(tensor, iteration.space); }) &&
         llvm::all_of(llvm::zip_equal(rule.operands, op->getOperands()),
                      [&](auto entry) { return std::apply(aligned, entry); });
}

bool isElementwise(Operation *op) {
  std::optional<Iteration> iteration = computeIteration(op);
  return iteration && isElementwise(op, *iteration);
}

namespace {
/// The iterations of the ops of a block, each computed once: every attempt to fuse asks for them.
class Iterations {
public:
  /// Null for ops that are never fused.
  const Iteration *of(Operation *op) {
    auto [at, added] = computed.try_emplace(op);
    if (added)
      if (std::optional<Iteration> iteration = computeIteration(op))
        at->second = std::make_unique<Iteration>(std::move(*iteration));
    return at->second.get();
  }

private:
  DenseMap<Operation *, std::unique_ptr<Iteration>> computed;
};
} // namespace

/// One element per row of the space, with the row's dimension kept as 1 or dropped.
static bool isRowShape(Shape shape, Shape space) {
  if (space.size() < 2 || space.back() == 1)
    return false;
  return (shape.size() == space.size() && shape.drop_back() == space.drop_back() &&
          shape.back() == 1) ||
         shape == space.drop_back();
}

namespace {
enum class Level { Full, Row, Final };
} // namespace

/// Enters the levels of the op's results in a cluster over `space`, given those of the cluster's
/// other values; false when the op cannot be part of it.
static bool addLevels(Operation *op, const Iteration *own, Shape space,
                      DenseMap<Value, Level> &levels) {
  if (!own)
    return false;
  bool full = own->shape == space;
  if (!full && !isRowShape(own->shape, space))
    return false;
  for (auto [operand, factors] : llvm::zip_equal(op->getOperands(), own->rule.operands)) {
    auto at = levels.find(operand);
    if (at == levels.end())
      continue;
    if (at->second == Level::Final)
      return false;
    if (full) {
      // Row values broadcast along the row, or are one number (a target) for each.
      bool rows = at->second == Level::Row && spansRows(factors, own->space);
      if (!rows && !spans(factors, own->space))
        return false;
    } else if (at->second != Level::Row || shapeOf(operand) != own->shape) {
      return false;
    }
  }
  bool elementwise = isElementwise(op, *own);
  for (auto [result, factors] : llvm::zip_equal(op->getResults(), own->rule.results)) {
    bool isWhole = spans(factors, own->space);
    // Rows of rows would be visited from end to end in the loop over rows.
    if (isWhole && !full && !elementwise)
      return false;
    if (isWhole)
      levels[result] = full ? Level::Full : Level::Row;
    else
      levels[result] = full && space.size() >= 2 && spansRows(factors, own->space) ? Level::Row : Level::Final;
  }
  return true;
}

/// Whether the ops, in program order, can be one kernel over `space`.
static bool formsKernel(ArrayRef<Operation *> ops, Shape space, Iterations &iterations) {
  DenseMap<Value, Level> levels;
  return llvm::all_of(ops, [&](Operation *op) {
    return addLevels(op, iterations.of(op), space, levels);
  });
}

/// The largest space among the ops, which all others must fit.
static std::optional<Shape> commonSpace(ArrayRef<Operation *> ops, Iterations &iterations) {
  std::optional<Shape> largest;
  for (Operation *op : ops) {
    const Iteration *iteration = iterations.of(op);
    if (!iteration)
      return std::nullopt;
    Shape space = iteration->shape;
    if (!largest || ShapedType::getNumElements(space) > ShapedType::getNumElements(*largest) ||
        (space.size() > largest->size() &&
         ShapedType::getNumElements(space) == ShapedType::getNumElements(*largest)))
      largest = space;
  }
  return largest;
}

// The graph

struct ClusterGraph::Cache {
  Iterations iterations;
  /// By `dist.at`, for each op of the block how many heavy ops that meet such positions stand before it.
  llvm::DenseMap<Attribute, std::vector<int64_t>> heavyBefore;
  /// For each op of the block the place of the last `dist.wait` that it is or depends on; -1: none.
  std::vector<int64_t> lastWait;
};

/// The mesh positions of an op, or of all ops of a cluster; null: all.
static DenseI64ArrayAttr positionsOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>(dist::DistDialect::kAtAttr);
}

ClusterGraph::~ClusterGraph() = default;

ClusterGraph::ClusterGraph(Block &block) : block(block), cache(std::make_unique<Cache>()) {
  int64_t next = 0;
  // Ops with effects (sends, receives, barriers) keep their order.
  std::optional<unsigned> lastEffect;
  for (Operation &op : block) {
    positions[&op] = next++;
    bool kernel = lowersAs(&op, LoweringKind::Kernel);
    bool constant = lowersAs(&op, LoweringKind::Constant);
    if (!kernel && !constant && !lowersAs(&op, LoweringKind::View))
      heavy.push_back(&op);
    if (constant || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    unsigned node = clusters.size();
    clusters.push_back({{&op}, kernel, true});
    nodes[&op] = node;
    extraPredecessors.emplace_back();
    if (!kernel && dist::staysInPlace(&op)) {
      if (lastEffect)
        extraPredecessors[node].insert(*lastEffect);
      lastEffect = node;
    }
  }
  order = std::make_unique<NodeOrder>(clusters.size());
  findTree();
}

/// Every node hangs on its predecessor with the longest way from the start, so that what lies on the
/// longest ways, forward pass and back, is one path of the tree.
void ClusterGraph::findTree() {
  unsigned count = clusters.size();
  SmallVector<unsigned> depth(count, 0), parent(count, kNoNode);
  SmallVector<SmallVector<unsigned, 2>> children(count);
  for (unsigned node = 0; node < count; ++node) {
    for (unsigned predecessor : predecessors(node))
      if (depth[predecessor] + 1 > depth[node]) {
        depth[node] = depth[predecessor] + 1;
        parent[node] = predecessor;
      }
    if (parent[node] != kNoNode)
      children[parent[node]].push_back(node);
  }
  tree.assign(positions.size(), {0, 0});
  auto rangeOf = [&](unsigned node) -> TreeRange & {
    return tree[position(clusters[node].ops.front())];
  };
  unsigned next = 0;
  for (unsigned root = 0; root < count; ++root) {
    if (parent[root] != kNoNode)
      continue;
    SmallVector<std::pair<unsigned, unsigned>> path = {{root, 0}}; // node, next child
    rangeOf(root).begin = next++;
    while (!path.empty()) {
      auto &[node, child] = path.back();
      if (child == children[node].size()) {
        rangeOf(node).end = next;
        path.pop_back();
      } else {
        unsigned down = children[node][child++];
        rangeOf(down).begin = next++;
        path.push_back({down, 0});
      }
    }
  }
}

std::optional<unsigned> ClusterGraph::nodeOf(Operation *op) const {
  auto at = nodes.find(op);
  return at == nodes.end() ? std::nullopt : std::optional(at->second);
}

std::optional<unsigned> ClusterGraph::producerOf(Value value) const {
  Operation *op = value.getDefiningOp();
  return op ? nodeOf(op) : std::nullopt;
}

llvm::SmallSetVector<unsigned, 4> ClusterGraph::usersOf(Value value) const {
  llvm::SmallSetVector<unsigned, 4> users;
  for (Operation *user : value.getUsers())
    if (std::optional<unsigned> node = nodeOf(block.findAncestorOpInBlock(*user)))
      users.insert(*node);
  return users;
}

static void forEachOperand(Operation *op, function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands())
    visit(operand);
  if (op->getNumRegions()) {
    llvm::SetVector<Value> above;
    getUsedValuesDefinedAbove(op->getRegions(), above);
    for (Value value : above)
      visit(value);
  }
}

SmallVector<unsigned> ClusterGraph::predecessors(unsigned node) const {
  llvm::SmallSetVector<unsigned, 8> result;
  for (Operation *op : clusters[node].ops)
    forEachOperand(op, [&](Value operand) {
      if (std::optional<unsigned> producer = producerOf(operand); producer && *producer != node)
        result.insert(*producer);
    });
  for (unsigned before : extraPredecessors[node]) {
    // What it was ordered behind may be part of another kernel by now.
    while (!clusters[before].alive)
      before = mergedInto.lookup(before);
    if (before != node)
      result.insert(before);
  }
  return result.takeVector();
}

/// Of the ops of a node and their nearest users, those on whose tree paths a way from the node to
/// `last` may lie; a use by `last` itself is no way round.
SmallVector<ClusterGraph::TreeRange> ClusterGraph::startsOf(unsigned node, unsigned last) const {
  SmallVector<TreeRange> starts;
  auto add = [&](Operation *op) { starts.push_back(tree[position(op)]); };
  for (Operation *op : clusters[node].ops) {
    add(op);
    for (Operation *user : op->getUsers()) {
      if (starts.size() >= kMaxStarts)
        return starts;
      user = block.findAncestorOpInBlock(*user);
      if (std::optional<unsigned> at = nodeOf(user); at && *at != node && *at != last)
        add(user);
    }
  }
  return starts;
}

/// Makes `node` come behind everything that `last` depends on. False, and no change, when `last`
/// depends on `node` itself; merging, a direct dependence is what is wanted and does not count.
bool ClusterGraph::moveBehind(unsigned node, unsigned last, bool merging) {
  if (order->isBefore(last, node)) {
    if (merging)
      order->remove(last);
    return true;
  }
  // A tree path is a way from `node`, found at once; most attempts that fail do so here. Else only
  // what stands between the two in the order can lie on one.
  SmallVector<TreeRange> starts = startsOf(node, last);
  auto isReached = [&](unsigned at) {
    return llvm::any_of(clusters[at].ops, [&](Operation *op) {
      unsigned place = tree[position(op)].begin;
      return llvm::any_of(starts, [&](TreeRange range) {
        return range.begin <= place && place < range.end;
      });
    });
  };
  if (!merging && isReached(last))
    return false;
  llvm::SmallDenseSet<unsigned> ancestors;
  SmallVector<unsigned> work = {last};
  while (!work.empty()) {
    unsigned at = work.pop_back_val();
    for (unsigned predecessor : predecessors(at)) {
      if (predecessor == node) {
        if (at == last && merging)
          continue;
        return false;
      }
      if (order->isBefore(node, predecessor) && ancestors.insert(predecessor).second) {
        if (isReached(predecessor))
          return false;
        work.push_back(predecessor);
      }
    }
  }
  if (merging)
    order->remove(last);
  else
    ancestors.insert(last);
  SmallVector<unsigned> moved(ancestors.begin(), ancestors.end());
  llvm::sort(moved, [&](unsigned a, unsigned b) { return order->isBefore(a, b); });
  order->moveBefore(node, moved);
  return true;
}

bool ClusterGraph::isHeavyBetween(const Cluster &cluster, Operation *first, Operation *last) const {
  DenseI64ArrayAttr at = positionsOf(cluster.ops.front());
  std::vector<int64_t> &before = cache->heavyBefore[at];
  if (before.empty()) {
    before.resize(positions.size(), 0);
    llvm::DenseMap<Attribute, bool> meets;
    for (Operation *op : heavy) {
      DenseI64ArrayAttr other = positionsOf(op);
      auto [known, isNew] = meets.try_emplace(other, true);
      if (isNew)
        known->second = dist::haveCommon(at, other);
      if (size_t behind = position(op) + 1; known->second && behind < before.size())
        ++before[behind];
    }
    std::partial_sum(before.begin(), before.end(), before.begin());
  }
  return before[position(first)] != before[position(last)];
}

int64_t ClusterGraph::lastWaitOf(const Cluster &cluster) const {
  std::vector<int64_t> &last = cache->lastWait;
  if (last.empty()) {
    last.resize(positions.size(), -1);
    for (Operation &op : block) {
      int64_t &own = last[position(&op)];
      forEachOperand(&op, [&](Value operand) {
        if (Operation *def = operand.getDefiningOp(); def && def->getBlock() == &block)
          own = std::max(own, last[position(def)]);
      });
      if (isa<dist::WaitOp>(op))
        own = position(&op);
    }
  }
  int64_t latest = -1;
  for (Operation *op : cluster.ops)
    latest = std::max(latest, last[position(op)]);
  return latest;
}

bool ClusterGraph::pays(unsigned producer, unsigned consumer) const {
  ArrayRef<Operation *> first = clusters[producer].ops, second = clusters[consumer].ops;
  // Near: no library call or collective between them, so nothing lives longer for it.
  if (position(first.back()) > position(second.front()) ||
      !isHeavyBetween(clusters[producer], first.back(), second.front()))
    return true;
  // Far: the consumer's work moves to an earlier time. What it leaves behind must not weigh more
  // than what is no longer kept for it.
  auto usedOutside = [&](Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      std::optional<unsigned> node = nodeOf(block.findAncestorOpInBlock(*user));
      return !node || (*node != producer && *node != consumer);
    });
  };
  int64_t grown = 0, saved = 0;
  // Unless it waits for a message behind the producer, whose work then moves to a later time: what a ring adds up step
  // by step would be kept of all steps.
  if (lastWaitOf(clusters[consumer]) > position(first.back())) {
    llvm::SmallPtrSet<Value, 8> read;
    for (Operation *op : first)
      for (Value operand : op->getOperands())
        if (std::optional<unsigned> node = producerOf(operand);
            node && *node != producer && !usedOutside(operand) && read.insert(operand).second)
          grown += bytesOf(operand);
  } else {
    for (Operation *op : second)
      for (Value result : op->getResults())
        if (usedOutside(result))
          grown += bytesOf(result);
  }
  for (Operation *op : first)
    for (Value result : op->getResults())
      if (usersOf(result).contains(consumer) && !usedOutside(result))
        saved += bytesOf(result);
  return grown <= saved || grown <= kSmallBytes;
}

/// Whether the op makes a copy of a parameter, which is kept whole as one.
static bool copiesParam(Operation *op) { return getAskedClass(op->getResult(0)) == StorageClass::param; }

/// Whether ops, in program order, would make one that computes a value again run when the value was first there: it
/// stands behind ops of the forward pass.
static bool repeatsTooEarly(ArrayRef<Operation *> ops) {
  bool found = false; // an op that repeats none
  for (Operation *op : ops) {
    bool repeats = op->hasAttr(nn::NNDialect::kRecomputeAttr);
    if (repeats && found)
      return true;
    found |= !repeats;
  }
  return false;
}

Attribute findScope(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (Attribute scope = op->getAttr(ExecDialect::kScopeAttr))
      return scope;
  return {};
}

bool ClusterGraph::tryMerge(unsigned producer, unsigned consumer) {
  Cluster &first = clusters[producer], &second = clusters[consumer];
  // A copy is written by a kernel of its own, or it would live on in its readers only.
  if (copiesParam(first.ops.front()) != copiesParam(second.ops.front()))
    return false;
  if (first.ops.size() + second.ops.size() > kMaxClusterOps)
    return false;
  if (positionsOf(first.ops.front()) != positionsOf(second.ops.front()))
    return false;
  auto microbatchOf = [](const Cluster &cluster) { return cluster.ops.front()->getAttr(dist::kMicrobatchAttr); };
  if (microbatchOf(first) != microbatchOf(second))
    return false;
  Attribute scope = findScope(first.ops), other = findScope(second.ops);
  if (scope && other && scope != other)
    return false;
  SmallVector<Operation *> ops(first.ops);
  llvm::append_range(ops, second.ops);
  llvm::sort(ops, [&](Operation *a, Operation *b) { return position(a) < position(b); });
  std::optional<Shape> space = repeatsTooEarly(ops) ? std::nullopt : commonSpace(ops, cache->iterations);
  if (!space || !formsKernel(ops, *space, cache->iterations) || !pays(producer, consumer))
    return false;
  if (!moveBehind(producer, consumer, /*merging=*/true))
    return false;
  for (Operation *op : second.ops)
    nodes[op] = producer;
  first.ops = std::move(ops);
  second.ops.clear();
  second.alive = false;
  mergedInto[consumer] = producer;
  extraPredecessors[producer].insert(extraPredecessors[consumer].begin(), extraPredecessors[consumer].end());
  return true;
}

void ClusterGraph::fuse() {
  for (Operation &op : block) {
    if (!lowersAs(&op, LoweringKind::Kernel))
      continue;
    // The latest producer first: it is the likeliest to be near.
    SmallVector<Operation *> producers;
    for (Value operand : op.getOperands())
      if (Operation *def = operand.getDefiningOp(); def && lowersAs(def, LoweringKind::Kernel))
        producers.push_back(def);
    llvm::sort(producers, [&](Operation *a, Operation *b) { return position(a) > position(b); });
    for (Operation *def : producers) {
      unsigned from = nodes[def], to = nodes[&op];
      if (from != to)
        tryMerge(from, to);
    }
  }
}

bool ClusterGraph::addOrder(unsigned before, unsigned after) {
  if (before == after || extraPredecessors[after].contains(before))
    return true;
  if (!moveBehind(after, before, /*merging=*/false))
    return false;
  extraPredecessors[after].insert(before);
  return true;
}

static bool communicates(Operation *op) {
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  return collective && collective.communicates();
}

/// Where a node stands in the schedule among those that are ready. Program order; behind the last
/// collective of its mesh positions, what needs an earlier one comes first (the updates of the bucket that was reduced
/// first).
SmallVector<std::pair<int64_t, int64_t>> ClusterGraph::priorities() const {
  SmallVector<int64_t> needs(clusters.size(), 0); // the latest collective among the ancestors
  llvm::MapVector<Attribute, int64_t> lastOf;     // by `dist.at`
  for (unsigned node : order->nodes()) {
    for (unsigned predecessor : predecessors(node))
      needs[node] = std::max(needs[node], needs[predecessor]);
    Operation *op = clusters[node].ops.front();
    if (!communicates(op))
      continue;
    int64_t &last = lastOf[positionsOf(op)];
    last = std::max(last, needs[node] = position(op));
  }
  llvm::DenseMap<Attribute, int64_t> lastBefore;
  auto findLast = [&](Operation *op) {
    auto [known, isNew] = lastBefore.try_emplace(positionsOf(op), 0);
    if (isNew)
      for (auto [at, last] : lastOf)
        if (dist::haveCommon(positionsOf(op), cast_or_null<DenseI64ArrayAttr>(at)))
          known->second = std::max(known->second, last);
    return known->second;
  };
  SmallVector<std::pair<int64_t, int64_t>> result(clusters.size());
  for (auto [node, place] : llvm::enumerate(result)) {
    if (!clusters[node].alive)
      continue;
    Operation *op = clusters[node].ops.front();
    place = {position(op) > findLast(op) ? needs[node] + 1 : 0, position(op)};
  }
  return result;
}

SmallVector<unsigned> ClusterGraph::schedule() const {
  SmallVector<std::pair<int64_t, int64_t>> priority = priorities();
  SmallVector<SmallVector<unsigned>> successors(clusters.size());
  SmallVector<unsigned> missing(clusters.size());
  using Entry = std::pair<std::pair<int64_t, int64_t>, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  auto enter = [&](unsigned node) { ready.push({priority[node], node}); };
  for (unsigned node = 0; node < clusters.size(); ++node) {
    if (!clusters[node].alive)
      continue;
    SmallVector<unsigned> before = predecessors(node);
    missing[node] = before.size();
    for (unsigned predecessor : before)
      successors[predecessor].push_back(node);
    if (before.empty())
      enter(node);
  }
  SmallVector<unsigned> scheduled;
  while (!ready.empty()) {
    unsigned node = ready.top().second;
    ready.pop();
    scheduled.push_back(node);
    for (unsigned successor : successors[node])
      if (--missing[successor] == 0)
        enter(successor);
  }
  return scheduled;
}

} // namespace shoal::exec
