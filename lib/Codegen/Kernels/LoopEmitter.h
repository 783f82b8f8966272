// Writes the loops of a kernel plan over memrefs: the emitter's state, shared by its two halves,
// buffers (KernelBuffers.cpp) and loops (EmitLoops.cpp), and what a target adds: the kind of
// function, and who runs which iterations of the outermost loops.
#ifndef SHOAL_LIB_CODEGEN_KERNELS_LOOPEMITTER_H
#define SHOAL_LIB_CODEGEN_KERNELS_LOOPEMITTER_H

#include "KernelPlan.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::codegen {

/// Sums longer than this are sums of partial sums, so that rounding errors do not grow with the
/// size.
inline constexpr int64_t kSumBlock = 4096;

class LoopEmitter {
public:
  explicit LoopEmitter(KernelPlan &plan) : plan(plan), old(plan.func), loc(old.getLoc()), b(old) {}
  virtual ~LoopEmitter() = default;

  /// Replaces the kernel by its bufferized form, under the same name.
  LogicalResult run();

protected:
  using Accumulators = llvm::DenseMap<Value, Value>; // result of a node -> its value so far

  /// Creates the function, at the insertion point, with a body of one empty block.
  virtual FunctionOpInterface createFunction(FunctionType type) = 0;
  virtual void createReturn() = 0;
  /// Copies and loops; the default does one after the other.
  virtual LogicalResult emitBody();
  virtual void emitNest(ArrayRef<int64_t> sizes, function_ref<void(ValueRange)> body);
  virtual void store(Value root, ArrayRef<Position> positions, Value value);
  /// Whether arguments are promised to be seen by one thread alone, or not written at all.
  virtual bool argumentsAreUnshared() { return true; }

  /// The reductions that start or go on in a loop, as values that it carries.
  struct Reductions {
    SmallVector<Value> carried;
    SmallVector<std::pair<Node *, unsigned>> owners;
    bool canJoin = false; // partial results can be joined
  };
  Reductions beginReductions(const Item &loop, unsigned depth, Accumulators &accumulators);
  void endReductions(const Reductions &reductions, unsigned depth, Accumulators &accumulators);
  /// Lets the accumulators begin anew.
  void restart(const Reductions &reductions, Accumulators &accumulators);
  /// Two partial results of a reduction as one.
  Value join(const std::pair<Node *, unsigned> &owner, Value left, Value right);
  SmallVector<Value> current(const Reductions &reductions, Accumulators &accumulators);

  void emitItems(ArrayRef<Item> items, unsigned depth, Accumulators &accumulators);
  void emitLoop(const Item &loop, unsigned depth, Accumulators &accumulators);
  /// One scf.for over a part of `loop`; what it carries is updated in `accumulators`.
  void emitPartOfLoop(const Item &loop, unsigned depth, Value lower, Value upper, Value step,
                      ArrayRef<Value> carried, Accumulators &accumulators);
  void emitStatement(Node &node, Accumulators &accumulators);
  void emitOperandCopies();
  void emitResultCopies();

  Value index(int64_t value);
  Value constant(TypedAttr value);

  KernelPlan &plan;
  func::FuncOp old;
  FunctionOpInterface func;
  Location loc;
  OpBuilder b;
  SmallVector<std::pair<Value, Value>> registers; // innermost last
  SmallVector<Value> ivs;

private:
  void createBuffers();
  LogicalResult createConstants();
  void describeArguments();
  Value view(Value buffer, MemRefType type);

  void emitFill(Node &node, unsigned depth);
  void emitCopy(Value fromTensor, Value toBuffer);

  Value initial(Node &node, unsigned result);
  SmallVector<Value> indices(Value root, ArrayRef<Position> positions);
  Value read(Node &node, const Access &access, ValueRange computed = {});

  SmallVector<Value> destinations;                     // per result
  llvm::DenseMap<Value, Value> buffers;                // tensor -> memref
  llvm::DenseMap<Value, llvm::SmallBitVector> dropped; // dimensions a temporary does not store
  int constants = 0;
};

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_KERNELS_LOOPEMITTER_H
