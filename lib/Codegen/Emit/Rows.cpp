// The rank programs of a module.
#include "Rows.h"

#include "shoal/Codegen/Emit.h"

using namespace mlir;

namespace shoal::codegen {

LogicalResult checkOneMemory(ModuleOp module) {
  for (auto program : module.getOps<exec::ProgramOp>())
    for (Operation &op : program.getBody().front()) {
      if (!isa<exec::ArgOp, exec::BufferOp>(op) || exec::getMemory(op.getResult(0)) == exec::Memory::device)
        continue;
      auto argument = dyn_cast<exec::ArgOp>(op);
      return emitError(op.getLoc()) << (argument ? "\"" + argument.getName().str() + "\"" : "a buffer")
                                    << " lies in the memory of a device's host (dist.memory), which on --target cpu is "
                                    << "the device's own; leave dist.memory out";
    }
  return success();
}

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
