// dist-offload: what only the optimizer touches lies in the host's memory.
#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "shoal/Dialect/Dist/IR/Memory.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::dist {
#define GEN_PASS_DEF_OFFLOADPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

struct OffloadPass : dist::impl::OffloadPassBase<OffloadPass> {
  void runOnOperation() override {
    auto host = StringAttr::get(&getContext(), kHostMemory);
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      if (!func.isExternal() && nn::isModel(func))
        for (unsigned i = 0; i < func.getNumArguments(); ++i)
          if (isOfOptimizer(func, i))
            func.setArgAttr(i, kMemoryAttr, host);
  }
};

} // namespace
