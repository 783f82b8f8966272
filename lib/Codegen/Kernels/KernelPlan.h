// Which loops the ops of a kernel share. A kernel is a straight line of `linalg.generic` ops; the
// plan is a tree of loops with the ops as leaves, and for every value whether its readers find it
// in a register (they stand in the same iteration) or in a buffer. Targets share the plan and its
// emission (LoopEmitter.h); what they differ in is a PlanTarget.
#ifndef SHOAL_LIB_CODEGEN_KERNELS_KERNELPLAN_H
#define SHOAL_LIB_CODEGEN_KERNELS_KERNELPLAN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

#include <memory>

namespace shoal::codegen {

/// What the plan of a kernel depends on.
struct PlanTarget {
  /// Parallel loops of every op stand outside its reductions, and outermost loops that are parallel
  /// for one op and a reduction for another are not shared: each is one or the other for threads.
  bool parallelLoopsFirst;
  /// Bytes of temporaries on the stack; what does not fit lies in the workspace.
  int64_t maxStackBytes;
  /// The stack is a thread's own, so it may hold only what one iteration of an outermost loop makes
  /// and uses.
  bool stackIsPrivate;

  static PlanTarget host() { return {false, 65536, false}; }
  static PlanTarget gpu() { return {true, 4096, true}; }
};

/// How one dimension of a tensor is indexed: by a loop of the node (>= 0), by 0, or by something
/// computed.
using Position = int;
inline constexpr Position kZero = -1;
inline constexpr Position kComputed = -2;

/// One read of a tensor by a node.
struct Access {
  mlir::Value tensor;                    // as the node names it, possibly a view
  mlir::Value root;                      // the tensor behind views
  llvm::SmallVector<Position> positions; // of `tensor`; all kComputed through a view
  bool fromRegister = false;             // the value of this very iteration, never loaded
};

/// A structured op. Loops of one iteration are left out; the others are in the order of the op, or
/// parallel ones first.
struct Node {
  mlir::linalg::GenericOp op;
  unsigned index = 0;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<Position> loopOf; // loop of the op -> loop of the node, or kZero
  llvm::SmallVector<bool> isReduction;
  unsigned firstReduction = 0; // = depth() without reductions
  /// The innermost reduction loops [accumulateFrom, depth()) carry accumulators in registers.
  unsigned accumulateFrom = 0;
  llvm::SmallVector<Access> reads; // inputs in operand order, then tensor.extract ops
  llvm::SmallDenseMap<mlir::Operation *, unsigned> extractReads;
  llvm::SmallVector<llvm::SmallVector<Position>> writes; // per result

  unsigned depth() const { return sizes.size(); }
  bool hasReduction() const { return firstReduction < depth(); }
  /// Accumulates in a buffer, because a parallel loop runs inside a reduction.
  bool accumulatesInBuffer() const { return firstReduction < accumulateFrom; }
};

/// A loop with what runs in it, or a node at its innermost position.
struct Item {
  Node *node = nullptr; // leaf
  int64_t size = 0;     // loop
  llvm::SmallVector<Node *> nodes;
  std::vector<Item> children;
};

/// Where a value lives.
struct Storage {
  bool needed = false;
  /// Result of the kernel that is written in place, or -1.
  int result = -1;
  /// Loops [0, privateTo) are shared with all readers: those dimensions need no storage.
  unsigned privateTo = 0;
};

/// A buffer of the kernel's own: on the stack, or in the workspace at an offset.
struct Temporary {
  mlir::Value root;
  mlir::MemRefType type;
  llvm::SmallBitVector dropped; // dimensions of the value that it does not store
  size_t number;                // in the order of the ops
  int64_t offset = -1;          // in the workspace, or -1: on the stack
};

/// What happens to each result of the kernel.
struct ResultPlan {
  mlir::Value root;     // the value behind views
  int inplace = -1;     // operand whose buffer it overwrites
  bool direct = false;  // its node writes it where it belongs
  bool nothing = false; // it is the operand it overwrites
};

class KernelPlan {
public:
  /// Analyses a kernel of linalg on tensors; diagnoses what cannot be part of one.
  static llvm::FailureOr<std::unique_ptr<KernelPlan>> create(mlir::func::FuncOp func,
                                                             const PlanTarget &target);

  /// The shape in which nodes index a tensor.
  mlir::MemRefType storageType(mlir::Value tensor) const;
  /// Whether the outermost loops may run in any order and at the same time.
  bool hasIndependentLoops() const;

  mlir::func::FuncOp func;
  PlanTarget target;
  std::vector<std::unique_ptr<Node>> nodes; // in an order that can be executed
  std::vector<Item> items;
  llvm::MapVector<mlir::Value, Storage> storage; // of the nodes' results
  llvm::SmallVector<ResultPlan> results;
  llvm::SmallVector<Temporary> temporaries; // small ones first
  int64_t workspaceBytes = 0;
  /// Every op treats whole tensors element by element: tensors are one-dimensional, or scalars.
  bool flat = false;

private:
  /// `to` must come after `from`; in a loop both share, iteration by iteration.
  struct Dependence {
    unsigned from, to; // node indices
    llvm::SmallVector<Position> fromPositions, toPositions;
    bool overwrites = false; // `to` writes over what `from` reads
  };

  llvm::LogicalResult collectNodes();
  void flatten();
  llvm::LogicalResult planResults();
  bool overwriteInPlace(ResultPlan &result);
  bool order();
  std::vector<Item> fuse(llvm::ArrayRef<Node *> list, unsigned depth);
  void collectReaders();
  bool canJoin(const Node &node, const Item &loop, unsigned depth) const;
  void placeValues();
  void placeTemporaries();

  std::vector<Dependence> dependences;
  std::vector<llvm::SmallVector<const Dependence *>> incoming, outgoing; // per node, once all are known
  /// Per loop and node, who reads what is made of it, iteration by iteration of that loop.
  std::vector<llvm::SmallVector<llvm::SmallBitVector>> readers;
};

/// The tensor behind reshapes.
mlir::Value stripViews(mlir::Value value);

inline mlir::MemRefType memrefOf(mlir::Type tensor) {
  auto type = llvm::cast<mlir::RankedTensorType>(tensor);
  return mlir::MemRefType::get(type.getShape(), type.getElementType());
}

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_KERNELS_KERNELPLAN_H
