// Which ranks keep what a step replaces: where its new value is, foretold from the region that is not yet unrolled.
#include "shoal/Dialect/Pipe/Transforms/KeptRanks.h"

#include "PlaceRest.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;

namespace shoal::pipe {

using llvm::BitVector;

/// The ranks that make terms of the region's results.
static Homes findHomesOfSums(dist::AccumulateOp loop, const Shape &shape) {
  Homes homes;
  Operation *yield = loop.getBody().front().getTerminator();
  for (auto [result, value] : llvm::zip_equal(loop.getResults(), yield->getOperands())) {
    BitVector &home = homes[result] = BitVector(shape.ranks);
    for (Value term : dist::collectTerms(value, yield))
      home.set(shape.getRank(term.getDefiningOp<CallOp>().getStage()));
  }
  return homes;
}

/// Where placeRest is going to have what the ops make.
static void findHomes(ArrayRef<Operation *> ops, unsigned ranks, Homes &homes) {
  DenseSet<Value> sums; // of terms of several ranks, not yet read
  for (Operation *op : ops) {
    BitVector home = getHomeOfOperands(homes, op, ranks);
    bool isSum = false;
    if (auto add = dyn_cast<nn::AddOp>(op)) {
      BitVector lhs = getHome(homes, add.getLhs(), ranks), rhs = getHome(homes, add.getRhs(), ranks);
      isSum = isSpread(lhs, rhs) || sums.contains(add.getLhs()) || sums.contains(add.getRhs());
      if (isSum)
        home = lhs |= rhs;
    }
    for (Value operand : op->getOperands())
      if (!isSum || !operand.hasOneUse())
        sums.erase(operand);
    if (home.none()) // handed to all
      home.set();
    for (Value result : op->getResults()) {
      homes[result] = home;
      if (isSum)
        sums.insert(result);
    }
  }
}

Homes placeArguments(func::FuncOp func, dist::AccumulateOp loop, const Shape &shape, PipeAxis axis) {
  unsigned ranks = axis.getSize();
  Block &block = func.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator())
    if (&op != loop)
      ops.push_back(&op);
  SmallVector<std::pair<Value, Value>> updates;
  for (auto [value, number] : llvm::zip_equal(block.getTerminator()->getOperands(), nn::updatedArguments(func)))
    if (number)
      updates.push_back({func.getArgument(*number), value});
  // What is computed from an argument is where the argument is, another's new value, too.
  Homes sums = findHomesOfSums(loop, shape), arguments;
  bool changed = true;
  for (size_t round = 0; changed && round <= updates.size(); ++round) {
    changed = false;
    Homes found = sums;
    found.insert(arguments.begin(), arguments.end());
    findHomes(ops, ranks, found);
    for (auto [argument, value] : updates)
      if (BitVector home = getHome(found, value, ranks); home != getHome(arguments, argument, ranks)) {
        arguments[argument] = home;
        changed = true;
      }
  }
  return arguments;
}

llvm::StringMap<BitVector> findKeptRanks(func::FuncOp step) {
  llvm::StringMap<BitVector> kept;
  auto module = step->getParentOfType<ModuleOp>();
  dist::MeshOp mesh = dist::lookupMesh(module);
  StringAttr axis = mesh ? dist::getPipeAxis(mesh.getMesh()) : StringAttr();
  auto schedules = module.getOps<ScheduleOp>();
  if (!axis || schedules.empty() || step.isExternal())
    return kept;
  for (auto loop : step.getBody().front().getOps<dist::AccumulateOp>()) {
    if (loop.getBody().front().getOps<CallOp>().empty())
      continue;
    Schedule schedule = (*schedules.begin()).getSchedule();
    for (auto &[value, home] : placeArguments(step, loop, schedule.shape, {mesh.getMesh(), axis}))
      kept[nn::getArgName(step, cast<BlockArgument>(value).getArgNumber())] = home;
  }
  return kept;
}

} // namespace shoal::pipe
