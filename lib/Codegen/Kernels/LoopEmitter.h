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
  llvm::LogicalResult run();

protected:
  using Accumulators =
      llvm::DenseMap<mlir::Value, mlir::Value>; // result of a node -> its value so far

  /// Creates the function, at the insertion point, with a body of one empty block.
  virtual mlir::FunctionOpInterface createFunction(mlir::FunctionType type) = 0;
  virtual void createReturn() = 0;
  /// Copies and loops; the default does one after the other.
  virtual llvm::LogicalResult emitBody();
  virtual void emitNest(llvm::ArrayRef<int64_t> sizes,
                        llvm::function_ref<void(mlir::ValueRange)> body);
  virtual void store(mlir::Value root, llvm::ArrayRef<Position> positions, mlir::Value value);
  /// Whether arguments are promised to be seen by one thread alone, or not written at all.
  virtual bool argumentsAreUnshared() { return true; }

  /// The reductions that start or go on in a loop, as values that it carries.
  struct Reductions {
    llvm::SmallVector<mlir::Value> carried;
    llvm::SmallVector<std::pair<Node *, unsigned>> owners;
    bool canJoin = false; // partial results can be joined
  };
  Reductions beginReductions(const Item &loop, unsigned depth, Accumulators &accumulators);
  void endReductions(const Reductions &reductions, unsigned depth, Accumulators &accumulators);
  /// Lets the accumulators begin anew.
  void restart(const Reductions &reductions, Accumulators &accumulators);
  /// Two partial results of a reduction as one.
  mlir::Value join(const std::pair<Node *, unsigned> &owner, mlir::Value left, mlir::Value right);
  llvm::SmallVector<mlir::Value> current(const Reductions &reductions, Accumulators &accumulators);

  void emitItems(llvm::ArrayRef<Item> items, unsigned depth, Accumulators &accumulators);
  void emitLoop(const Item &loop, unsigned depth, Accumulators &accumulators);
  /// One scf.for over a part of `loop`; what it carries is updated in `accumulators`.
  void emitPartOfLoop(const Item &loop, unsigned depth, mlir::Value lower, mlir::Value upper,
                      mlir::Value step, llvm::ArrayRef<mlir::Value> carried,
                      Accumulators &accumulators);
  void emitStatement(Node &node, Accumulators &accumulators);
  void emitOperandCopies();
  void emitResultCopies();

  mlir::Value index(int64_t value);
  mlir::Value constant(mlir::TypedAttr value);

  KernelPlan &plan;
  mlir::func::FuncOp old;
  mlir::FunctionOpInterface func;
  mlir::Location loc;
  mlir::OpBuilder b;
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> registers; // innermost last
  llvm::SmallVector<mlir::Value> ivs;

private:
  void createBuffers();
  llvm::LogicalResult createConstants();
  void describeArguments();
  mlir::Value view(mlir::Value buffer, mlir::MemRefType type);

  void emitFill(Node &node, unsigned depth);
  void emitCopy(mlir::Value fromTensor, mlir::Value toBuffer);

  mlir::Value initial(Node &node, unsigned result);
  llvm::SmallVector<mlir::Value> indices(mlir::Value root, llvm::ArrayRef<Position> positions);
  mlir::Value read(Node &node, const Access &access, mlir::ValueRange computed = {});

  llvm::SmallVector<mlir::Value> destinations;      // per result
  llvm::DenseMap<mlir::Value, mlir::Value> buffers; // tensor -> memref
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector>
      dropped; // dimensions a temporary does not store
  int constants = 0;
};

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_KERNELS_LOOPEMITTER_H
