// Verifiers, result types and folders of the `nn` ops.
#include "Checks.h"
#include "PartTypeFormat.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "shoal/Support/Elements.h"
#include "shoal/Support/KeywordFormat.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace shoal::nn;

#include "shoal/Dialect/NN/NNInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "shoal/Dialect/NN/NNOps.cpp.inc"

// Shared checks.

/// The numpy broadcast of shapes, aligned at the last dimension; none when they do not fit.
static std::optional<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a,
                                                           ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  SmallVector<int64_t> result(a);
  for (auto [i, size] : llvm::enumerate(b)) {
    int64_t &dim = result[a.size() - b.size() + i];
    if (dim == 1)
      dim = size;
    else if (size != 1 && size != dim)
      return std::nullopt;
  }
  return result;
}

/// The type of an elementwise op over `values`: broadcast shape, and the element type of the last
/// (all from the second on must agree when `firstIsCondition`).
static FailureOr<RankedTensorType> inferBroadcast(std::optional<Location> loc, ValueRange values,
                                                  bool firstIsCondition = false) {
  SmallVector<int64_t> shape;
  Type element = cast<RankedTensorType>(values.back().getType()).getElementType();
  for (auto [i, value] : llvm::enumerate(values)) {
    auto type = cast<RankedTensorType>(value.getType());
    auto merged = broadcastShapes(shape, type.getShape());
    if (!merged) {
      (void)emitOptionalError(loc, "operand shapes must broadcast, got: ", values[0].getType(),
                              " and ", type);
      return failure();
    }
    shape = *merged;
    if (type.getElementType() != element && !(i == 0 && firstIsCondition)) {
      (void)emitOptionalError(loc,
                              "operands must have one element type, got: ", type.getElementType(),
                              " and ", element);
      return failure();
    }
  }
  return RankedTensorType::get(shape, element);
}

LogicalResult shoal::nn::verifyDim(Operation *op, int64_t dim, RankedTensorType type) {
  if (dim < 0 || dim >= type.getRank())
    return op->emitOpError() << "dimension must be in [0, " << type.getRank() << "), got: " << dim;
  return success();
}

LogicalResult shoal::nn::verifyOneDimChanges(Operation *op, int64_t dim, RankedTensorType input,
                                             RankedTensorType result) {
  if (failed(verifyDim(op, dim, input)))
    return failure();
  if (input.getElementType() != result.getElementType())
    return op->emitOpError() << "element types must agree, got: " << input << " and " << result;
  if (input.getRank() != result.getRank())
    return op->emitOpError() << "ranks must agree, got: " << input << " and " << result;
  for (int64_t d = 0; d < input.getRank(); ++d)
    if (d != dim && input.getDimSize(d) != result.getDimSize(d))
      return op->emitOpError() << "only dimension " << dim << " may change, got: " << input
                               << " and " << result;
  return success();
}

static LogicalResult verifyScalar(Operation *op, StringRef what, RankedTensorType type,
                                  Type element) {
  if (type.getRank() != 0 || type.getElementType() != element)
    return op->emitOpError() << what << " must be a scalar of element type " << element
                             << ", got: " << type;
  return success();
}

static LogicalResult verifyRange(Operation *op, StringRef what, const APFloat &value, bool holds,
                                 StringRef rule) {
  if (holds)
    return success();
  return op->emitOpError() << what << " must be " << rule << ", got: " << value.convertToDouble();
}

// Constant.

void ConstantOp::build(OpBuilder &, OperationState &state, RankedTensorType type, double splat) {
  Type element = type.getElementType();
  Attribute scalar;
  if (isa<FloatType>(element))
    scalar = FloatAttr::get(element, splat);
  else
    scalar = IntegerAttr::get(element, int64_t(splat));
  state.getOrAddProperties<Properties>().value = DenseElementsAttr::get(type, scalar);
  state.addTypes(type);
}

LogicalResult ConstantOp::verify() {
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError() << "value must be dense elements, got: " << getValue();
  return success();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

// Elementwise.

#define SHOAL_INFER(OP)                                                                            \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,            \
                                     ValueRange operands, DictionaryAttr attributes,               \
                                     OpaqueProperties properties, RegionRange regions,             \
                                     SmallVectorImpl<Type> &types)
#define SHOAL_INFER_BINARY(OP)                                                                     \
  SHOAL_INFER(OP) {                                                                                \
    auto type = inferBroadcast(loc, operands);                                                     \
    if (failed(type))                                                                              \
      return failure();                                                                            \
    types.push_back(*type);                                                                        \
    return success();                                                                              \
  }
SHOAL_INFER_BINARY(AddOp)
SHOAL_INFER_BINARY(SubOp)
SHOAL_INFER_BINARY(MulOp)
SHOAL_INFER_BINARY(DivOp)
SHOAL_INFER_BINARY(MaximumOp)
SHOAL_INFER_BINARY(MinimumOp)
#undef SHOAL_INFER_BINARY

SHOAL_INFER(CompareOp) {
  auto type = inferBroadcast(loc, operands);
  if (failed(type))
    return failure();
  types.push_back(type->clone(IntegerType::get(context, 1)));
  return success();
}

SHOAL_INFER(SelectOp) {
  auto type = inferBroadcast(loc, operands, /*firstIsCondition=*/true);
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

LogicalResult CastOp::verify() {
  if (getInput().getType().getShape() != getType().getShape())
    return emitOpError() << "shapes must agree, got: " << getInput().getType() << " and "
                         << getType();
  auto isFloat = [](RankedTensorType type) { return isa<FloatType>(type.getElementType()); };
  if (getOfTerms() && !(isFloat(getInput().getType()) && isFloat(getType())))
    return emitOpError() << "of terms of a sum must be between floats, got: " << getInput().getType() << " and "
                         << getType();
  return success();
}

OpFoldResult CastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput());
  if (!splat)
    return {};
  auto to = dyn_cast<FloatType>(getType().getElementType());
  if (!to)
    return {};
  Type from = splat.getElementType();
  APFloat value(to.getFloatSemantics());
  if (isa<FloatType>(from)) {
    bool losesInfo;
    value = splat.getSplatValue<APFloat>();
    value.convert(to.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
  } else {
    value.convertFromAPInt(splat.getSplatValue<APInt>(), /*IsSigned=*/!from.isInteger(1),
                           APFloat::rmNearestTiesToEven);
  }
  return DenseElementsAttr::get(getType(), value);
}

LogicalResult MaskOp::verify() {
  if (failed(verifyDim(*this, getDim(), getType())))
    return failure();
  double fill = getFill().convertToDouble();
  auto integer = dyn_cast<IntegerType>(getType().getElementType());
  if (!integer)
    return success();
  // Both bounds are powers of two, exact in a double.
  double bound = std::ldexp(1.0, integer.getWidth() - 1);
  if (!(std::trunc(fill) == fill && fill >= -bound && fill < bound))
    return emitOpError() << "fill must be a whole number of type " << integer << ", got: " << fill;
  return success();
}

// Shape.

LogicalResult ReshapeOp::verify() {
  auto from = getInput().getType(), to = getType();
  if (from.getElementType() != to.getElementType() || from.getNumElements() != to.getNumElements())
    return emitOpError() << "element types and numbers of elements must agree, got: " << from
                         << " and " << to;
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto elements = dyn_cast_or_null<DenseElementsAttr>(adaptor.getInput()))
    return elements.reshape(getType());
  if (auto producer = getInput().getDefiningOp<ReshapeOp>()) {
    getInputMutable().assign(producer.getInput());
    return getResult();
  }
  return {};
}

SHOAL_INFER(TransposeOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  llvm::SmallBitVector seen(input.getRank());
  SmallVector<int64_t> shape;
  bool valid = int64_t(permutation.size()) == input.getRank();
  for (int64_t dim : permutation) {
    valid = valid && dim >= 0 && dim < input.getRank() && !seen.test(dim);
    if (!valid)
      break;
    seen.set(dim);
    shape.push_back(input.getDimSize(dim));
  }
  if (!valid)
    return emitOptionalError(loc, "permutation must name each of ", input.getRank(),
                             " dimensions once, got: ", adaptor.getPermutationAttr());
  types.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(getType());
  if (auto producer = getInput().getDefiningOp<TransposeOp>()) {
    SmallVector<int64_t> composed;
    for (int64_t dim : getPermutation())
      composed.push_back(producer.getPermutation()[dim]);
    setPermutation(composed);
    getInputMutable().assign(producer.getInput());
    return getResult();
  }
  return {};
}

LogicalResult BroadcastOp::verify() {
  auto from = getInput().getType(), to = getType();
  auto shape = broadcastShapes(from.getShape(), to.getShape());
  if (from.getElementType() != to.getElementType() || !shape ||
      ArrayRef<int64_t>(*shape) != to.getShape())
    return emitOpError() << "input must broadcast to the result, got: " << from << " and " << to;
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor adaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto splat = dyn_cast_or_null<SplatElementsAttr>(adaptor.getInput()))
    return splat.resizeSplat(getType());
  if (auto producer = getInput().getDefiningOp<BroadcastOp>()) {
    getInputMutable().assign(producer.getInput());
    return getResult();
  }
  return {};
}

LogicalResult SliceOp::verify() {
  auto from = getInput().getType(), to = getType();
  int64_t dim = getDim(), start = getStart();
  if (failed(verifyOneDimChanges(*this, dim, from, to)))
    return failure();
  if (start < 0 || start > from.getDimSize(dim) - to.getDimSize(dim))
    return emitOpError() << "elements [" << start << ", " << start << " + " << to.getDimSize(dim)
                         << ") must lie inside [0, " << from.getDimSize(dim) << ")";
  return success();
}

LogicalResult PadOp::verify() {
  auto from = getInput().getType(), to = getType();
  int64_t dim = getDim(), low = getLow();
  if (failed(verifyOneDimChanges(*this, dim, from, to)))
    return failure();
  if (low < 0 || low > to.getDimSize(dim) - from.getDimSize(dim))
    return emitOpError() << "input of size " << from.getDimSize(dim) << " at " << low
                         << " must lie inside [0, " << to.getDimSize(dim) << ")";
  return success();
}

LogicalResult DynamicSliceOp::verify() {
  auto from = getInput().getType(), to = getType();
  int64_t dim = getDim();
  if (failed(verifyOneDimChanges(*this, dim, from, to)))
    return failure();
  if (to.getDimSize(dim) > from.getDimSize(dim))
    return emitOpError() << "size must be at most " << from.getDimSize(dim)
                         << ", got: " << to.getDimSize(dim);
  return success();
}

LogicalResult DynamicUpdateSliceOp::verify() {
  auto whole = getInput().getType(), part = getUpdate().getType();
  int64_t dim = getDim();
  if (failed(verifyOneDimChanges(*this, dim, whole, part)))
    return failure();
  if (part.getDimSize(dim) > whole.getDimSize(dim))
    return emitOpError() << "size must be at most " << whole.getDimSize(dim)
                         << ", got: " << part.getDimSize(dim);
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError() << "needs at least 1 operand, got: 0";
  int64_t dim = getDim(), size = 0;
  for (Value input : getInputs()) {
    auto type = cast<RankedTensorType>(input.getType());
    if (failed(verifyOneDimChanges(*this, dim, type, getType())))
      return failure();
    size += type.getDimSize(dim);
  }
  if (size != getType().getDimSize(dim))
    return emitOpError() << "dimension " << dim << " of the result must be " << size
                         << ", the sum of the operands', got: " << getType();
  return success();
}

LogicalResult IotaOp::verify() { return verifyDim(*this, getDim(), getType()); }

// Contractions and reductions.

bool shoal::nn::isProductType(Type operands, Type result) {
  return result == operands || (operands.isBF16() && result.isF32());
}

LogicalResult MatmulOp::verify() {
  auto a = getA().getType(), b = getB().getType(), c = getType();
  if (a.getElementType() != b.getElementType() || !isProductType(a.getElementType(), c.getElementType()))
    return emitOpError() << "element types must agree, or be bf16 in the operands and f32 in the result, got: " << a
                         << ", " << b << " and " << c;
  if (a.getRank() < 2 || b.getRank() < 2)
    return emitOpError() << "operands must have at least 2 dimensions, got: " << a << " and " << b;

  auto batches = a.getShape().drop_back(2);
  bool sharedB = b.getRank() == 2;
  if (!sharedB && b.getShape().drop_back(2) != batches)
    return emitOpError() << "batch dimensions must be equal or absent in b, got: " << a << " and "
                         << b;
  if (getSumBatch() && (sharedB || batches.empty()))
    return emitOpError() << "sum_batch needs batch dimensions in a and b, got: " << a << " and "
                         << b;

  ArrayRef<int64_t> am = a.getShape().take_back(2), bm = b.getShape().take_back(2);
  int64_t m = am[getTransposeA() ? 1 : 0], ka = am[getTransposeA() ? 0 : 1];
  int64_t n = bm[getTransposeB() ? 0 : 1], kb = bm[getTransposeB() ? 1 : 0];
  if (ka != kb)
    return emitOpError() << "inner dimensions must be equal, got: " << ka << " in a and " << kb
                         << " in b";
  SmallVector<int64_t> shape;
  if (!getSumBatch())
    llvm::append_range(shape, batches);
  shape.append({m, n});
  if (c.getShape() != ArrayRef<int64_t>(shape))
    return emitOpError() << "result must be " << RankedTensorType::get(shape, c.getElementType())
                         << ", got: " << c;
  return success();
}

SHOAL_INFER(ReduceOp) {
  Adaptor adaptor(operands, attributes, properties, regions);
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  llvm::SmallBitVector reduced(input.getRank());
  for (int64_t dim : adaptor.getDims()) {
    if (dim < 0 || dim >= input.getRank())
      return emitOptionalError(loc, "reduced dimensions must be in [0, ", input.getRank(),
                               "), got: ", dim);
    if (reduced.test(dim))
      return emitOptionalError(loc,
                               "reduced dimensions must be unique, got: ", adaptor.getDimsAttr());
    reduced.set(dim);
  }
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    if (!reduced.test(dim))
      shape.push_back(input.getDimSize(dim));
    else if (adaptor.getKeepDims())
      shape.push_back(1);
  }
  types.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}
#undef SHOAL_INFER

LogicalResult SoftmaxOp::verify() { return verifyDim(*this, getDim(), getType()); }
LogicalResult LogSoftmaxOp::verify() { return verifyDim(*this, getDim(), getType()); }

LogicalResult BatchNormOp::verify() {
  auto input = getInput().getType(), scale = getScale().getType();
  if (input.getRank() < 2)
    return emitOpError() << "input must have rows and features, got: " << input;
  auto wanted = RankedTensorType::get({input.getDimSize(1)}, input.getElementType());
  if (scale != wanted)
    return emitOpError() << "scale, bias and statistics must be " << wanted << ", got: " << scale;
  double momentum = getMomentum().convertToDouble(), eps = getEps().convertToDouble();
  if (failed(verifyRange(*this, "momentum", getMomentum(), momentum >= 0 && momentum <= 1, "in [0, 1]")))
    return failure();
  return verifyRange(*this, "eps", getEps(), std::isfinite(eps) && eps >= 0, "at least 0");
}

// Losses.

LogicalResult MseLossOp::verify() {
  auto prediction = getPrediction().getType(), target = getTarget().getType();
  if (prediction != target)
    return emitOpError() << "prediction and target must have one type, got: " << prediction
                         << " and " << target;
  return verifyScalar(*this, "loss", getLoss().getType(), prediction.getElementType());
}

/// A loss, or its cotangent, has the type of the logits or the one that it is computed in: rounded to bf16, a loss
/// of 10 is known to 1 in 30.
static LogicalResult verifyLossScalar(Operation *op, StringRef what, RankedTensorType type, Type logits) {
  Type compute = shoal::computeType(logits);
  return verifyScalar(op, what, type, type.getElementType() == compute ? compute : logits);
}

/// Logits and targets of cross_entropy and its gradient.
static LogicalResult verifyTargets(Operation *op, RankedTensorType logits, RankedTensorType targets,
                                   int64_t ignoreIndex) {
  if (logits.getRank() < 1)
    return op->emitOpError() << "logits must have a class dimension, got: " << logits;
  if (isa<FloatType>(targets.getElementType())) {
    if (targets != logits)
      return op->emitOpError() << "probabilities must have the type of logits, " << logits
                               << ", got: " << targets;
    return success();
  }
  if (targets.getElementType().isInteger(1))
    return op->emitOpError() << "targets must be i32, i64 or probabilities, got: " << targets;
  if (targets.getShape() != logits.getShape().drop_back())
    return op->emitOpError() << "targets must have the shape of logits without the class "
                                "dimension, got: "
                             << targets << " for " << logits;
  // A mask, whose fill is a double, writes the index.
  unsigned bits = std::min(targets.getElementType().getIntOrFloatBitWidth() - 1, 53u);
  if (ignoreIndex < -(int64_t(1) << bits) || ignoreIndex >= int64_t(1) << bits)
    return op->emitOpError() << "ignore_index must fit targets of type " << targets.getElementType()
                             << ", got: " << ignoreIndex;
  return success();
}

void CrossEntropyOp::getAsmResultNames(function_ref<void(Value, StringRef)> setName) {
  setName(getLoss(), "loss");
  setName(getLse(), "lse");
}

LogicalResult CrossEntropyOp::verify() {
  auto logits = getLogits().getType();
  if (failed(verifyTargets(*this, logits, getTargets().getType(), getIgnoreIndex())))
    return failure();
  return verifyLossScalar(*this, "loss", getLoss().getType(), logits.getElementType());
}

LogicalResult CrossEntropyGradOp::verify() {
  auto logits = getLogits().getType();
  if (failed(verifyTargets(*this, logits, getTargets().getType(), getIgnoreIndex())))
    return failure();
  if (getType() != logits)
    return emitOpError() << "result must have the type of logits, " << logits
                         << ", got: " << getType();
  return verifyLossScalar(*this, "scale", getScale().getType(), logits.getElementType());
}

std::optional<IndexRange> CrossEntropyOp::getIndexRange(unsigned operand) {
  if (operand != 1)
    return std::nullopt;
  return IndexRange{getLogits().getType().getShape().back(), int64_t(getIgnoreIndex())};
}
std::optional<IndexRange> CrossEntropyGradOp::getIndexRange(unsigned operand) {
  if (operand != 1)
    return std::nullopt;
  return IndexRange{getLogits().getType().getShape().back(), int64_t(getIgnoreIndex())};
}

// Optimizer updates.

template <typename UpdateOp> static LogicalResult verifyUpdate(UpdateOp op) {
  if (failed(
          verifyScalar(op, "lr", op.getLr().getType(), op.getParam().getType().getElementType())))
    return failure();
  APFloat decay = op.getWeightDecay();
  return verifyRange(op, "weight_decay", decay, decay.convertToDouble() >= 0, "at least 0");
}

LogicalResult SgdUpdateOp::verify() { return verifyUpdate(*this); }

LogicalResult MomentumUpdateOp::verify() {
  if (failed(verifyUpdate(*this)))
    return failure();
  double momentum = getMomentum().convertToDouble();
  return verifyRange(*this, "momentum", getMomentum(), momentum >= 0 && momentum < 1, "in [0, 1)");
}

LogicalResult AdamUpdateOp::verify() {
  if (failed(verifyUpdate(*this)))
    return failure();
  double beta1 = getBeta1().convertToDouble(), beta2 = getBeta2().convertToDouble();
  if (failed(verifyRange(*this, "beta1", getBeta1(), beta1 >= 0 && beta1 < 1, "in [0, 1)")) ||
      failed(verifyRange(*this, "beta2", getBeta2(), beta2 >= 0 && beta2 < 1, "in [0, 1)")))
    return failure();
  return verifyRange(*this, "eps", getEps(), getEps().convertToDouble() >= 0, "at least 0");
}
