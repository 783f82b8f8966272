// Parameters that lie sharded and are put together for each use: that nothing keeps them whole.
#include "VerifyLocal.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Lowering.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace shoal::dist {

namespace {

class PerUseVerifier {
public:
  explicit PerUseVerifier(FunctionOpInterface func) : func(func), parts(func) {}

  LogicalResult verify() {
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto flat = func.getArgAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr);
      if (flat && flat.getPerUse() && failed(verifyShard(func.getArgument(i), nn::getArgName(func, i), flat)))
        return failure();
    }
    return success();
  }

private:
  /// Follows a shard, also in another type, to where it is gathered.
  LogicalResult verifyShard(Value shard, StringRef name, FlatAttr flat) {
    for (Operation *user : shard.getUsers()) {
      auto gather = dyn_cast<AllGatherOp>(user);
      if (gather && llvm::any_of(flat.getAxes(), [&](StringAttr axis) { return gather.getAxes().contains(axis); })) {
        readers.clear();
        collectReaders(gather);
        if (failed(verifyReaders(gather, name)))
          return failure();
      } else if (isa<nn::CastOp>(user) && failed(verifyShard(user->getResult(0), name, flat))) {
        return failure();
      }
    }
    return success();
  }

  /// Who reads a value, in another shape or order too.
  void collectReaders(Operation *op) {
    for (Operation *user : op->getUsers())
      if (isa<PackOp, UnpackOp>(user) || lowersAs(user, LoweringKind::View))
        collectReaders(user);
      else
        readers.push_back(user);
  }

  LogicalResult verifyReaders(AllGatherOp gather, StringRef name) {
    Operation *forward = nullptr, *backward = nullptr;
    for (Operation *reader : readers) {
      if (reader->getBlock() != gather->getBlock()) {
        InFlightDiagnostic diag = gather.emitOpError("puts parameter \"")
                                  << name << "\" together for all micro-batches: what lies flat per_use is gathered in each";
        diag.attachNote(reader->getLoc()) << "read here";
        return diag;
      }
      StepParts::Part part = parts.get(reader);
      if (part == StepParts::Forward)
        forward = reader;
      if (part == StepParts::Backward)
        backward = reader;
    }
    if (!forward || !backward)
      return success();
    InFlightDiagnostic diag = gather.emitOpError("keeps parameter \"")
                              << name << "\" whole from the forward to the backward pass: what lies flat per_use is "
                              << "gathered for each of them";
    diag.attachNote(forward->getLoc()) << "read by the forward pass here";
    diag.attachNote(backward->getLoc()) << "read by the backward pass here";
    return diag;
  }

  FunctionOpInterface func;
  StepParts parts;
  SmallVector<Operation *> readers;
};

} // namespace

LogicalResult verifyPerUse(FunctionOpInterface func) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (func.getArgAttr(i, DistDialect::kFlatAttr))
      return PerUseVerifier(func).verify();
  return success();
}

} // namespace shoal::dist
