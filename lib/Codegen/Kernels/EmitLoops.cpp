// Writes the planned tree of loops, with accumulators as loop-carried values and everything else as
// loads and stores.
#include "LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::codegen {

Value LoopEmitter::index(int64_t value) { return b.create<arith::ConstantIndexOp>(loc, value); }
Value LoopEmitter::constant(TypedAttr value) { return b.create<arith::ConstantOp>(loc, value); }

// Reading and writing.

SmallVector<Value> LoopEmitter::indices(Value root, ArrayRef<Position> positions) {
  SmallVector<Value> result;
  auto drop = dropped.find(root);
  for (auto [k, position] : llvm::enumerate(positions)) {
    if (drop != dropped.end() && drop->second[k])
      continue;
    result.push_back(position == kZero ? index(0) : ivs[position]);
  }
  return result;
}

/// The element of a tensor at this iteration; `computed` holds all indices of a tensor.extract.
Value LoopEmitter::read(Node &node, const Access &access, ValueRange computed) {
  if (access.fromRegister) {
    auto found = llvm::find_if(llvm::reverse(registers),
                               [&](auto &entry) { return entry.first == access.root; });
    return found->second;
  }
  if (auto splat = access.root.getDefiningOp<arith::ConstantOp>())
    if (auto elements = dyn_cast<SplatElementsAttr>(splat.getValue()))
      return constant(cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  Value buffer = buffers.lookup(access.tensor);
  if (computed.empty() && llvm::is_contained(access.positions, kComputed)) {
    // An operand of the op itself, seen through a view: its own map has the positions.
    AffineMap map;
    for (OpOperand *input : node.op.getDpsInputOperands())
      if (&access == &node.reads[input->getOperandNumber()])
        map = node.op.getMatchingIndexingMap(input);
    SmallVector<Value> where;
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      Position position = dim ? node.loopOf[dim.getPosition()] : kZero;
      where.push_back(position == kZero ? index(0) : ivs[position]);
    }
    return b.create<memref::LoadOp>(loc, buffer, where);
  }
  SmallVector<Value> where;
  auto drop = dropped.find(access.tensor);
  for (auto [k, position] : llvm::enumerate(access.positions)) {
    if (drop != dropped.end() && drop->second[k])
      continue;
    where.push_back(!computed.empty() ? computed[k] : position == kZero ? index(0) : ivs[position]);
  }
  return b.create<memref::LoadOp>(loc, buffer, where);
}

void LoopEmitter::store(Value root, ArrayRef<Position> positions, Value value) {
  b.create<memref::StoreOp>(loc, value, buffers[root], indices(root, positions));
}

/// The constant a reduction starts from.
Value LoopEmitter::initial(Node &node, unsigned result) {
  auto fill = node.op.getDpsInits()[result].getDefiningOp<linalg::FillOp>();
  return constant(fill.getInputs()[0].getDefiningOp<arith::ConstantOp>().getValue());
}

// Loops.

void LoopEmitter::emitNest(ArrayRef<int64_t> sizes, function_ref<void(ValueRange)> body) {
  SmallVector<Value> at;
  OpBuilder::InsertionGuard guard(b);
  for (int64_t size : sizes) {
    if (size == 1) {
      at.push_back(index(0));
      continue;
    }
    auto loop = b.create<scf::ForOp>(loc, index(0), index(size), index(1));
    b.setInsertionPointToStart(loop.getBody());
    at.push_back(loop.getInductionVar());
  }
  body(at);
}

/// Sets the accumulators in buffers, over the dimensions that run inside the reduction.
void LoopEmitter::emitFill(Node &node, unsigned depth) {
  for (auto [number, result] : llvm::enumerate(node.op.getResults())) {
    SmallVector<int64_t> sizes;
    for (unsigned d = depth; d < node.depth(); ++d)
      sizes.push_back(llvm::is_contained(node.writes[number], Position(d)) ? node.sizes[d] : 1);
    Value start = initial(node, number);
    emitNest(sizes, [&, number = number, result = result](ValueRange at) {
      SmallVector<Value> outer = ivs;
      ivs.append(at.begin(), at.end());
      store(result, node.writes[number], start);
      ivs = outer;
    });
  }
}

void LoopEmitter::emitStatement(Node &node, Accumulators &accumulators) {
  linalg::GenericOp op = node.op;
  IRMapping mapping;
  Block *body = op.getBody();
  unsigned numInputs = op.getNumDpsInputs();
  for (unsigned k = 0; k < numInputs; ++k)
    if (!body->getArgument(k).use_empty())
      mapping.map(body->getArgument(k), read(node, node.reads[k]));
  bool inRegisters = node.accumulateFrom < node.depth();
  for (auto [k, result] : llvm::enumerate(op.getResults())) {
    BlockArgument argument = body->getArgument(numInputs + k);
    if (argument.use_empty())
      continue;
    if (inRegisters)
      mapping.map(argument, accumulators.lookup(result));
    else if (node.hasReduction())
      mapping.map(argument, Value(b.create<memref::LoadOp>(loc, buffers[result],
                                                           indices(result, node.writes[k]))));
    else if (auto fill = op.getDpsInits()[k].getDefiningOp<linalg::FillOp>())
      mapping.map(argument, initial(node, k));
    else
      mapping.map(argument, constant(b.getZeroAttr(argument.getType())));
  }
  auto mapOutsideConstant = [&](Value value) {
    if (auto number = value.getDefiningOp<arith::ConstantOp>(); number && !mapping.contains(value))
      mapping.map(value, constant(number.getValue()));
  };
  for (Operation &inner : body->without_terminator()) {
    if (auto position = dyn_cast<linalg::IndexOp>(inner)) {
      Position loop = node.loopOf[position.getDim()];
      mapping.map(position.getResult(), loop == kZero ? index(0) : ivs[loop]);
    } else if (auto extract = dyn_cast<tensor::ExtractOp>(inner)) {
      SmallVector<Value> where;
      for (Value at : extract.getIndices()) {
        mapOutsideConstant(at);
        where.push_back(mapping.lookup(at));
      }
      mapping.map(extract.getResult(), read(node, node.reads[node.extractReads[extract]], where));
    } else if (auto number = dyn_cast<arith::ConstantOp>(inner)) {
      mapping.map(number.getResult(), constant(number.getValue()));
    } else {
      for (Value operand : inner.getOperands())
        mapOutsideConstant(operand);
      b.clone(inner, mapping);
    }
  }
  for (auto [k, result] : llvm::enumerate(op.getResults())) {
    Value yielded = body->getTerminator()->getOperand(k);
    mapOutsideConstant(yielded);
    Value value = mapping.lookup(yielded);
    if (inRegisters) {
      accumulators[result] = value;
      continue;
    }
    if (plan.storage[result].needed)
      store(result, node.writes[k], value);
    if (!node.hasReduction())
      registers.push_back({result, value});
  }
}

void LoopEmitter::emitPartOfLoop(const Item &loop, unsigned depth, Value lower, Value upper,
                                 Value step, ArrayRef<Value> carried, Accumulators &accumulators) {
  SmallVector<Value> start;
  for (Value result : carried)
    start.push_back(accumulators.lookup(result));
  auto forOp = b.create<scf::ForOp>(loc, lower, upper, step, start);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forOp.getBody());
    for (auto [result, argument] : llvm::zip_equal(carried, forOp.getRegionIterArgs()))
      accumulators[result] = argument;
    ivs.push_back(forOp.getInductionVar());
    size_t visible = registers.size();
    emitItems(loop.children, depth + 1, accumulators);
    registers.resize(visible);
    ivs.pop_back();
    SmallVector<Value> next;
    for (Value result : carried)
      next.push_back(accumulators.lookup(result));
    if (!carried.empty())
      b.create<scf::YieldOp>(loc, next);
  }
  for (auto [result, value] : llvm::zip_equal(carried, forOp.getResults()))
    accumulators[result] = value;
}

/// The op that joins two partial accumulators of a node's result, or null.
static Operation *combiner(Node &node, unsigned result) {
  Block *body = node.op.getBody();
  Operation *op = body->getTerminator()->getOperand(result).getDefiningOp();
  Value accumulator = body->getArgument(node.op.getNumDpsInputs() + result);
  if (!op || op->getNumOperands() != 2 || op->getOperand(0) == op->getOperand(1) ||
      !isa<arith::AddFOp, arith::AddIOp, arith::MaximumFOp, arith::MinimumFOp, arith::MaxSIOp,
           arith::MinSIOp>(op))
    return nullptr;
  return llvm::is_contained(op->getOperands(), accumulator) && accumulator.hasOneUse() ? op
                                                                                       : nullptr;
}

Value LoopEmitter::join(const std::pair<Node *, unsigned> &owner, Value left, Value right) {
  Operation *op = b.clone(*combiner(*owner.first, owner.second));
  op->setOperands({left, right});
  return op->getResult(0);
}

SmallVector<Value> LoopEmitter::current(const Reductions &reductions, Accumulators &accumulators) {
  return llvm::map_to_vector(reductions.carried,
                             [&](Value result) { return accumulators.lookup(result); });
}

void LoopEmitter::restart(const Reductions &reductions, Accumulators &accumulators) {
  for (auto [result, owner] : llvm::zip_equal(reductions.carried, reductions.owners))
    accumulators[result] = initial(*owner.first, owner.second);
}

LoopEmitter::Reductions LoopEmitter::beginReductions(const Item &loop, unsigned depth,
                                                     Accumulators &accumulators) {
  Reductions reductions;
  for (Node *node : loop.nodes) {
    if (node->accumulatesInBuffer() && node->firstReduction == depth)
      emitFill(*node, depth);
    if (node->accumulateFrom > depth || node->accumulateFrom == node->depth())
      continue;
    for (auto [k, result] : llvm::enumerate(node->op.getResults())) {
      reductions.carried.push_back(result);
      reductions.owners.push_back({node, k});
      if (node->accumulateFrom != depth)
        continue;
      accumulators[result] = node->accumulatesInBuffer()
                                 ? Value(b.create<memref::LoadOp>(loc, buffers[result],
                                                                  indices(result, node->writes[k])))
                                 : initial(*node, k);
    }
  }
  reductions.canJoin =
      !reductions.carried.empty() && llvm::all_of(reductions.owners, [](auto &owner) {
        return combiner(*owner.first, owner.second);
      });
  return reductions;
}

void LoopEmitter::endReductions(const Reductions &reductions, unsigned depth,
                                Accumulators &accumulators) {
  for (auto [result, owner] : llvm::zip_equal(reductions.carried, reductions.owners)) {
    auto [node, k] = owner;
    if (node->accumulateFrom != depth)
      continue;
    Value value = accumulators.lookup(result);
    if (plan.storage[result].needed)
      store(result, node->writes[k], value);
    if (!node->accumulatesInBuffer())
      registers.push_back({result, value});
  }
}

void LoopEmitter::emitLoop(const Item &loop, unsigned depth, Accumulators &accumulators) {
  Reductions reductions = beginReductions(loop, depth, accumulators);
  ArrayRef<Value> carried = reductions.carried;
  // Long sums are sums of partial sums: each loop of a reduction, and each block of a long loop,
  // starts anew and is added to what was there.
  auto restarted = [&](ArrayRef<Value> before, Value lower, int64_t size) {
    restart(reductions, accumulators);
    Value upper = b.createOrFold<arith::AddIOp>(loc, lower, index(size));
    emitPartOfLoop(loop, depth, lower, upper, index(1), carried, accumulators);
    for (auto [k, result] : llvm::enumerate(carried))
      accumulators[result] = join(reductions.owners[k], before[k], accumulators.lookup(result));
  };
  bool isInnermost = llvm::all_of(loop.children, [](const Item &child) { return child.node; });
  bool isFirst = llvm::all_of(reductions.owners, [&](auto &owner) {
    return owner.first->accumulateFrom == depth && !owner.first->accumulatesInBuffer();
  });
  int64_t blocks =
      reductions.canJoin && isInnermost && loop.size > 2 * kSumBlock ? loop.size / kSumBlock : 0;
  if (blocks > 0) {
    auto outer = b.create<scf::ForOp>(loc, index(0), index(blocks * kSumBlock), index(kSumBlock),
                                      current(reductions, accumulators));
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(outer.getBody());
      restarted(llvm::to_vector_of<Value>(outer.getRegionIterArgs()), outer.getInductionVar(),
                kSumBlock);
      b.create<scf::YieldOp>(loc, current(reductions, accumulators));
    }
    for (auto [result, value] : llvm::zip_equal(carried, outer.getResults()))
      accumulators[result] = value;
    if (int64_t rest = loop.size - blocks * kSumBlock)
      restarted(current(reductions, accumulators), index(blocks * kSumBlock), rest);
  } else if (reductions.canJoin && !isFirst) {
    restarted(current(reductions, accumulators), index(0), loop.size);
  } else {
    emitPartOfLoop(loop, depth, index(0), index(loop.size), index(1), carried, accumulators);
  }
  endReductions(reductions, depth, accumulators);
}

void LoopEmitter::emitItems(ArrayRef<Item> items, unsigned depth, Accumulators &accumulators) {
  for (const Item &item : items) {
    if (item.node)
      emitStatement(*item.node, accumulators);
    else
      emitLoop(item, depth, accumulators);
  }
}

/// Fills a destination from a tensor that no node writes there.
void LoopEmitter::emitCopy(Value from, Value to) {
  auto type = cast<MemRefType>(to.getType());
  Value root = stripViews(from);
  Value number;
  if (auto splat = root.getDefiningOp<arith::ConstantOp>())
    if (auto elements = dyn_cast<SplatElementsAttr>(splat.getValue()))
      number = constant(cast<TypedAttr>(elements.getSplatValue<Attribute>()));
  if (auto fill = root.getDefiningOp<linalg::FillOp>())
    number = constant(fill.getInputs()[0].getDefiningOp<arith::ConstantOp>().getValue());
  Value source = number ? Value() : view(buffers.lookup(root), type);
  emitNest(type.getShape(), [&](ValueRange at) {
    Value element = number ? number : Value(b.create<memref::LoadOp>(loc, source, at));
    b.create<memref::StoreOp>(loc, element, to, at);
  });
}

void LoopEmitter::emitOperandCopies() {
  Operation *terminator = old.getBody().front().getTerminator();
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (isa<BlockArgument>(result.root) && !result.nothing)
      emitCopy(terminator->getOperand(k), destinations[k]);
}

void LoopEmitter::emitResultCopies() {
  Operation *terminator = old.getBody().front().getTerminator();
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (!isa<BlockArgument>(result.root) && !result.direct)
      emitCopy(terminator->getOperand(k), destinations[k]);
}

LogicalResult LoopEmitter::emitBody() {
  // Operands that are returned are copied before anything overwrites them, the rest when it is
  // there.
  emitOperandCopies();
  Accumulators accumulators;
  emitItems(plan.items, 0, accumulators);
  emitResultCopies();
  return success();
}

LogicalResult LoopEmitter::run() {
  createBuffers();
  if (failed(createConstants()) || failed(emitBody()))
    return failure();
  createReturn();
  describeArguments();
  old.erase();
  return success();
}

} // namespace shoal::codegen
