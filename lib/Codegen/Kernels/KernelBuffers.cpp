// Where the values of a kernel live: the function with its buffers, destinations, stack, workspace,
// constants, and what the caller promises about them.
#include "LoopEmitter.h"

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::codegen {

/// A view of a whole contiguous buffer under another shape.
Value LoopEmitter::view(Value buffer, MemRefType type) {
  if (buffer.getType() == type)
    return buffer;
  SmallVector<int64_t> strides(type.getRank(), 1);
  for (int64_t k = type.getRank() - 2; k >= 0; --k)
    strides[k] = strides[k + 1] * type.getDimSize(k + 1);
  return b.create<memref::ReinterpretCastOp>(loc, type, buffer, /*offset=*/0, type.getShape(),
                                             strides);
}

void LoopEmitter::createBuffers() {
  SmallVector<Type> types;
  for (Type type : old.getArgumentTypes())
    types.push_back(memrefOf(type));
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (result.inplace < 0)
      types.push_back(memrefOf(old.getResultTypes()[k]));
  if (plan.workspaceBytes > 0)
    types.push_back(MemRefType::get({plan.workspaceBytes}, b.getI8Type()));
  func = createFunction(b.getFunctionType(types, {}));
  b.setInsertionPointToStart(&func.getFunctionBody().front());
  for (BlockArgument from : old.getArguments())
    buffers[from] = view(func.getArgument(from.getArgNumber()), plan.storageType(from));
  // Results that their node writes itself: the destination takes the place of a temporary.
  unsigned next = old.getNumArguments();
  for (const ResultPlan &result : plan.results) {
    Value destination = func.getArgument(result.inplace < 0 ? next++ : result.inplace);
    destinations.push_back(destination);
    if (result.direct)
      buffers[result.root] = view(destination, plan.storageType(result.root));
  }
  for (const Temporary &temporary : plan.temporaries) {
    dropped[temporary.root] = temporary.dropped;
    if (temporary.offset < 0)
      buffers[temporary.root] =
          b.create<memref::AllocaOp>(loc, temporary.type, b.getI64IntegerAttr(64));
    else
      buffers[temporary.root] =
          b.create<memref::ViewOp>(loc, temporary.type, func.getArgument(types.size() - 1),
                                   index(temporary.offset), ValueRange{});
  }
}

LogicalResult LoopEmitter::createConstants() {
  // Constants that are not one number become data of the module.
  for (Operation &op : old.getBody().front().without_terminator()) {
    auto value = dyn_cast<arith::ConstantOp>(op);
    if (!value || !isa<RankedTensorType>(value.getType()))
      continue;
    auto elements = dyn_cast<DenseElementsAttr>(value.getValue());
    if (!elements)
      return value.emitOpError("constants in kernels must be dense");
    if (elements.isSplat())
      continue;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(func);
    std::string name = (old.getName() + ".constant" + Twine(constants++)).str();
    auto global = b.create<memref::GlobalOp>(loc, name, b.getStringAttr("private"),
                                             memrefOf(value.getType()), elements,
                                             /*constant=*/true, b.getI64IntegerAttr(64));
    b.setInsertionPointToStart(&func.getFunctionBody().front());
    buffers[value] = view(b.create<memref::GetGlobalOp>(loc, global.getType(), global.getName()),
                          plan.storageType(value));
  }
  // Reshapes are views, and constants are not: an op that reads a splat through one reads the
  // number.
  for (Operation &op : old.getBody().front().without_terminator())
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      if (Value buffer = buffers.lookup(stripViews(op.getResult(0))))
        buffers[op.getResult(0)] = view(buffer, memrefOf(op.getResult(0).getType()));
  return success();
}

void LoopEmitter::describeArguments() {
  // Buffers are 64-byte aligned, but for those that lie inside a bucket: at a multiple of their
  // element.
  ArrayRef<Type> types = cast<FunctionType>(func.getFunctionType()).getInputs();
  llvm::SmallBitVector unaligned(types.size());
  for (unsigned k = 0; k < old.getNumArguments(); ++k)
    unaligned[k] = bool(old.getArgAttr(k, exec::ExecDialect::kUnalignedAttr));
  unsigned next = old.getNumArguments();
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (unsigned at = result.inplace < 0 ? next++ : result.inplace;
        old.getResultAttr(k, exec::ExecDialect::kUnalignedAttr))
      unaligned.set(at);
  for (unsigned k = 0; k < types.size(); ++k) {
    auto type = cast<MemRefType>(types[k]);
    int64_t align = unaligned[k] ? llvm::divideCeil(type.getElementTypeBitWidth(), 8) : 64;
    if (argumentsAreUnshared())
      func.setArgAttr(k, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    func.setArgAttr(k, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(align));
  }
}

} // namespace shoal::codegen
