// nn-optimize: the global norm, clipping, the learning rate's schedule, and the optimizer's updates
// and state.
#include "shoal/Dialect/NN/Transforms/OptimizerOptions.h"

#include "../IR/Build.h"
#include "ModelRewriter.h"

#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Support/DebugStringHelper.h"

#include <numbers>

namespace shoal::nn {
#define GEN_PASS_DEF_OPTIMIZEPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

struct Gradient {
  StringAttr name;
  BlockArgument param;
  Value value;
  Operation *origin; // whose layer the update has: the maker, or of an argument the model, which has none
  Attribute stage;   // of the parameter, and so of its update
};

struct OptimizePass : shoal::nn::impl::OptimizePassBase<OptimizePass> {
  using OptimizePassBase::OptimizePassBase;

  void runOnOperation() override {
    auto models = getModels(getOperation());
    if (failed(models) || failed(checkOptions()))
      return signalPassFailure();
    for (func::FuncOp model : *models)
      if (failed(optimize(model)))
        return signalPassFailure();
  }

private:
  OptimizePassOptions getOptions() const;
  LogicalResult checkOptions();
  LogicalResult checkRange(func::FuncOp model, Type element);
  LogicalResult optimize(func::FuncOp model);
  FailureOr<SmallVector<Gradient>> findGradients(func::FuncOp model);
  Value buildRate(OpBuilder &builder, Location loc, Value step);
  void update(SignatureEdit &signature, OpBuilder &builder, const Gradient &gradient, Value step,
              Value rate);
};

} // namespace

// Options.

OptimizePassOptions OptimizePass::getOptions() const {
  OptimizePassOptions options;
  options.optimizer = optimizer;
  options.lr = lr;
  options.lrSchedule = lrSchedule;
  options.warmupSteps = warmupSteps;
  options.decaySteps = decaySteps;
  options.minLr = minLr;
  options.momentum = momentum;
  options.nesterov = nesterov;
  options.beta1 = beta1;
  options.beta2 = beta2;
  options.eps = eps;
  options.weightDecay = weightDecay;
  options.decay = decay;
  options.clipGradNorm = clipGradNorm;
  options.gradNorm = gradNorm;
  return options;
}

LogicalResult OptimizePass::checkOptions() {
  std::string fault = findOptimizerFault(getOptions());
  return fault.empty() ? success() : getOperation().emitError() << fault;
}

/// Options become constants of the parameters' type, which must not make infinity or 0 of them.
LogicalResult OptimizePass::checkRange(func::FuncOp model, Type element) {
  auto require = [&](StringRef option, double value) -> LogicalResult {
    llvm::APFloat held(value);
    bool isInexact;
    held.convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &isInexact);
    if (held.isFinite() && held.isZero() == (value == 0))
      return success();
    return model.emitError() << option << (held.isFinite() ? " must not round to 0 in " : " must be finite in ")
                             << debugString(element) << ", got: " << shortestDigits(value);
  };
  if (failed(require("lr", lr)) || failed(require("min-lr", minLr)) || failed(require("momentum", momentum)) ||
      failed(require("weight-decay", weightDecay)) || failed(require("clip-grad-norm", clipGradNorm)))
    return failure();
  if (optimizer == "sgd")
    return success();
  return success(succeeded(require("beta1", beta1)) && succeeded(require("beta2", beta2)) &&
                 succeeded(require("eps", eps)));
}

// Gradients, their norm and clipping.

FailureOr<SmallVector<Gradient>> OptimizePass::findGradients(func::FuncOp model) {
  SmallVector<Gradient> gradients;
  ArgTable arguments(model);
  StageTable stages(model);
  for (auto [i, updated] : llvm::enumerate(updatedArguments(model))) {
    if (updated && getArgRole(model, *updated) == ArgRole::Param)
      return emitArgError(model, *updated) << "already has an update, result " << i;
    auto name = model.getResultAttrOfType<StringAttr>(i, NNDialect::kGradAttr);
    if (!name)
      continue;
    auto arg = arguments.find(name.getValue());
    if (!arg || getArgRole(model, *arg) != ArgRole::Param)
      return emitResultError(model, i) << "is the gradient of an unknown parameter: " << name;
    Value value = getReturn(model).getOperand(i);
    Operation *maker = value.getDefiningOp();
    Gradient gradient{name, model.getArgument(*arg), value, maker ? maker : model.getOperation(),
                      stages.find(model.getArgument(*arg))};
    auto param = cast<RankedTensorType>(gradient.param.getType());
    auto type = dyn_cast<RankedTensorType>(gradient.value.getType());
    if (!type || type.getShape() != param.getShape() || !isa<FloatType>(type.getElementType()))
      return emitResultError(model, i) << "gradient of " << name << " must have the shape of " << param
                                       << " and be of floats, got: " << gradient.value.getType();
    gradients.push_back(gradient);
  }
  if (gradients.empty())
    return model.emitOpError() << "the optimizer needs results with 'nn.grad', got none; run "
                                  "nn-differentiate first";
  return gradients;
}

static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// The sum of a gradient's squares.
static Value buildSquares(Build b, const Gradient &gradient, Type element) {
  OriginScope scope(b.builder, gradient.origin, gradient.stage);
  Value g = b.wide(gradient.value), squares = b.mul(g, g);
  if (int64_t rank = typeOf(g).getRank())
    squares = b.sum(squares, llvm::to_vector(llvm::seq<int64_t>(0, rank)), /*keepDims=*/false);
  return b.cast(squares, element);
}

/// sqrt(sum of squares over all gradients), as a scalar of the given type. The sums of all gradients are of no layer.
static Value buildNorm(Build b, ArrayRef<Gradient> gradients, Type element) {
  Value total;
  for (const Gradient &gradient : gradients) {
    Value squares = buildSquares(b, gradient, element);
    total = total ? b.add(total, squares) : squares;
  }
  return b.builder.create<SqrtOp>(b.loc, total);
}

/// min(1, limit / (norm + 1e-6)): the factor of PyTorch's clip_grad_norm_.
static Value buildClipFactor(Build b, Value norm, double limit) {
  Value guarded = b.add(norm, b.scalar(norm, 1e-6));
  Value ratio = b.div(b.scalar(norm, limit), guarded);
  return b.min(ratio, b.scalar(norm, 1));
}

/// The scalar in these types, cast once for all updates and in none of their layers: dist-pack lays in one bucket what
/// is updated by the same scalars.
static DenseMap<Type, Value> castForAll(Build b, Value scalar, ArrayRef<Type> elements) {
  DenseMap<Type, Value> casts;
  for (Type element : elements)
    if (auto [at, isNew] = casts.try_emplace(element); isNew)
      at->second = b.cast(scalar, element);
  return casts;
}

// Updates.

/// The incremented count of steps, 1 in the first one: Adam's t.
static Value buildStep(func::FuncOp model, SignatureEdit &signature, OpBuilder &builder) {
  auto index = findArg(model, ArgRole::Step);
  for (auto [i, updated] : llvm::enumerate(updatedArguments(model)))
    if (index && updated == index)
      return getReturn(model).getOperand(i);
  auto type = RankedTensorType::get({}, builder.getI64Type());
  Value done = index ? model.getArgument(*index)
                     : signature.addArgument(type, NNDialect::kStepAttr, builder.getUnitAttr());
  Value one = builder.create<ConstantOp>(model.getLoc(), type, 1.0);
  Value step = builder.create<AddOp>(model.getLoc(), done, one);
  signature.addResult(step, NNDialect::kUpdatesAttr, builder.getStringAttr(kStepName));
  return step;
}

/// The learning rate of the step, as f64. With t steps done before it, W of warm-up and D in all,
/// p = min(max(t - W, 0) / (D - W), 1) is how far the decay is:
///   linear  rate(p) = lr + (min_lr - lr) p
///   cosine  rate(p) = min_lr + (lr - min_lr) / 2 (1 + cos(pi p))   (Loshchilov and Hutter, 2017)
/// and the rate is min((t + 1) / W, 1) rate(p): during the warm-up p is 0, behind it the factor is 1.
Value OptimizePass::buildRate(OpBuilder &builder, Location loc, Value step) {
  Build b{builder, loc};
  Value count = b.cast(step, builder.getF64Type()); // t + 1
  auto constant = [&](double value) { return b.scalar(count, value); };
  Value rate = constant(lr);
  if (lrSchedule != "constant") {
    Value past = b.sub(count, constant(double(warmupSteps) + 1));
    past = b.max(past, constant(0));
    Value p = b.div(past, constant(double(decaySteps - warmupSteps)));
    p = b.min(p, constant(1));
    Value share = p;
    if (lrSchedule == "cosine") { // (1 - cos(pi p)) / 2 as a square, exact at 0
      Value sine = builder.create<SinOp>(loc, b.mul(p, std::numbers::pi / 2));
      share = b.mul(sine, sine);
    }
    // As a mean of both ends, which is exact at the first.
    rate = b.mul(b.sub(constant(1), share), lr);
    rate = b.add(rate, b.mul(share, minLr));
  }
  if (warmupSteps > 0) {
    Value warm = b.div(count, constant(double(warmupSteps)));
    rate = b.mul(b.min(warm, constant(1)), rate);
  }
  return rate;
}

void OptimizePass::update(SignatureEdit &signature, OpBuilder &builder, const Gradient &gradient,
                          Value step, Value rate) {
  Location loc = gradient.value.getLoc();
  auto type = cast<RankedTensorType>(gradient.param.getType());
  Build b{builder, loc};
  if (!rate)
    rate = b.scalar(type.getElementType(), lr);
  auto argument = cast<BlockArgument>(gradient.param);
  auto model = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  // A bias over heads is a vector to everybody else.
  std::optional<ArrayRef<int64_t>> file = getFileShape(model, argument.getArgNumber());
  bool decays = decay == "all" || (file ? int64_t(file->size()) : type.getRank()) >= 2;
  auto weightDecayAttr = builder.getF64FloatAttr(decays ? weightDecay.getValue() : 0.0);
  SmallVector<StringAttr> stateNames;
  auto state = [&](StringRef suffix) -> Value {
    stateNames.push_back(builder.getStringAttr(gradient.name.getValue() + suffix));
    return signature.addArgument(
        type, NNDialect::kStateAttr,
        StateAttr::get(&getContext(), stateNames.back(), gradient.name, llvm::APFloat(0.0)));
  };

  Value value = b.cast(gradient.value, type.getElementType());
  Operation *op;
  if (optimizer == "sgd" && momentum == 0) {
    op = builder.create<SgdUpdateOp>(loc, gradient.param, value, rate, weightDecayAttr);
  } else if (optimizer == "sgd") {
    Value velocity = state(kVelocitySuffix);
    op = builder.create<MomentumUpdateOp>(loc, gradient.param, value, velocity, rate,
                                          builder.getF64FloatAttr(momentum), weightDecayAttr,
                                          nesterov ? builder.getUnitAttr() : UnitAttr());
  } else {
    Value m = state(kFirstMomentSuffix), v = state(kSecondMomentSuffix);
    op = builder.create<AdamUpdateOp>(
        loc, gradient.param, value, m, v, rate, step, builder.getF64FloatAttr(beta1),
        builder.getF64FloatAttr(beta2), builder.getF64FloatAttr(eps), weightDecayAttr,
        optimizer == "adamw" ? builder.getUnitAttr() : UnitAttr());
  }
  signature.addResult(op->getResult(0), NNDialect::kUpdatesAttr, gradient.name);
  for (auto [i, name] : llvm::enumerate(stateNames))
    signature.addResult(op->getResult(i + 1), NNDialect::kUpdatesAttr, name);
}

LogicalResult OptimizePass::optimize(func::FuncOp model) {
  auto gradients = findGradients(model);
  if (failed(gradients))
    return failure();
  for (const Gradient &gradient : *gradients)
    if (failed(checkRange(model, elementOf(gradient.param))))
      return failure();
  SignatureEdit signature(model);
  OpBuilder builder(getReturn(model));
  Location loc = model.getLoc();
  if (gradNorm || clipGradNorm > 0) {
    auto loss = findLoss(model);
    Type element = computeType(elementOf(loss ? getReturn(model).getOperand(*loss) : gradients->front().value));
    Build b{builder, loc};
    Value norm = buildNorm(b, *gradients, element);
    if (gradNorm)
      signature.addResult(norm, NNDialect::kMetricAttr, builder.getStringAttr(kGradNormMetric));
    if (clipGradNorm > 0) {
      SmallVector<Type> wide = llvm::map_to_vector(
          *gradients, [](const Gradient &gradient) { return computeType(elementOf(gradient.value)); });
      DenseMap<Type, Value> factors = castForAll(b, buildClipFactor(b, norm, clipGradNorm), wide);
      for (Gradient &gradient : *gradients) {
        OriginScope scope(builder, gradient.origin, gradient.stage);
        Value value = b.wide(gradient.value);
        gradient.value = b.mul(value, factors.lookup(elementOf(value)));
      }
    }
  }
  bool isScheduled = lrSchedule != "none";
  // Whoever reads the step (dropout, the model itself) sees it advance, whatever the optimizer.
  bool countsSteps = optimizer != "sgd" || isScheduled || findArg(model, ArgRole::Step);
  Value step = countsSteps ? buildStep(model, signature, builder) : Value();
  DenseMap<Type, Value> rates;
  if (isScheduled) {
    Value rate = buildRate(builder, loc, step);
    signature.addResult(rate, NNDialect::kMetricAttr, builder.getStringAttr(kRateMetric));
    SmallVector<Type> own =
        llvm::map_to_vector(*gradients, [](const Gradient &gradient) { return elementOf(gradient.param); });
    rates = castForAll({builder, loc}, rate, own);
  }
  for (const Gradient &gradient : *gradients) {
    OriginScope scope(builder, gradient.origin, gradient.stage);
    update(signature, builder, gradient, step, rates.lookup(elementOf(gradient.param)));
  }
  return success();
}
