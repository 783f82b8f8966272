// On which ranks of a pipeline the values of a step are that its stages do not make.
#include "Homes.h"

#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;

namespace shoal::pipe {

using llvm::BitVector;

void Homes::follow(Operation *op) {
  bool isSum = false;
  if (isa<nn::AddOp>(op)) {
    Value lhs = op->getOperand(0), rhs = op->getOperand(1);
    isSum = pending.contains(lhs) || pending.contains(rhs) || (!isFree(lhs) && !isFree(rhs) && get(lhs) != get(rhs));
  }
  BitVector home(ranks, !isSum);
  bool isAllFree = true;
  for (Value operand : op->getOperands()) {
    if (!isSum || !operand.hasOneUse())
      pending.erase(operand);
    if (isFree(operand))
      continue;
    isAllFree = false;
    if (isSum)
      home |= get(operand);
    else
      home &= get(operand);
  }
  if (isAllFree)
    return;
  if (home.none())
    home.set();
  if (isSum)
    sums.insert(op);
  for (Value result : op->getResults()) {
    set(result, home);
    if (isSum)
      pending.insert(result);
  }
}

ReadersOf findReaders(func::FuncOp func, dist::AccumulateOp loop, const Shape &shape) {
  ReadersOf found;
  Block &body = loop.getBody().front();
  auto find = [&](ValueRange values) {
    Readers readers{BitVector(shape.ranks)};
    for (Value value : values)
      for (Operation *user : value.getUsers()) {
        if (auto call = dyn_cast<CallOp>(user); call && call->getBlock() == &body) {
          readers.stages.set(shape.getRank(call.getStage()));
        } else if (auto through = found.ops.find(user); through != found.ops.end()) {
          readers.stages |= through->second.stages;
          readers.rest |= through->second.rest;
        } else {
          readers.rest = true;
        }
      }
    return readers;
  };
  for (Operation *op = loop->getPrevNode(); op; op = op->getPrevNode())
    found.ops.insert({op, find(op->getResults())});
  for (BlockArgument argument : func.getArguments())
    found.arguments.insert({argument, find(argument)});
  return found;
}

/// The ranks that make terms of the region's results.
static Homes findHomesOfSums(dist::AccumulateOp loop, const Shape &shape) {
  Homes homes(shape.ranks);
  Operation *yield = loop.getBody().front().getTerminator();
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), yield->getOperands())) {
    BitVector home(shape.ranks);
    for (Value term : dist::collectTerms(value, yield))
      home.set(shape.getRank(term.getDefiningOp<CallOp>().getStage()));
    homes.set(result, home);
  }
  return homes;
}

Homes placeArguments(func::FuncOp func, dist::AccumulateOp loop, const Shape &shape, const ReadersOf &readers) {
  Block &block = func.getBody().front();
  SmallVector<std::pair<Value, Value>> updates;
  for (auto [value, number] : llvm::zip_equal(block.getTerminator()->getOperands(), nn::updatedArguments(func)))
    if (number)
      updates.push_back({func.getArgument(*number), value});
  // What is computed from an argument is where the argument is, another's new value, too.
  Homes sums = findHomesOfSums(loop, shape), arguments(shape.ranks);
  bool changed = true;
  for (size_t round = 0; changed && round <= updates.size(); ++round) {
    changed = false;
    Homes found = sums;
    for (auto [argument, value] : updates)
      if (!arguments.isFree(argument))
        found.set(argument, arguments.get(argument));
    for (Operation &op : block.without_terminator())
      if (&op != loop)
        found.follow(&op);
    for (auto [argument, value] : updates) {
      if (found.isFree(value))
        continue;
      BitVector home = found.get(value);
      home |= readers.arguments.lookup(argument).stages;
      if (!arguments.isFree(argument) && arguments.get(argument) == home)
        continue;
      arguments.set(argument, home);
      changed = true;
    }
  }
  return arguments;
}

} // namespace shoal::pipe
