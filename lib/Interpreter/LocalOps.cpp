// Evaluation of the ops that a rank computes alone.
#include "LocalOps.h"

#include "NNReference.h"

#include "shoal/Dialect/Dist/IR/Positions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::interp {
namespace {

void appendElements(Tensor &to, int64_t &at, const Tensor &from, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k, ++at)
    to.copy(at, from, k);
}

// pack and unpack alike: the ranges of the operands, one after another.
template <typename OpT> Results concatenateRanges(OpT op, Value result, Operands in) {
  Tensor out(cast<RankedTensorType>(result.getType()));
  int64_t at = 0;
  for (auto [input, begin, end] : llvm::zip_equal(in, op.getBegins(), op.getEnds()))
    appendElements(out, at, *input, begin, end);
  return single(std::move(out));
}

// Control flow at L2 depends only on positions and constants: scalar ops, computed by their folders.
Results evaluateScalar(Operation *op, Operands in, dist::MeshAttr mesh, int64_t position) {
  auto isScalar = [](Type type) { return type.isIntOrIndex(); };
  if (!op->getNumResults() || !llvm::all_of(op->getResultTypes(), isScalar) ||
      !llvm::all_of(op->getOperandTypes(), isScalar))
    return op->emitError() << "'" << op->getName()
                           << "' is not a scalar integer op: the interpreter does not run it";
  FailureOr<SmallVector<Attribute>> folded =
      dist::foldAt(op, mesh, position, [&](Value operand) -> FailureOr<Attribute> {
        auto number = llvm::find(op->getOperands(), operand) - op->operand_begin();
        return IntegerAttr::get(operand.getType(), in[number]->i[0]);
      });
  if (failed(folded))
    return failure();
  SmallVector<Tensor> results;
  for (auto [result, attr] : llvm::zip_equal(op->getResults(), *folded)) {
    FailureOr<int64_t> value = dist::readInteger(op->getLoc(), attr);
    if (failed(value))
      return failure();
    results.push_back(makeScalar(result.getType(), *value));
  }
  return results;
}

// Ops whose result depends on where the rank is.
FailureOr<int64_t> positionAlong(Operation *op, dist::AxesAttr axes, dist::MeshAttr mesh,
                                 int64_t position) {
  if (!mesh)
    return op->emitError() << "'" << op->getName()
                           << "' needs a mesh: the program runs on one device here";
  return mesh.getIndexAlong(position, axes.getAxes());
}

} // namespace

Tensor makeScalar(Type type, int64_t value) {
  Tensor scalar(RankedTensorType::get({}, type));
  scalar.i[0] = value;
  return scalar;
}

Results evaluateLocal(Operation *op, Operands in, dist::MeshAttr mesh, int64_t position) {
  if (auto reference = dyn_cast<ReferenceOpInterface>(op))
    return reference.evaluate(in);
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](dist::ReshardOp) { return single(*in[0]); })
      .Case([&](dist::PackOp op) { return concatenateRanges(op, op.getBucket(), in); })
      .Case([&](dist::UnpackOp op) { return concatenateRanges(op, op.getResult(), in); })
      .Case([&](dist::AxisIndexOp op) -> Results {
        FailureOr<int64_t> along = positionAlong(op, op.getAxes(), mesh, position);
        if (failed(along))
          return failure();
        Type type = op.getResult().getType();
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          type = tensor.getElementType();
        return single(makeScalar(type, *along * int64_t(op.getScale())));
      })
      .Case([&](dist::PositionConstantOp op) -> Results {
        Type type = op.getResult().getType();
        if (auto tensor = dyn_cast<RankedTensorType>(type))
          type = tensor.getElementType();
        return single(makeScalar(type, op.getValues()[position]));
      })
      .Case([&](tensor::FromElementsOp op) -> Results {
        auto type = cast<RankedTensorType>(op.getType());
        if (isa<FloatType>(type.getElementType()))
          return op.emitError() << "the interpreter makes tensors of integers, got: " << type;
        Tensor tensor(type);
        for (auto [k, element] : llvm::enumerate(in))
          tensor.i[k] = element->i[0];
        return single(std::move(tensor));
      })
      .Case([&](arith::SelectOp op) -> Results {
        if (isa<RankedTensorType>(op.getType()) && op.getCondition().getType().isInteger(1))
          return single(in[0]->i[0] ? *in[1] : *in[2]);
        return evaluateScalar(op, in, mesh, position);
      })
      .Case([&](dist::AllSliceOp op) -> Results {
        FailureOr<int64_t> along = positionAlong(op, op.getAxes(), mesh, position);
        if (failed(along))
          return failure();
        return single(evaluateAllSlice(op, *in[0], *along));
      })
      .Default([&](Operation *op) -> Results {
        if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
          return evaluateScalar(op, in, mesh, position);
        return op->emitError() << "the interpreter does not run '" << op->getName()
                               << "': it has no reference semantics (ReferenceOpInterface)";
      });
}

} // namespace shoal::interp
