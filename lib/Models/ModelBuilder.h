// What the models have in common: a function whose arguments come into being as they are used, and the
// few ops that a transformer is made of.
#ifndef SHOAL_LIB_MODELS_MODELBUILDER_H
#define SHOAL_LIB_MODELS_MODELBUILDER_H

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Models/Models.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace shoal::models {

/// How a parameter starts, as transformers initialise it.
struct Initial {
  nn::Init kind;
  double a = 0, b = 0;

  static Initial zeros() { return {nn::Init::zeros}; }
  static Initial ones() { return {nn::Init::ones}; }
  static Initial normal(double range) {
    return range == 0 ? zeros() : Initial{nn::Init::normal, 0, range};
  }
};

using Shape = llvm::ArrayRef<int64_t>;

inline Shape shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

/// One line where rows have more tokens than the model has positions, which `field` of the config says; else nothing.
std::string findBatchFault(BatchShape batch, int64_t positions, llvm::StringRef field);

class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext &context, llvm::StringRef name);

  /// An input of token ids.
  mlir::Value input(llvm::StringRef name, Shape shape);
  /// `file`: the shape in checkpoints, where it is not `shape`.
  mlir::Value parameter(const llvm::Twine &name, Shape shape, Initial initial, Shape file = {});
  /// Ops made from now on belong to this layer.
  void beginLayer(const llvm::Twine &name);

  /// Sums over the last `axes` dimensions of `a` and the first of `b`; with `transposeB` its last.
  mlir::Value contract(mlir::Value a, mlir::Value b, int64_t axes, bool transposeB = false);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value activate(Activation activation, mlir::Value x);
  mlir::Value reshape(mlir::Value x, Shape shape);
  /// `size` elements of dimension `dim` from `start` on.
  mlir::Value slice(mlir::Value x, int64_t dim, int64_t start, int64_t size);
  mlir::Value layerNorm(mlir::Value x, mlir::Value scale, mlir::Value bias, double eps);
  mlir::Value rmsNorm(mlir::Value x, mlir::Value scale, double eps);
  /// 0, 1, ... as positions of a row's tokens.
  mlir::Value positions(int64_t tokens);
  mlir::Value rope(mlir::Value x, mlir::Value positions, double base);
  mlir::Value causalAttention(mlir::Value q, mlir::Value k, mlir::Value v, double scale,
                              std::optional<int64_t> window = std::nullopt);
  /// `x` itself where the rate is 0.
  mlir::Value dropout(mlir::Value x, double rate);

  /// How a model of tokens begins: the inputs `input_ids` and `labels`, and in layer "embed" the rows of the table
  /// `name` that the ids say.
  mlir::Value embedTokens(const llvm::Twine &name, BatchShape batch, int64_t vocab, int64_t hidden, Initial initial);
  /// How it ends: logits by the head, which is the table where `tied`, and their loss. Returns the module; null with
  /// one line in `error` when a tensor is too large.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value x, bool tied, Initial initial, std::string &error);

private:
  template <typename OpT, typename... Args> OpT create(Args &&...args);
  mlir::Value addArgument(mlir::Type type, llvm::StringRef attribute, mlir::Attribute value);
  mlir::RankedTensorType floats(Shape shape);
  mlir::RankedTensorType integers(Shape shape);

  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp func;
  mlir::Block *body;
  llvm::SmallVector<mlir::DictionaryAttr> arguments;
  mlir::StringAttr layer;
  mlir::Value table, labels; // of embedTokens
  int64_t dropouts = 0;
};

} // namespace shoal::models

#endif // SHOAL_LIB_MODELS_MODELBUILDER_H
