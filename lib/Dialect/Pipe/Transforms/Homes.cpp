// On which ranks of a pipeline the values of a step are that its stages do not make.
#include "Homes.h"

#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;

namespace shoal::pipe {

using llvm::BitVector;

bool Homes::need(Value value, const BitVector &by) {
  BitVector &ranks = needs[value];
  if (BitVector fresh = by; !fresh.reset(ranks).any())
    return false;
  ranks |= by;
  return true;
}

void Homes::follow(Operation *op) {
  bool areFree = true, isSum = false;
  BitVector common(ranks, true), any(ranks);
  for (Value operand : op->getOperands()) {
    isSum |= pending.contains(operand);
    if (isFree(operand))
      continue;
    areFree = false;
    common &= get(operand);
    any |= get(operand);
  }
  if (areFree)
    return;
  BitVector partly = needs.lookup(op->getNumResults() == 1 ? op->getResult(0) : Value());
  partly &= any;
  isSum = isa<nn::AddOp>(op) && (isSum || common.none() || partly.reset(common).any());
  for (Value operand : op->getOperands())
    if (!isSum || !operand.hasOneUse())
      pending.erase(operand);
  if (isSum)
    sums.insert(op);
  for (Value result : op->getResults()) {
    set(result, isSum ? any : common.any() ? common : BitVector(ranks, true));
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

/// The region's results are on the ranks that make terms of them.
static void placeSums(dist::AccumulateOp loop, const Shape &shape, Homes &homes) {
  Operation *yield = loop.getBody().front().getTerminator();
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), yield->getOperands())) {
    BitVector home(shape.ranks);
    for (Value term : dist::collectTerms(value, yield))
      home.set(shape.getRank(term.getDefiningOp<CallOp>().getStage()));
    homes.set(result, home);
  }
}

using Updates = SmallVector<std::pair<Value, Value>>; // an argument, and what replaces it

/// Who needs what: stages what they read, and a rank that makes a value all that the value is made of.
static void findNeeds(func::FuncOp func, dist::AccumulateOp loop, const Updates &updates, const ReadersOf &readers,
                      Homes &homes) {
  DenseMap<Value, SmallVector<Value, 1>> replacing;
  for (auto [argument, value] : updates)
    replacing[argument].push_back(value);
  SmallVector<std::pair<Value, BitVector>> work;
  auto need = [&](Value value, const BitVector &by) {
    if (by.any() && homes.need(value, by))
      work.push_back({value, by});
  };
  for (auto &[argument, of] : readers.arguments)
    need(argument, of.stages);
  for (auto &[op, of] : readers.ops)
    for (Value result : op->getResults())
      need(result, of.stages);
  while (!work.empty()) {
    auto [value, by] = work.pop_back_val();
    for (Value next : replacing.lookup(value))
      need(next, by);
    if (Operation *def = value.getDefiningOp(); def && def != loop)
      for (Value operand : def->getOperands())
        need(operand, by);
  }
}

Homes placeArguments(func::FuncOp func, dist::AccumulateOp loop, const Shape &shape, const ReadersOf &readers) {
  Block &block = func.getBody().front();
  Updates updates;
  for (auto [value, number] : llvm::zip_equal(block.getTerminator()->getOperands(), nn::updatedArguments(func)))
    if (number)
      updates.push_back({func.getArgument(*number), value});
  // What is computed from an argument is where the argument is, another's new value, too.
  Homes arguments(shape.ranks);
  findNeeds(func, loop, updates, readers, arguments);
  Homes sums = arguments;
  placeSums(loop, shape, sums);
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
