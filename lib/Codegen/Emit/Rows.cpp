// The rank programs of a module.
#include "Rows.h"

using namespace mlir;

namespace shoal::codegen {

FailureOr<Programs> findPrograms(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<exec::ProgramOp>());
  if (programs.size() == 1)
    return Programs{programs.front(), {}};
  if (programs.size() == 2) {
    if (programs[0].getMode() == exec::Mode::eval)
      std::swap(programs[0], programs[1]);
    if (programs[0].getMode() == exec::Mode::train && programs[1].getMode() == exec::Mode::eval)
      return Programs{programs[0], programs[1]};
  }
  return module.emitError() << "expected one exec.program, or one of training and one of evaluation, got: "
                            << programs.size();
}

} // namespace shoal::codegen
