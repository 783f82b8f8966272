// Ops of a transformer, with their result types.
#include "ModelBuilder.h"

#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::models {

std::string findBatchFault(BatchShape batch, int64_t positions, StringRef field) {
  if (batch.tokens <= positions)
    return "";
  return ("rows must have at most the " + Twine(positions) + " tokens of '" + field + "', got: " + Twine(batch.tokens))
      .str();
}

ModelBuilder::ModelBuilder(MLIRContext &context, StringRef name)
    : builder(&context), loc(builder.getUnknownLoc()), module(ModuleOp::create(loc)) {
  builder.setInsertionPointToStart(module->getBody());
  func = builder.create<func::FuncOp>(loc, name, builder.getFunctionType({}, {}));
  body = func.addEntryBlock();
  builder.setInsertionPointToStart(body);
}

template <typename OpT, typename... Args> OpT ModelBuilder::create(Args &&...args) {
  auto op = builder.create<OpT>(loc, std::forward<Args>(args)...);
  if (layer)
    op->setAttr(nn::NNDialect::kLayerAttr, layer);
  return op;
}

Value ModelBuilder::addArgument(Type type, StringRef attribute, Attribute value) {
  arguments.push_back(builder.getDictionaryAttr(builder.getNamedAttr(attribute, value)));
  return body->addArgument(type, loc);
}

RankedTensorType ModelBuilder::floats(Shape shape) {
  return RankedTensorType::get(shape, builder.getF32Type());
}

RankedTensorType ModelBuilder::integers(Shape shape) {
  return RankedTensorType::get(shape, builder.getI64Type());
}

Value ModelBuilder::input(StringRef name, Shape shape) {
  return addArgument(integers(shape), nn::NNDialect::kInputAttr,
                     builder.getStringAttr(name));
}

Value ModelBuilder::parameter(const Twine &name, Shape shape, Initial initial, Shape file) {
  auto param = nn::ParamAttr::get(builder.getContext(), builder.getStringAttr(name), initial.kind,
                                  llvm::APFloat(initial.a), llvm::APFloat(initial.b),
                                  file.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(file));
  return addArgument(floats(shape), nn::NNDialect::kParamAttr, param);
}

void ModelBuilder::beginLayer(const Twine &name) { layer = builder.getStringAttr(name); }

Value ModelBuilder::contract(Value a, Value b, int64_t axes, bool transposeB) {
  return create<nn::TensordotOp>(a, b, axes, /*transpose_a=*/false, transposeB);
}

Value ModelBuilder::add(Value a, Value b) { return create<nn::AddOp>(a, b); }
Value ModelBuilder::mul(Value a, Value b) { return create<nn::MulOp>(a, b); }

Value ModelBuilder::activate(Activation activation, Value x) {
  switch (activation) {
  case Activation::GeluTanh:
    return create<nn::GeluOp>(x.getType(), nn::GeluForm::tanh, x);
  case Activation::GeluErf:
    return create<nn::GeluOp>(x.getType(), nn::GeluForm::erf, x);
  case Activation::Relu:
    return create<nn::ReluOp>(x.getType(), x);
  case Activation::Silu:
    return create<nn::SiluOp>(x.getType(), x);
  }
  llvm_unreachable("unknown activation");
}

Value ModelBuilder::reshape(Value x, Shape shape) {
  return create<nn::ReshapeOp>(floats(shape), x);
}

Value ModelBuilder::slice(Value x, int64_t dim, int64_t start, int64_t size) {
  SmallVector<int64_t> shape(shapeOf(x));
  shape[dim] = size;
  return create<nn::SliceOp>(floats(shape), x, dim, start);
}

Value ModelBuilder::layerNorm(Value x, Value scale, Value bias, double eps) {
  return create<nn::LayerNormOp>(x, scale, bias, builder.getF64FloatAttr(eps)).getResult();
}

Value ModelBuilder::rmsNorm(Value x, Value scale, double eps) {
  return create<nn::RmsNormOp>(x, scale, builder.getF64FloatAttr(eps)).getResult();
}

Value ModelBuilder::positions(int64_t tokens) {
  return create<nn::IotaOp>(integers({tokens}), /*dim=*/0);
}

Value ModelBuilder::rope(Value x, Value positions, double base) {
  return create<nn::RopeOp>(x.getType(), x, positions, builder.getF64FloatAttr(base), /*inverse=*/UnitAttr());
}

Value ModelBuilder::causalAttention(Value q, Value k, Value v, double scale, std::optional<int64_t> window) {
  IntegerAttr windowAttr = window ? builder.getI64IntegerAttr(*window) : IntegerAttr();
  return create<nn::AttentionOp>(q.getType(), nn::AttentionOp::getLseType(q.getType()), q, k, v,
                                 /*segments=*/ValueRange(), /*positions=*/ValueRange(),
                                 /*causal=*/builder.getUnitAttr(), windowAttr, builder.getF64FloatAttr(scale))
      .getO();
}

Value ModelBuilder::dropout(Value x, double rate) {
  if (rate == 0)
    return x;
  return create<nn::DropoutOp>(x.getType(), x, /*seed=*/Value(), /*step=*/Value(), /*offset=*/Value(),
                               /*positions=*/Value(), builder.getF64FloatAttr(rate),
                               builder.getI64IntegerAttr(dropouts++), /*global=*/DenseI64ArrayAttr(),
                               /*dim=*/IntegerAttr());
}

Value ModelBuilder::embedTokens(const Twine &name, BatchShape batch, int64_t vocab, int64_t hidden, Initial initial) {
  Value ids = input("input_ids", {batch.rows, batch.tokens});
  labels = input("labels", {batch.rows, batch.tokens});
  beginLayer("embed");
  table = parameter(name, {vocab, hidden}, initial);
  return create<nn::EmbeddingOp>(table, ids, /*offset=*/Value(), /*vocab=*/IntegerAttr());
}

OwningOpRef<ModuleOp> ModelBuilder::finish(Value x, bool tied, Initial initial, std::string &error) {
  Value head = tied ? table : parameter("lm_head.weight", shapeOf(table), initial);
  Value logits = contract(x, head, /*axes=*/1, /*transposeB=*/true);
  auto loss = create<nn::CrossEntropyOp>(floats({}), nn::CrossEntropyOp::getLseType(logits.getType()),
                                         nn::LossReduction::mean, logits, labels);
  builder.create<func::ReturnOp>(loc, ValueRange{loss.getLoss(), logits});
  func.setFunctionType(builder.getFunctionType(body->getArgumentTypes(), {loss.getLoss().getType(), logits.getType()}));
  func.setAllArgAttrs(arguments);
  func.setResultAttr(0, nn::NNDialect::kLossAttr, builder.getUnitAttr());
  func.setResultAttr(1, nn::NNDialect::kOutputAttr, builder.getStringAttr("logits"));

  auto checked = [&](Type type) {
    if (isCountable(cast<RankedTensorType>(type)) || !error.empty())
      return; // as nn-verify-sizes demands
    llvm::raw_string_ostream(error) << "a tensor must hold at most " << kMostElements << " elements, got: " << type;
  };
  for (Type type : body->getArgumentTypes())
    checked(type);
  for (Operation &op : *body)
    for (Type type : op.getResultTypes())
      checked(type);
  return error.empty() ? std::move(module) : nullptr;
}

} // namespace shoal::models
