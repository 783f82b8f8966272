// Ops of a transformer, with their result types.
#include "ModelBuilder.h"

#include <cmath>

using namespace mlir;

namespace shoal::models {
namespace {

/// As shoalc demands.
constexpr int64_t kMostElements = int64_t(1) << 40;

bool isTooLarge(Type type) {
  int64_t elements = 1;
  for (int64_t size : cast<RankedTensorType>(type).getShape()) {
    if (size > kMostElements / elements)
      return true;
    elements *= size;
  }
  return false;
}

} // namespace

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

Value ModelBuilder::scalar(double value) { return create<nn::ConstantOp>(floats({}), value); }

Value ModelBuilder::input(StringRef name, Shape shape) {
  return addArgument(integers(shape), nn::NNDialect::kInputAttr,
                     builder.getStringAttr(name));
}

Value ModelBuilder::parameter(const Twine &name, Shape shape, Initial initial, Shape file) {
  auto param = nn::ParamAttr::get(builder.getContext(), builder.getStringAttr(name), initial.kind,
                                  llvm::APFloat(initial.a), llvm::APFloat(initial.b),
                                  /*file=*/DenseI64ArrayAttr());
  Value value = addArgument(floats(file.empty() ? shape : file), nn::NNDialect::kParamAttr, param);
  return file.empty() ? value : reshape(value, shape);
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

// A product with ones where the ids are.
Value ModelBuilder::embedding(Value table, Value ids) {
  Shape shape = shapeOf(ids);
  int64_t vocab = shapeOf(table)[0];
  Value column = create<nn::ReshapeOp>(integers({shape[0], shape[1], 1}), ids);
  Value isRow = create<nn::CompareOp>(nn::Predicate::eq, column, create<nn::IotaOp>(integers({1, 1, vocab}), /*dim=*/2));
  return contract(create<nn::CastOp>(floats({shape[0], shape[1], vocab}), isRow), table, /*axes=*/1);
}

Value ModelBuilder::rowMean(Value x) {
  return create<nn::ReduceOp>(nn::Reduce::mean, x, ArrayRef<int64_t>(int64_t(shapeOf(x).size()) - 1), /*keep_dims=*/true);
}

Value ModelBuilder::rowRsqrt(Value meanSquare, double eps) {
  return create<nn::RsqrtOp>(meanSquare.getType(), add(meanSquare, scalar(eps)));
}

Value ModelBuilder::layerNorm(Value x, Value scale, Value bias, double eps) {
  Value centred = create<nn::SubOp>(x, rowMean(x));
  return add(mul(mul(centred, rowRsqrt(rowMean(mul(centred, centred)), eps)), scale), bias);
}

Value ModelBuilder::rmsNorm(Value x, Value scale, double eps) {
  return mul(mul(x, rowRsqrt(rowMean(mul(x, x)), eps)), scale);
}

Value ModelBuilder::positions(int64_t tokens) {
  return create<nn::IotaOp>(integers({tokens}), /*dim=*/0);
}

// Elements j and j + half of a head are a pair, turned by position * base^(-j/half).
Value ModelBuilder::rope(Value x, Value positions, double base) {
  int64_t tokens = shapeOf(x)[1], last = int64_t(shapeOf(x).size()) - 1, half = shapeOf(x)[last] / 2;
  SmallVector<float> frequencies;
  for (int64_t j = 0; j < half; ++j)
    frequencies.push_back(float(std::pow(base, -double(j) / double(half))));
  RankedTensorType row = floats({1, half});
  Value angles = mul(create<nn::CastOp>(floats({tokens, 1}), create<nn::ReshapeOp>(integers({tokens, 1}), positions)),
                     create<nn::ConstantOp>(row, DenseElementsAttr::get(row, ArrayRef<float>(frequencies))));
  SmallVector<int64_t> table(last, 1); // broadcasts over rows and heads
  table.front() = tokens;
  table.back() = half;
  Value cos = reshape(create<nn::CosOp>(angles.getType(), angles), table);
  Value sin = reshape(create<nn::SinOp>(angles.getType(), angles), table);
  Value a = slice(x, last, 0, half), b = slice(x, last, half, half);
  Value turnedA = create<nn::SubOp>(mul(a, cos), mul(b, sin)), turnedB = add(mul(b, cos), mul(a, sin));
  return create<nn::ConcatOp>(x.getType(), ValueRange{turnedA, turnedB}, last);
}

Value ModelBuilder::causalAttention(Value q, Value k, Value v, double scale, std::optional<int64_t> window) {
  IntegerAttr windowAttr = window ? builder.getI64IntegerAttr(*window) : IntegerAttr();
  return create<nn::AttentionOp>(q.getType(), nn::AttentionOp::getLseType(q.getType()), q, k, v,
                                 /*segments=*/ValueRange(), /*causal=*/builder.getUnitAttr(), windowAttr,
                                 builder.getF64FloatAttr(scale))
      .getO();
}

Value ModelBuilder::dropout(Value x, double rate) {
  if (rate == 0)
    return x;
  return create<nn::DropoutOp>(x.getType(), x, /*seed=*/Value(), /*step=*/Value(), /*offset=*/Value(),
                               builder.getF64FloatAttr(rate), builder.getI64IntegerAttr(dropouts++),
                               /*global=*/DenseI64ArrayAttr());
}

OwningOpRef<ModuleOp> ModelBuilder::finish(Value logits, Value labels, std::string &error) {
  auto loss = create<nn::CrossEntropyOp>(floats({}), nn::CrossEntropyOp::getLseType(logits.getType()),
                                         nn::LossReduction::mean, logits, labels);
  builder.create<func::ReturnOp>(loc, ValueRange{loss.getLoss(), logits});
  func.setFunctionType(builder.getFunctionType(body->getArgumentTypes(), {loss.getLoss().getType(), logits.getType()}));
  func.setAllArgAttrs(arguments);
  func.setResultAttr(0, nn::NNDialect::kLossAttr, builder.getUnitAttr());
  func.setResultAttr(1, nn::NNDialect::kOutputAttr, builder.getStringAttr("logits"));

  auto checked = [&](Type type) {
    if (!isTooLarge(type) || !error.empty())
      return;
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
