// Where the values of a kernel live: the function with its buffers, destinations, stack, workspace,
// constants, and what the caller promises about them.
#include "EmitLoops.h"
#include "LoopEmitter.h"

#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Support/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

namespace shoal::codegen {

static int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

/// The shape in which nodes index a tensor.
MemRefType LoopEmitter::storageType(Value tensor) {
  MemRefType type = memrefOf(tensor.getType());
  if (!plan.flat)
    return type;
  SmallVector<int64_t> shape;
  if (type.getNumElements() != 1)
    shape.push_back(type.getNumElements());
  return MemRefType::get(shape, type.getElementType());
}

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

void LoopEmitter::createFunction() {
  SmallVector<Type> types;
  for (Type type : old.getArgumentTypes())
    types.push_back(memrefOf(type));
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (result.inplace < 0)
      types.push_back(memrefOf(old.getResultTypes()[k]));
  func = b.create<func::FuncOp>(loc, old.getName(), b.getFunctionType(types, {}));
  func.setVisibility(old.getVisibility());
  func->setAttr("exec.kernel", b.getUnitAttr());
  Block *entry = func.addEntryBlock();
  b.setInsertionPointToStart(entry);
  for (auto [from, to] : llvm::zip(old.getArguments(), entry->getArguments()))
    buffers[from] = view(to, storageType(from));
}

LogicalResult LoopEmitter::createTemporaries() {
  // Results that their node writes itself: the temporary is the destination.
  unsigned nextDestination = old.getNumArguments();
  for (auto [k, result] : llvm::enumerate(plan.results)) {
    Value destination = func.getArgument(result.inplace < 0 ? nextDestination++ : result.inplace);
    if (result.direct)
      buffers[result.root] = view(destination, storageType(result.root));
  }
  struct Temporary {
    Value root;
    MemRefType type;
    size_t number;
  };
  SmallVector<Temporary> temporaries;
  for (auto &node : plan.nodes)
    for (auto [number, value] : llvm::enumerate(node->op.getResults())) {
      const Storage &where = plan.storage[value];
      if (!where.needed || where.result >= 0)
        continue;
      MemRefType whole = storageType(value);
      // A value that is returned is alive to the end, as a whole.
      bool isReturned = llvm::any_of(
          plan.results, [&](const ResultPlan &result) { return result.root == value; });
      llvm::SmallBitVector drop(whole.getRank());
      SmallVector<int64_t> shape;
      for (auto [k, position] : llvm::enumerate(node->writes[number])) {
        drop[k] = !isReturned && position >= 0 && position < int(where.privateTo);
        if (!drop[k])
          shape.push_back(whole.getDimSize(k));
      }
      dropped[value] = drop;
      temporaries.push_back(
          {value, MemRefType::get(shape, whole.getElementType()), temporaries.size()});
    }
  // Small ones first: the most of them find place on the stack.
  llvm::sort(temporaries, [](const Temporary &x, const Temporary &y) {
    return std::pair(bytesOf(x.type), x.number) < std::pair(bytesOf(y.type), y.number);
  });
  int64_t stack = 0, workspace = 0;
  Value workspaceBuffer;
  SmallVector<std::pair<Temporary, int64_t>> inWorkspace;
  for (const Temporary &temporary : temporaries) {
    int64_t bytes = llvm::alignTo(bytesOf(temporary.type), 64);
    if (stack + bytes <= kMaxStackBytes) {
      stack += bytes;
      buffers[temporary.root] =
          b.create<memref::AllocaOp>(loc, temporary.type, b.getI64IntegerAttr(64));
    } else {
      inWorkspace.push_back({temporary, workspace});
      workspace += bytes;
    }
  }
  if (workspace > 0) {
    func.insertArgument(func.getNumArguments(), MemRefType::get({workspace}, b.getI8Type()), {},
                        loc);
    func->setAttr("exec.workspace", b.getI64IntegerAttr(workspace));
    workspaceBuffer = func.getArguments().back();
    for (auto &[temporary, offset] : inWorkspace)
      buffers[temporary.root] = b.create<memref::ViewOp>(loc, temporary.type, workspaceBuffer,
                                                         index(offset), ValueRange{});
  }
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
    b.setInsertionPointToStart(&func.getBody().front());
    buffers[value] = view(b.create<memref::GetGlobalOp>(loc, global.getType(), global.getName()),
                          storageType(value));
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
  llvm::SmallBitVector unaligned(func.getNumArguments());
  for (unsigned k = 0; k < old.getNumArguments(); ++k)
    unaligned[k] = bool(old.getArgAttr(k, exec::ExecDialect::kUnalignedAttr));
  unsigned next = old.getNumArguments();
  for (auto [k, result] : llvm::enumerate(plan.results))
    if (unsigned at = result.inplace < 0 ? next++ : result.inplace;
        old.getResultAttr(k, exec::ExecDialect::kUnalignedAttr))
      unaligned.set(at);
  for (unsigned k = 0; k < func.getNumArguments(); ++k) {
    auto type = cast<MemRefType>(func.getArgumentTypes()[k]);
    int64_t align = unaligned[k] ? llvm::divideCeil(type.getElementTypeBitWidth(), 8) : 64;
    func.setArgAttr(k, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    func.setArgAttr(k, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(align));
  }
}

} // namespace shoal::codegen
