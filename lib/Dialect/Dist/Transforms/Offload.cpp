// dist-offload: what only the optimizer touches lies in the host's memory.
#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "shoal/Dialect/Dist/IR/Memory.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/IR/BuiltinOps.h"

namespace shoal::dist {
#define GEN_PASS_DEF_OFFLOADPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

bool updatesParameter(FunctionOpInterface func) {
  return llvm::any_of(nn::updatedArguments(func), [&](std::optional<unsigned> argument) {
    return argument && nn::getArgRole(func, *argument) == nn::ArgRole::Param;
  });
}

struct OffloadPass : dist::impl::OffloadPassBase<OffloadPass> {
  void runOnOperation() override {
    auto host = StringAttr::get(&getContext(), kHostMemory);
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal() || !nn::isModel(func))
        continue;
      bool found = false;
      SignatureEdit signature(func);
      for (unsigned i = 0; i < func.getNumArguments(); ++i)
        if (isOfOptimizer(func, i)) {
          signature.setArgAttr(i, kMemoryAttr, host);
          found = true;
        }
      if (!found && updatesParameter(func)) {
        func.emitOpError()
            << "has neither state of an optimizer nor masters that could lie on the host; needs an optimizer with "
               "state or bf16, or no offload";
        return signalPassFailure();
      }
    }
  }
};

} // namespace
