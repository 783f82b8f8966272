// Evaluation of the ops that a rank computes alone.
#include "LocalOps.h"

#include "NNReference.h"

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

FailureOr<bool> holds(arith::CmpIOp op, int64_t a, int64_t b) {
  switch (op.getPredicate()) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return uint64_t(a) < uint64_t(b);
  case arith::CmpIPredicate::ule:
    return uint64_t(a) <= uint64_t(b);
  case arith::CmpIPredicate::ugt:
    return uint64_t(a) > uint64_t(b);
  case arith::CmpIPredicate::uge:
    return uint64_t(a) >= uint64_t(b);
  }
  return op.emitOpError("has an unknown predicate");
}

// Control flow at L2 depends only on positions and constants: these few scalar ops.
Results evaluateScalar(Operation *op, Operands in) {
  if (op->getNumResults() != 1 || !op->getResult(0).getType().isIntOrIndex() ||
      llvm::any_of(in, [](const Tensor *t) { return t->type.getRank() != 0 || t->isFloat(); }))
    return op->emitError() << "'" << op->getName()
                           << "' is not a scalar integer op: the interpreter does not run it";
  auto a = [&] { return in[0]->i[0]; };
  auto b = [&] { return in[1]->i[0]; };
  auto wrapped = [](uint64_t value) { return int64_t(value); };
  auto divides = [&]() -> LogicalResult {
    if (b() == 0)
      return op->emitError("divides an integer by zero");
    return success();
  };
  FailureOr<int64_t> value =
      TypeSwitch<Operation *, FailureOr<int64_t>>(op)
          .Case([&](arith::ConstantOp op) -> FailureOr<int64_t> {
            return cast<IntegerAttr>(op.getValue()).getValue().getSExtValue();
          })
          .Case([&](arith::AddIOp) { return wrapped(uint64_t(a()) + uint64_t(b())); })
          .Case([&](arith::SubIOp) { return wrapped(uint64_t(a()) - uint64_t(b())); })
          .Case([&](arith::MulIOp) { return wrapped(uint64_t(a()) * uint64_t(b())); })
          .Case<arith::DivSIOp, arith::DivUIOp>([&](auto) -> FailureOr<int64_t> {
            if (failed(divides()))
              return failure();
            return isa<arith::DivUIOp>(op) ? int64_t(uint64_t(a()) / uint64_t(b()))
                   : b() == -1             ? wrapped(0 - uint64_t(a()))
                                           : a() / b();
          })
          .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) -> FailureOr<int64_t> {
            if (failed(divides()))
              return failure();
            return isa<arith::RemUIOp>(op) ? int64_t(uint64_t(a()) % uint64_t(b()))
                   : b() == -1             ? 0
                                           : a() % b();
          })
          .Case([&](arith::AndIOp) { return a() & b(); })
          .Case([&](arith::OrIOp) { return a() | b(); })
          .Case([&](arith::XOrIOp) { return a() ^ b(); })
          .Case([&](arith::SelectOp) { return a() ? b() : in[2]->i[0]; })
          .Case<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>([&](auto) { return a(); })
          .Case([&](arith::CmpIOp op) -> FailureOr<int64_t> {
            FailureOr<bool> result = holds(op, a(), b());
            if (failed(result))
              return failure();
            return int64_t(*result);
          })
          .Default([](Operation *op) -> FailureOr<int64_t> {
            return op->emitError() << "the interpreter does not run '" << op->getName() << "'";
          });
  if (failed(value))
    return failure();
  return single(makeScalar(op->getResult(0).getType(), *value));
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
      .Case([&](dist::SelectOp op) { return single(*in[op.getChoices()[position]]); })
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
        return evaluateScalar(op, in);
      })
      .Case([&](dist::AllSliceOp op) -> Results {
        FailureOr<int64_t> along = positionAlong(op, op.getAxes(), mesh, position);
        if (failed(along))
          return failure();
        return single(evaluateAllSlice(op, *in[0], *along));
      })
      .Default([&](Operation *op) -> Results {
        if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()))
          return evaluateScalar(op, in);
        return op->emitError() << "the interpreter does not run '" << op->getName()
                               << "': it has no reference semantics (ReferenceOpInterface)";
      });
}

} // namespace shoal::interp
