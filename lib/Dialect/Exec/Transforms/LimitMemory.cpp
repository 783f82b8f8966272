// exec-limit-memory: the arena beside what a rank may hold.
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_LIMITMEMORYPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

struct LimitMemory : impl::LimitMemoryPassBase<LimitMemory> {
  using LimitMemoryPassBase::LimitMemoryPassBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      int64_t arena = program.getArena();
      if (arena <= limit)
        continue;
      auto error = emitError(program.getLoc())
                   << "a rank may hold " << limit.getValue() << " bytes, its arena needs " << arena;
      if (BytesAttr bytes = program.getBytesAttr())
        error << ": at most " << bytes.getParams() << " of parameters, " << bytes.getGrads() << " of gradients, "
              << bytes.getOptimizer() << " of optimizer state, " << bytes.getActivations() << " of activations, "
              << bytes.getWorkspace() << " of workspace at once";
      error << "; take more ranks or micro-batches, --recompute or --zero";
      return signalPassFailure();
    }
  }
};

} // namespace

} // namespace shoal::exec
