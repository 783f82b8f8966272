// Writes the loops of a kernel plan: the emitter's state, shared by its two halves, buffers
// (KernelBuffers.cpp) and loops (EmitLoops.cpp).
#ifndef SHOAL_LIB_CODEGEN_HOST_LOOPEMITTER_H
#define SHOAL_LIB_CODEGEN_HOST_LOOPEMITTER_H

#include "KernelPlan.h"

#include "llvm/ADT/SmallBitVector.h"

namespace shoal::codegen {

inline MemRefType memrefOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

class LoopEmitter {
public:
  explicit LoopEmitter(KernelPlan &plan) : plan(plan), old(plan.func), loc(old.getLoc()), b(old) {}

  LogicalResult run();

private:
  using Accumulators = llvm::DenseMap<Value, Value>; // result of a node -> its value so far

  void createFunction();
  LogicalResult createTemporaries();
  void describeArguments();
  MemRefType storageType(Value tensor);
  Value view(Value buffer, MemRefType type);

  void emitItems(ArrayRef<Item> items, unsigned depth, Accumulators &accumulators);
  void emitLoop(const Item &loop, unsigned depth, Accumulators &accumulators);
  void emitCountedLoop(const Item &loop, unsigned depth, Value lower, int64_t size,
                       ArrayRef<Value> carried, Accumulators &accumulators);
  void emitStatement(Node &node, Accumulators &accumulators);
  void emitFill(Node &node, unsigned depth);
  void emitCopy(Value fromTensor, Value toBuffer);
  void emitNest(ArrayRef<int64_t> sizes, function_ref<void(ValueRange)> body);

  Value index(int64_t value);
  Value constant(TypedAttr value);
  Value initial(Node &node, unsigned result);
  SmallVector<Value> indices(Value root, ArrayRef<Position> positions);
  Value read(Node &node, const Access &access, ValueRange computed = {});
  void store(Value root, ArrayRef<Position> positions, Value value);

  KernelPlan &plan;
  func::FuncOp old, func;
  Location loc;
  OpBuilder b;
  llvm::DenseMap<Value, Value> buffers;                // tensor -> memref
  llvm::DenseMap<Value, llvm::SmallBitVector> dropped; // dimensions a temporary does not store
  SmallVector<std::pair<Value, Value>> registers;      // innermost last
  SmallVector<Value> ivs;
  int constants = 0;
};

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_HOST_LOOPEMITTER_H
