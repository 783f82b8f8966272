// A function as propagation sees it: slots that have a layout (values, and results of the function)
// and nodes that relate them by sharding rules. A micro-batch region is nodes too: one from the
// inputs to the body's arguments, the body's ops, one from the yield to the results.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PROPAGATIONGRAPH_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PROPAGATIONGRAPH_H

#include "Causes.h"
#include "FactorSharding.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"

namespace shoal::dist {

struct Slot {
  /// Null for a function result, which only `result` names.
  mlir::Value value;
  unsigned result = 0;
  mlir::Location loc;
  /// The tensor that it is or that a future holds; null for what is neither (an index): it has a layout without
  /// dimensions.
  mlir::RankedTensorType type;
  /// The annotation the slot started with; null when it had none.
  ShardingAttr annotation;
  /// Axes so far. Unreduced axes are known from annotations; others are found when dimensions are
  /// settled.
  Layout layout;
  llvm::BitVector closed;
  llvm::SmallVector<int64_t> priority;
  /// Unreduced axes are what the annotation says, and no others: annotated by hand, or a function
  /// result.
  bool isExact = false;
  /// Per mesh axis, the annotations that it came from (`listCauses`); null for axes that the value never had.
  llvm::SmallVector<mlir::Attribute, 2> causes;

  int64_t rank() const { return layout.dims.size(); }
  int64_t bytes() const;
};

struct Node {
  mlir::Operation *op;
  ShardingRule rule;
  llvm::SmallVector<unsigned> operands, results;
  /// A dist.reshard, which relates only those dimensions that it leaves open, and no partial values.
  bool isChange = false;
};

class PropagationGraph {
public:
  /// Builds the graph; diagnoses annotations that contradict each other, and ops whose rule does
  /// not fit them.
  static llvm::FailureOr<PropagationGraph> build(mlir::FunctionOpInterface func, MeshOp mesh);

  /// How an op computes when its operands and results have these layouts.
  OpSharding shard(const Node &node, llvm::ArrayRef<Layout> operands,
                   llvm::ArrayRef<Layout> results, bool keepPartial,
                   Lead lead = Lead::Operands) const;
  /// The layouts of slots, without the axes of dimensions of a later priority.
  llvm::SmallVector<Layout> layoutsOf(llvm::ArrayRef<unsigned> slots,
                                      int64_t priority = kAllPriorities) const;
  static constexpr int64_t kAllPriorities = std::numeric_limits<int64_t>::max();
  /// Whether two layouts put every element of a value on the same devices: axes of size 1 do not
  /// count, and `unreduced` is not looked at.
  bool sameDims(const Layout &a, const Layout &b) const;
  /// Whether some device lacks a part of the value.
  bool isSharded(const Layout &layout) const;

  /// The layout as an attribute: closed, without priorities.
  ShardingAttr toSharding(const Layout &layout) const;
  /// Diagnoses ops without a sharding rule that read a sharded value.
  llvm::LogicalResult verifyOpaque() const;
  /// Records, where an axis has come to a slot from a node's others, that it did so for the cause of the first.
  void passCause(const Node &node, unsigned slot, unsigned axis);
  /// Records, once partial values are settled, why each is partial: for the causes of all partial values that its op
  /// reads as such (`isRead`: slot, axis), else for that of the first operand that is sharded.
  void settleCauses(llvm::function_ref<bool(unsigned, unsigned)> isRead);
  /// Writes the layouts of all slots as closed annotations, and where their axes came from.
  void annotate();

  std::vector<Slot> slots;
  std::vector<Node> nodes;
  /// Ops that have no sharding rule, with the slots that they read.
  llvm::SmallVector<std::pair<mlir::Operation *, llvm::SmallVector<unsigned>>> opaque;
  llvm::SmallVector<int64_t> axisSizes;
  /// Axes of the batch are partitioned behind those of the sequence: in a dimension of both they are the minor ones.
  llvm::BitVector isOfBatch, isOfSequence;
  mlir::FunctionOpInterface func;
  llvm::SmallVector<std::optional<unsigned>> updated; // by result the argument that it replaces

private:
  explicit PropagationGraph(mlir::FunctionOpInterface func) : func(func), updated(nn::updatedArguments(func)) {}
  unsigned addSlot(mlir::Value value, mlir::Location loc, mlir::Type type, ShardingAttr annotation);
  void annotateSlot(Slot &slot, ShardingAttr annotation);
  /// The causes of an annotation's axes: those that are recorded beside it, else the hand's.
  void recordCauses(Slot &slot, mlir::DictionaryAttr why, llvm::function_ref<CauseAttr()> byHand);
  void annotateCauses(SignatureEdit &signature);
  llvm::LogicalResult addBlock(mlir::Block &block);
  llvm::LogicalResult addOp(mlir::Operation &op);
  llvm::LogicalResult addReturn(mlir::Operation &op);
  llvm::LogicalResult addAccumulate(AccumulateOp op);
  /// A node that takes one slot to another of the same rank, dimension by dimension.
  void addIdentity(mlir::Operation *op, unsigned from, unsigned to, bool isLinear);
  llvm::SmallVector<unsigned> slotsOf(mlir::ValueRange values) const;

  MeshAttr mesh;
  mlir::FlatSymbolRefAttr symbol;
  llvm::DenseMap<mlir::Value, unsigned> slotOf;
};

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_PROPAGATIONGRAPH_H
