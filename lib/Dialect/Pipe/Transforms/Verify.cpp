// pipe-verify: schedules that cannot run are refused.
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Schedule/Check.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_VERIFYPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

class VerifyPass : public impl::VerifyPassBase<VerifyPass> {
public:
  using VerifyPassBase::VerifyPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    if (failed(mlir::verify(getOperation())))
      return signalPassFailure();
    bool hasGradients = llvm::any_of(getOperation().getOps<func::FuncOp>(), nn::hasGradient);
    getOperation().walk([&](ScheduleOp op) {
      std::optional<Fault> fault = check(op.getSchedule(), hasGradients);
      if (!fault)
        return;
      InFlightDiagnostic error = op.emitError() << fault->message;
      for (const std::string &note : fault->notes)
        error.attachNote() << note;
      signalPassFailure();
    });
  }
};

} // namespace

} // namespace shoal::pipe
