// Which ranks keep what a step replaces, foretold from the region that is not yet unrolled.
#include "shoal/Dialect/Pipe/Transforms/KeptRanks.h"

#include "Homes.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/IR/Pipe.h"

using namespace mlir;

namespace shoal::pipe {

using llvm::BitVector;

llvm::StringMap<BitVector> findKeptRanks(func::FuncOp step) {
  llvm::StringMap<BitVector> kept;
  auto module = step->getParentOfType<ModuleOp>();
  auto schedules = module.getOps<ScheduleOp>();
  if (!dist::hasPipeline(module) || schedules.empty() || step.isExternal())
    return kept;
  for (auto loop : step.getBody().front().getOps<dist::AccumulateOp>()) {
    if (loop.getBody().front().getOps<CallOp>().empty())
      continue;
    Schedule schedule = (*schedules.begin()).getSchedule();
    Homes homes = placeArguments(step, loop, schedule.shape, findReaders(step, loop, schedule.shape));
    for (BlockArgument argument : step.getArguments())
      if (!homes.isFree(argument))
        kept[nn::getArgName(step, argument.getArgNumber())] = homes.get(argument);
  }
  return kept;
}

} // namespace shoal::pipe
