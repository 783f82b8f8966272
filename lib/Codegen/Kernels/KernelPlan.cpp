// Loop fusion of a kernel, on dependences between whole iterations. Static shapes and maps that are
// projections make the question simple: two ops may share loop d when every dependence between them
// goes through a dimension that both index by d.
#include "KernelPlan.h"

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Support/DeadOps.h"
#include "shoal/Support/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace shoal::codegen {

Value stripViews(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether the elements of a tensor that no op of the kernel computes are known.
static bool isConstant(Value root) {
  if (auto fill = root.getDefiningOp<linalg::FillOp>())
    return bool(fill.getInputs()[0].getDefiningOp<arith::ConstantOp>());
  return bool(root.getDefiningOp<arith::ConstantOp>());
}

static Access makeAccess(Value tensor, SmallVector<Position> positions) {
  Access access{tensor, stripViews(tensor), std::move(positions)};
  if (access.root != tensor)
    std::fill(access.positions.begin(), access.positions.end(), kComputed);
  return access;
}

/// Maps of nodes are projections: each dimension is indexed by one loop or is 0.
static FailureOr<SmallVector<Position>> positionsOf(const Node &node, AffineMap map) {
  SmallVector<Position> positions;
  for (AffineExpr expr : map.getResults()) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      positions.push_back(node.loopOf[dim.getPosition()]);
      continue;
    }
    auto constant = dyn_cast<AffineConstantExpr>(expr);
    if (!constant || constant.getValue() != 0)
      return node.op->emitOpError("indexing maps in kernels must be projections, got: ")
                 << AffineMapAttr::get(map),
             failure();
    positions.push_back(kZero);
  }
  return positions;
}

static FailureOr<std::unique_ptr<Node>> makeNode(linalg::GenericOp op, const PlanTarget &target) {
  auto node = std::make_unique<Node>();
  node->op = op;
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  auto iterators = op.getIteratorTypesArray();
  auto isReduction = [&](unsigned dim) {
    return iterators[dim] == utils::IteratorType::reduction;
  };
  SmallVector<unsigned> order;
  for (bool wanted : {false, true})
    for (unsigned dim = 0; dim < ranges.size(); ++dim)
      if (target.parallelLoopsFirst ? isReduction(dim) == wanted : !wanted)
        order.push_back(dim);
  node->loopOf.assign(ranges.size(), kZero);
  for (unsigned dim : order) {
    if (ShapedType::isDynamic(ranges[dim]))
      return op.emitOpError("kernels must have static shapes"), failure();
    if (ranges[dim] == 1)
      continue;
    node->loopOf[dim] = node->sizes.size();
    node->sizes.push_back(ranges[dim]);
    node->isReduction.push_back(isReduction(dim));
  }
  node->firstReduction = llvm::find(node->isReduction, true) - node->isReduction.begin();
  node->accumulateFrom = node->depth();
  while (node->accumulateFrom > 0 && node->isReduction[node->accumulateFrom - 1])
    --node->accumulateFrom;

  auto maps = op.getIndexingMapsArray();
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(input->get().getType()))
      return op.emitOpError("inputs of ops in kernels must be tensors"), failure();
    // An input that only gives a shape may be empty.
    Value root = stripViews(input->get());
    if (root.getDefiningOp<tensor::EmptyOp>() && !op.getMatchingBlockArgument(input).use_empty())
      return op.emitOpError("input ") << input->getOperandNumber()
                                      << " must be an operand, computed or a constant, got: "
                                      << root.getDefiningOp()->getName(),
             failure();
    auto positions = positionsOf(*node, maps[input->getOperandNumber()]);
    if (failed(positions))
      return failure();
    node->reads.push_back(makeAccess(input->get(), *positions));
  }
  for (OpOperand &init : op.getDpsInitsMutable()) {
    auto positions = positionsOf(*node, maps[init.getOperandNumber()]);
    if (failed(positions))
      return failure();
    node->writes.push_back(*positions);
    Operation *source = init.get().getDefiningOp();
    auto fill = dyn_cast_or_null<linalg::FillOp>(source);
    if (!isa_and_nonnull<tensor::EmptyOp>(source) &&
        !(fill && fill.getInputs()[0].getDefiningOp<arith::ConstantOp>()))
      return op.emitOpError(
                 "destinations of ops in kernels must be empty or filled with a constant"),
             failure();
    if (node->hasReduction() && !fill)
      return op.emitOpError("reductions in kernels must start from a fill"), failure();
  }
  for (Operation &inner : op.getBody()->without_terminator()) {
    auto extract = dyn_cast<tensor::ExtractOp>(inner);
    if (!extract)
      continue;
    SmallVector<Position> positions;
    for (Value index : extract.getIndices()) {
      auto loop = index.getDefiningOp<linalg::IndexOp>();
      positions.push_back(loop ? node->loopOf[loop.getDim()] : kComputed);
    }
    node->extractReads[extract] = node->reads.size();
    node->reads.push_back(makeAccess(extract.getTensor(), positions));
  }
  return node;
}

LogicalResult KernelPlan::collectNodes() {
  // Nothing in a kernel has effects: what nobody reads goes.
  eraseDeadOps(func.getBody().front());
  llvm::DenseMap<Value, Node *> producers;
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp, tensor::CollapseShapeOp,
            tensor::ExpandShapeOp>(op))
      continue;
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      return op.emitOpError("cannot be part of a kernel");
    auto node = makeNode(generic, target);
    if (failed(node))
      return failure();
    (*node)->index = nodes.size();
    for (Value result : generic.getResults())
      producers[result] = node->get();
    for (const Access &read : (*node)->reads)
      if (Node *producer = producers.lookup(read.root)) {
        unsigned number = cast<OpResult>(read.root).getResultNumber();
        dependences.push_back(
            {producer->index, (*node)->index, producer->writes[number], read.positions, false});
      }
    nodes.push_back(std::move(*node));
  }
  return success();
}

static int64_t iterationsOf(const Node &node) {
  return std::accumulate(node.sizes.begin(), node.sizes.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// Whether all tensors of the node are read and written in the order of memory.
static bool canFlatten(const Node &node) {
  linalg::GenericOp op = node.op;
  int64_t iterations = iterationsOf(node);
  auto inOrder = [&](Value tensor, ArrayRef<Position> positions) {
    int64_t elements = cast<RankedTensorType>(tensor.getType()).getNumElements();
    if (elements == 1)
      return true;
    Position next = 0;
    for (Position position : positions)
      if (position != kZero && position != next++)
        return false;
    return next == Position(node.depth()) && elements == iterations;
  };
  bool allOfOneKind = llvm::all_equal(node.isReduction);
  bool reads = llvm::all_of(node.reads, [&](const Access &read) {
    return read.tensor == read.root && inOrder(read.tensor, read.positions);
  });
  bool writes = llvm::all_of(llvm::zip_equal(op.getResults(), node.writes), [&](auto entry) {
    return inOrder(std::get<0>(entry), std::get<1>(entry));
  });
  return allOfOneKind && reads && writes && node.extractReads.empty() && !op.hasIndexSemantics();
}

/// Short last dimensions cost nothing where shapes do not matter, as in optimizer updates.
void KernelPlan::flatten() {
  flat = llvm::all_of(nodes, [](auto &node) { return canFlatten(*node); }) &&
         llvm::any_of(nodes, [](auto &node) { return node->depth() > 1; });
  if (!flat)
    return;
  auto flatten = [](SmallVector<Position> &positions) {
    bool indexed = llvm::any_of(positions, [](Position position) { return position != kZero; });
    positions.assign(indexed ? 1 : 0, 0);
  };
  for (auto &node : nodes) {
    if (node->depth() > 0) {
      node->sizes = {iterationsOf(*node)};
      node->isReduction.resize(1);
      node->accumulateFrom = node->firstReduction = node->isReduction[0] ? 0 : 1;
    }
    for (Access &read : node->reads)
      flatten(read.positions);
    for (SmallVector<Position> &write : node->writes)
      flatten(write);
  }
  for (Dependence &dependence : dependences) {
    flatten(dependence.fromPositions);
    flatten(dependence.toPositions);
  }
}

/// A topological order that keeps the given one where it can; false when there is none.
bool KernelPlan::order() {
  std::vector<std::unique_ptr<Node>> sorted;
  SmallVector<unsigned> waiting(nodes.size(), 0), newIndex(nodes.size());
  SmallVector<bool> done(nodes.size(), false);
  for (const Dependence &dependence : dependences)
    ++waiting[dependence.to];
  SmallVector<unsigned> sequence;
  while (sequence.size() < nodes.size()) {
    unsigned next = 0;
    while (next < nodes.size() && (done[next] || waiting[next] > 0))
      ++next;
    if (next == nodes.size())
      return false;
    done[next] = true;
    newIndex[next] = sequence.size();
    sequence.push_back(next);
    for (const Dependence &dependence : dependences)
      if (dependence.from == next)
        --waiting[dependence.to];
  }
  for (unsigned old : sequence) {
    nodes[old]->index = newIndex[old];
    sorted.push_back(std::move(nodes[old]));
  }
  nodes = std::move(sorted);
  for (Dependence &dependence : dependences) {
    dependence.from = newIndex[dependence.from];
    dependence.to = newIndex[dependence.to];
  }
  return true;
}

/// Lets the producer of a result write over the operand, if every reader of the old value can come
/// before, or reads at the same position.
bool KernelPlan::overwriteInPlace(ResultPlan &result) {
  auto opResult = cast<OpResult>(result.root);
  Node *writer =
      llvm::find_if(nodes, [&](auto &node) { return node->op == opResult.getOwner(); })->get();
  Value operand = func.getArgument(result.inplace);
  ArrayRef<Position> writes = writer->writes[opResult.getResultNumber()];
  size_t before = dependences.size();
  for (auto &node : nodes)
    for (const Access &read : node->reads) {
      if (read.root != operand)
        continue;
      if (node.get() != writer)
        dependences.push_back(
            {node->index, writer->index, read.positions, SmallVector<Position>(writes), true});
      else if (writer->hasReduction() || ArrayRef<Position>(read.positions) != writes) {
        dependences.resize(before);
        return false;
      }
    }
  if (order())
    return true;
  dependences.resize(before);
  return false;
}

LogicalResult KernelPlan::planResults() {
  // The exec dialect has verified it: one entry per result, -1 or an operand of the same type, each
  // at most once.
  SmallVector<int64_t> inplace = exec::getInplace(func);
  Operation *terminator = func.getBody().front().getTerminator();
  for (unsigned k = 0; k < func.getNumResults(); ++k) {
    Value value = terminator->getOperand(k);
    ResultPlan plan{stripViews(value), int(inplace[k])};
    if (auto argument = dyn_cast<BlockArgument>(plan.root)) {
      plan.nothing = int(argument.getArgNumber()) == plan.inplace && plan.root == value;
      if (!plan.nothing && plan.inplace >= 0)
        return func.emitOpError("result ") << k << " is one operand in place of another";
    } else if (plan.root.getDefiningOp<linalg::GenericOp>()) {
      Storage &where = storage[plan.root];
      bool isFree = where.result < 0 && (plan.root == value || plan.inplace < 0);
      plan.direct = isFree && (plan.inplace < 0 || overwriteInPlace(plan));
      if (plan.direct)
        where.result = k;
      where.needed = true;
    } else if (!isConstant(plan.root)) {
      return func.emitOpError("result ")
             << k << " must be an operand, computed or a constant, got: "
             << plan.root.getDefiningOp()->getName();
    }
    results.push_back(plan);
  }
  return success();
}

// Fusion.

static bool sharedThrough(ArrayRef<Position> a, ArrayRef<Position> b, Position loop) {
  for (auto [x, y] : llvm::zip(a, b))
    if (x == loop && y == loop)
      return true;
  return false;
}

void KernelPlan::collectReaders() {
  unsigned depth = 0;
  for (auto &node : nodes)
    depth = std::max(depth, node->depth());
  readers.assign(depth, SmallVector<llvm::SmallBitVector>(nodes.size(), llvm::SmallBitVector(nodes.size())));
  for (unsigned loop = 0; loop < depth; ++loop)
    for (auto &node : llvm::reverse(nodes)) // those behind it are done
      for (const Dependence *dependence : outgoing[node->index])
        if (!dependence->overwrites && sharedThrough(dependence->fromPositions, dependence->toPositions, loop)) {
          readers[loop][node->index] |= readers[loop][dependence->to];
          readers[loop][node->index].set(dependence->to);
        }
}

bool KernelPlan::canJoin(const Node &node, const Item &loop, unsigned depth) const {
  if (loop.node || node.depth() <= depth || loop.size != node.sizes[depth])
    return false;
  if (target.parallelLoopsFirst && depth == 0 &&
      node.isReduction[0] != loop.nodes.front()->isReduction[0])
    return false;
  bool connected = false;
  for (const Dependence *dependence : incoming[node.index]) {
    if (!llvm::is_contained(loop.nodes, nodes[dependence->from].get()))
      continue;
    if (!sharedThrough(dependence->fromPositions, dependence->toPositions, depth))
      return false;
    connected = true;
  }
  // What is made of both needs no whole tensor of either.
  for (const Node *other : loop.nodes)
    connected |= readers[depth][node.index].anyCommon(readers[depth][other->index]);
  // Ops of the same shape that read the same tensor read it once.
  for (const Node *other : loop.nodes)
    if (other->depth() == node.depth())
      for (const Access &a : other->reads)
        for (const Access &b : node.reads)
          connected |= a.tensor == b.tensor && sharedThrough(a.positions, b.positions, depth);
  return connected;
}

std::vector<Item> KernelPlan::fuse(ArrayRef<Node *> list, unsigned depth) {
  std::vector<Item> items;
  llvm::DenseMap<unsigned, size_t> placeOf; // in `items`, by node
  for (Node *node : list) {
    // No earlier than what it depends on.
    size_t first = 0;
    bool isFree = true; // of all that is placed
    for (const Dependence *dependence : incoming[node->index])
      if (auto it = placeOf.find(dependence->from); it != placeOf.end()) {
        first = std::max(first, it->second);
        isFree = false;
      }
    size_t place = first;
    while (place < items.size() && !canJoin(*node, items[place], depth))
      ++place;
    if (place == items.size()) {
      Item item;
      if (node->depth() == depth)
        item.node = node;
      else
        item.size = node->sizes[depth];
      // A small one in between, as the cast of a vector, would part what is before from its readers.
      auto isLarger = [&](const Item &other) { return iterationsOf(*node) < iterationsOf(*other.nodes.front()); };
      if (isFree && llvm::all_of(items, isLarger)) {
        place = 0;
        for (auto &entry : placeOf)
          ++entry.second;
      }
      items.insert(items.begin() + place, std::move(item));
    }
    items[place].nodes.push_back(node);
    placeOf[node->index] = place;
  }
  for (Item &item : items)
    if (!item.node)
      item.children = fuse(item.nodes, depth + 1);
  return items;
}

static void collectPaths(ArrayRef<Item> items, SmallVectorImpl<const Item *> &path,
                         llvm::DenseMap<const Node *, SmallVector<const Item *>> &paths) {
  for (const Item &item : items) {
    if (item.node) {
      paths[item.node].assign(path.begin(), path.end());
      continue;
    }
    path.push_back(&item);
    collectPaths(item.children, path, paths);
    path.pop_back();
  }
}

/// Decides register or buffer for every read, and how much of a buffered value is alive at once.
void KernelPlan::placeValues() {
  llvm::DenseMap<const Node *, SmallVector<const Item *>> paths;
  SmallVector<const Item *> path;
  collectPaths(items, path, paths);
  for (auto &producer : nodes)
    for (auto [number, value] : llvm::enumerate(producer->op.getResults())) {
      Storage &where = storage[value];
      where.needed |= producer->accumulatesInBuffer();
      where.privateTo = producer->depth();
      ArrayRef<Position> writes = producer->writes[number];
      // The loop level at which the value is complete.
      unsigned complete = producer->accumulateFrom;
      for (auto &reader : nodes)
        for (Access &read : reader->reads) {
          if (read.root != value)
            continue;
          ArrayRef<const Item *> a = paths[producer.get()], b = paths[reader.get()];
          unsigned shared = 0;
          while (shared < a.size() && shared < b.size() && a[shared] == b[shared])
            ++shared;
          read.fromRegister = !producer->accumulatesInBuffer() && complete <= shared &&
                              read.tensor == value && ArrayRef<Position>(read.positions) == writes;
          if (read.fromRegister)
            continue;
          where.needed = true;
          where.privateTo = std::min(where.privateTo, shared);
        }
    }
}

MemRefType KernelPlan::storageType(Value tensor) const {
  MemRefType type = memrefOf(tensor.getType());
  if (!flat)
    return type;
  SmallVector<int64_t> shape;
  if (type.getNumElements() != 1)
    shape.push_back(type.getNumElements());
  return MemRefType::get(shape, type.getElementType());
}

static int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

/// Finds room for the values that need a buffer and are no result.
void KernelPlan::placeTemporaries() {
  for (auto &node : nodes)
    for (auto [number, value] : llvm::enumerate(node->op.getResults())) {
      const Storage &where = storage[value];
      if (!where.needed || where.result >= 0)
        continue;
      MemRefType whole = storageType(value);
      // A value that is returned is alive to the end, as a whole.
      bool isReturned =
          llvm::any_of(results, [&](const ResultPlan &result) { return result.root == value; });
      Temporary temporary{value, whole, llvm::SmallBitVector(whole.getRank()), temporaries.size()};
      SmallVector<int64_t> shape;
      for (auto [k, position] : llvm::enumerate(node->writes[number])) {
        temporary.dropped[k] = !isReturned && position >= 0 && position < int(where.privateTo);
        if (!temporary.dropped[k])
          shape.push_back(whole.getDimSize(k));
      }
      temporary.type = MemRefType::get(shape, whole.getElementType());
      temporaries.push_back(temporary);
    }
  // Small ones first: the most of them find place on the stack.
  llvm::sort(temporaries, [](const Temporary &x, const Temporary &y) {
    return std::pair(bytesOf(x.type), x.number) < std::pair(bytesOf(y.type), y.number);
  });
  int64_t stack = 0;
  for (Temporary &temporary : temporaries) {
    int64_t bytes = llvm::alignTo(bytesOf(temporary.type), 64);
    bool isPrivate = storage[temporary.root].privateTo > 0 &&
                     temporary.dropped.any();
    if (stack + bytes <= target.maxStackBytes && (isPrivate || !target.stackIsPrivate)) {
      stack += bytes;
      continue;
    }
    if (target.stackIsPrivate) {
      // Iterations run at the same time, so each has its own part.
      temporary.type = storageType(temporary.root);
      temporary.dropped.reset();
      bytes = llvm::alignTo(bytesOf(temporary.type), 64);
    }
    temporary.offset = workspaceBytes;
    workspaceBytes += bytes;
  }
}

bool KernelPlan::hasIndependentLoops() const {
  llvm::DenseMap<unsigned, const Item *> loopOf;
  for (const Item &item : items)
    for (const Node *node : item.nodes)
      loopOf[node->index] = &item;
  return llvm::all_of(dependences, [&](const Dependence &dependence) {
    const Item *from = loopOf.lookup(dependence.from), *to = loopOf.lookup(dependence.to);
    // What an op outside loops computes is there before they start.
    return from == to || (from->node && !dependence.overwrites);
  });
}

FailureOr<std::unique_ptr<KernelPlan>> KernelPlan::create(func::FuncOp func,
                                                           const PlanTarget &target) {
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return func.emitOpError("a kernel must have a body of one block"), failure();
  auto plan = std::make_unique<KernelPlan>();
  plan->func = func;
  plan->target = target;
  if (failed(plan->collectNodes()))
    return failure();
  plan->flatten();
  if (failed(plan->planResults()))
    return failure();
  plan->incoming.resize(plan->nodes.size());
  plan->outgoing.resize(plan->nodes.size());
  for (const Dependence &dependence : plan->dependences) {
    plan->incoming[dependence.to].push_back(&dependence);
    plan->outgoing[dependence.from].push_back(&dependence);
  }
  plan->collectReaders();
  SmallVector<Node *> list;
  for (auto &node : plan->nodes)
    list.push_back(node.get());
  plan->items = plan->fuse(list, 0);
  plan->placeValues();
  plan->placeTemporaries();
  return plan;
}

} // namespace shoal::codegen
