// The nn ops that are library calls, as rows of the rank program.
#include "LinalgBuilder.h"

#include "shoal/Dialect/Exec/IR/Attention.h"
#include "shoal/Dialect/Exec/Transforms/RowContext.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"

using namespace mlir;

namespace shoal::lowering {

namespace {

/// "matmul x w1": the arguments that take part.
StringAttr nameOf(Operation *op) {
  std::string name = op->getName().stripDialect().str();
  for (Value operand : op->getOperands())
    if (auto argument = dyn_cast<BlockArgument>(stripViews(operand)))
      if (auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
        name += (" " + nn::getArgName(func, argument.getArgNumber())).str();
  return StringAttr::get(op->getContext(), name);
}

/// One product, or a batch of them, of matrices without gaps between their rows.
struct Product {
  Value a, b, c;
  int64_t m, n, k;
  int64_t batch = 1;
  SmallVector<int64_t> strides = {}; // of a, b and c when there is a batch
  bool accumulate = false;
};

/// The rows of one op: each product reads and writes whole matrices, transposed or not.
struct Products {
  Operation *op;
  exec::RowContext &rows;
  bool transposeA, transposeB;
  StringAttr name = nameOf(op);
  bool adds = rows.adds();

  void add(const Product &p) {
    OpBuilder &builder = rows.getBuilder();
    builder.create<exec::GemmOp>(op->getLoc(), Type(), p.a, p.b, p.c, p.m, p.n, p.k,
                                 /*lda=*/transposeA ? p.m : p.k, /*ldb=*/transposeB ? p.k : p.n,
                                 /*ldc=*/p.n, p.batch,
                                 p.batch > 1 ? builder.getDenseI64ArrayAttr(p.strides) : nullptr,
                                 transposeA, transposeB, adds || p.accumulate, 0, name);
  }
};

LogicalResult buildMatmul(nn::MatmulOp op, exec::RowContext &rows) {
  RankedTensorType aType = tensorType(op.getA()), bType = tensorType(op.getB());
  bool ta = op.getTransposeA(), tb = op.getTransposeB();
  auto matrix = [](RankedTensorType type) { return type.getShape().take_back(2); };
  int64_t m = matrix(aType)[ta], k = matrix(aType)[!ta], n = matrix(bType)[!tb];
  int64_t batch = ShapedType::getNumElements(aType.getShape().drop_back(2));
  bool shared = bType.getRank() == 2;
  Value a = rows.bufferOf(op.getA()), b = rows.bufferOf(op.getB()),
        c = rows.bufferOf(op.getResult());
  Products products{op, rows, ta, tb};
  auto add = [&](const Product &product) { products.add(product); };
  if (batch == 1)
    return add({a, b, c, m, n, k}), success();
  if (!op.getSumBatch()) {
    // Rows of all batches against one b are one product.
    if (shared && !ta)
      return add({a, b, c, batch * m, n, k}), success();
    return add({a, b, c, m, n, k, batch, {m * k, shared ? 0 : k * n, m * n}}), success();
  }
  // Summed over batches: one longer inner dimension where the layout is that of a longer matrix.
  if (ta && !tb && !shared)
    return add({a, b, c, m, n, batch * k}), success();
  for (int64_t i = 0; i < batch; ++i) {
    Value ai = rows.rangeOf(op.getA(), i * m * k, matrix(aType));
    Value bi = shared ? b : rows.rangeOf(op.getB(), i * k * n, matrix(bType));
    add({ai, bi, c, m, n, k, 1, {}, /*accumulate=*/i > 0});
  }
  return success();
}

/// Dimensions beside each other are one: a single product, whatever their number.
LogicalResult buildTensordot(nn::TensordotOp op, exec::RowContext &rows) {
  Products{op, rows, op.getTransposeA(), op.getTransposeB()}.add(
      {rows.bufferOf(op.getA()), rows.bufferOf(op.getB()), rows.bufferOf(op.getResult()),
       ShapedType::getNumElements(op.getOuterOfA()), ShapedType::getNumElements(op.getOuterOfB()),
       ShapedType::getNumElements(op.getInnerOfA())});
  return success();
}

// Attention

template <typename Op> int64_t getAttentionWorkspace(Op op) {
  rt::AttentionShape shape = exec::getAttentionShape(op);
  bool backward = std::is_same_v<Op, nn::AttentionGradOp>;
  return int64_t(rt::attentionWorkspace(shape, backward) * rt::elementBytes(rt::attentionComputeType(shape)));
}

SmallVector<Value> getBuffers(ValueRange values, exec::RowContext &rows) {
  return llvm::map_to_vector(values, [&](Value value) { return rows.bufferOf(value); });
}

LogicalResult buildAttention(nn::AttentionOp op, exec::RowContext &rows) {
  auto buffer = [&](Value value) { return rows.bufferOf(value); };
  rows.getBuilder().create<exec::AttentionOp>(
      op.getLoc(), Type(), buffer(op.getQ()), buffer(op.getK()), buffer(op.getV()), getBuffers(op.getSegments(), rows),
      getBuffers(op.getPositions(), rows), buffer(op.getO()), buffer(op.getLse()), rows.getWorkspace(), op.getCausal(),
      op.getWindowAttr(), op.getScale(), 0, nameOf(op));
  return success();
}

LogicalResult buildAttentionGrad(nn::AttentionGradOp op, exec::RowContext &rows) {
  auto buffer = [&](Value value) { return rows.bufferOf(value); };
  rows.getBuilder().create<exec::AttentionGradOp>(
      op.getLoc(), Type(), buffer(op.getCotangent()), buffer(op.getQ()), buffer(op.getK()), buffer(op.getV()),
      buffer(op.getO()), buffer(op.getLse()), getBuffers(op.getSegments(), rows), getBuffers(op.getPositions(), rows),
      buffer(op.getDq()), buffer(op.getDk()), buffer(op.getDv()), rows.getWorkspace(), op.getCausal(),
      op.getWindowAttr(), op.getScale(), 0, nameOf(op));
  return success();
}

LogicalResult buildEmbeddingGrad(nn::EmbeddingGradOp op, exec::RowContext &rows) {
  rows.getBuilder().create<exec::ScatterAddOp>(
      op.getLoc(), Type(), rows.bufferOf(op.getIds()), rows.bufferOf(op.getCotangent()),
      op.getOffset() ? rows.bufferOf(op.getOffset()) : Value(), rows.bufferOf(op.getResult()),
      rows.getWorkspace(), 0, nameOf(op));
  return success();
}

/// Sums of bf16 are kept in f32 until they are whole.
int64_t embeddingGradWorkspace(nn::EmbeddingGradOp op) {
  RankedTensorType type = tensorType(op.getResult());
  return type.getElementType().isBF16() ? type.getNumElements() * int64_t(sizeof(float)) : 0;
}

template <typename Op> int64_t noWorkspace(Op) { return 0; }

/// The interface of a library call by plain functions.
template <typename Op, LogicalResult (*build)(Op, exec::RowContext &),
          int64_t (*workspaceBytes)(Op) = noWorkspace<Op>, bool adds = false>
struct LibraryModel
    : LoweringOpInterface::ExternalModel<LibraryModel<Op, build, workspaceBytes, adds>, Op> {
  LoweringKind getLoweringKind(Operation *) const { return LoweringKind::Library; }
  LogicalResult lowerToRows(Operation *op, exec::RowContext &rows) const {
    return build(cast<Op>(op), rows);
  }
  int64_t getWorkspaceBytes(Operation *op) const { return workspaceBytes(cast<Op>(op)); }
  bool canAdd(Operation *) const { return adds; }
};

} // namespace

void attachLibraryModels(MLIRContext &context) {
  nn::MatmulOp::attachInterface<LibraryModel<nn::MatmulOp, buildMatmul, noWorkspace<nn::MatmulOp>, true>>(context);
  nn::TensordotOp::attachInterface<LibraryModel<nn::TensordotOp, buildTensordot, noWorkspace<nn::TensordotOp>, true>>(
      context);
  nn::AttentionOp::attachInterface<
      LibraryModel<nn::AttentionOp, buildAttention, getAttentionWorkspace<nn::AttentionOp>>>(
      context);
  nn::AttentionGradOp::attachInterface<LibraryModel<nn::AttentionGradOp, buildAttentionGrad,
                                                    getAttentionWorkspace<nn::AttentionGradOp>>>(
      context);
  nn::EmbeddingGradOp::attachInterface<
      LibraryModel<nn::EmbeddingGradOp, buildEmbeddingGrad, embeddingGradWorkspace>>(context);
}

} // namespace shoal::lowering
