// How large a tensor of the interpreter may be: it runs before anything else would find out.
#include "shoal/Interpreter/Tensor.h"

#include "mlir/IR/Diagnostics.h"

#include <unistd.h>

using namespace mlir;

namespace shoal::interp {

LogicalResult checkFits(Location loc, RankedTensorType type) {
  static const int64_t kMemory = int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (!type.hasStaticShape() || type.getNumElements() <= kMemory / int64_t(sizeof(double)))
    return success();
  return emitError(loc) << "a value must fit the " << kMemory
                        << " bytes of this machine to be interpreted, got: " << type;
}

} // namespace shoal::interp
