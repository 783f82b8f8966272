// dist-offload: what only the optimizer touches lies in the host's memory.
#include "shoal/Dialect/Dist/Transforms/Passes.h"

#include "shoal/Dialect/Dist/IR/Memory.h"
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
  nn::ArgTable arguments(func);
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (auto name = dyn_cast_or_null<StringAttr>(func.getResultAttr(i, nn::NNDialect::kUpdatesAttr)))
      if (std::optional<unsigned> argument = arguments.find(name.getValue()))
        if (nn::getArgRole(func, *argument) == nn::ArgRole::Param)
          return true;
  return false;
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
