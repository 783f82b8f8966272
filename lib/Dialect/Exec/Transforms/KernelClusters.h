// Fusion: which nn ops of a step run together as one kernel. A graph whose nodes are clusters of
// ops; everything that is no kernel (matmul, collectives, reshapes) is a node of its own.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_KERNELCLUSTERS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_KERNELCLUSTERS_H

#include "NodeOrder.h"

#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

#include <memory>
#include <optional>

namespace shoal::exec {

/// Whether every element of the results is computed from the elements of the operands at the same
/// place (broadcasting operands stretched).
bool isElementwise(mlir::Operation *op);

/// The action of a pipeline's schedule (`exec.scope`) that ops of one kernel are part of; null where none has any.
mlir::Attribute findScope(llvm::ArrayRef<mlir::Operation *> ops);

struct Cluster {
  llvm::SmallVector<mlir::Operation *> ops; // in program order, of equal `dist.at`
  bool kernel = false;
  bool alive = true;
};

class ClusterGraph {
public:
  /// One node per op of the block but constants and the terminator.
  explicit ClusterGraph(mlir::Block &block);
  ~ClusterGraph();

  /// Merges kernel ops with those that produce their operands, where that is legal and pays.
  void fuse();

  /// Makes `before` run before `after`; false, and no change, when `after` must run first.
  bool addOrder(unsigned before, unsigned after);

  /// The nodes in an order that respects their values and addOrder, close to program order.
  llvm::SmallVector<unsigned> schedule() const;

  const Cluster &operator[](unsigned i) const { return clusters[i]; }
  /// The node of an op; none for constants and the terminator.
  std::optional<unsigned> nodeOf(mlir::Operation *op) const;
  /// The node that computes a value.
  std::optional<unsigned> producerOf(mlir::Value value) const;
  /// Nodes that use a value, a nested use counting as one of the op of this block.
  llvm::SmallSetVector<unsigned, 4> usersOf(mlir::Value value) const;

private:
  /// A node's place in a spanning tree, and the places below it: [begin, end).
  struct TreeRange {
    unsigned begin, end;
  };
  struct Cache;

  void findTree();
  llvm::SmallVector<TreeRange> startsOf(unsigned node, unsigned last) const;
  llvm::SmallVector<unsigned> predecessors(unsigned node) const;
  bool moveBehind(unsigned node, unsigned last, bool merging);
  llvm::SmallVector<std::pair<int64_t, int64_t>> priorities() const;
  bool pays(unsigned producer, unsigned consumer) const;
  bool tryMerge(unsigned producer, unsigned consumer);
  int64_t position(mlir::Operation *op) const { return positions.lookup(op); }
  /// Whether a library call or collective of the cluster's mesh positions stands between two ops of the block.
  bool isHeavyBetween(const Cluster &cluster, mlir::Operation *first, mlir::Operation *last) const;
  /// The place of the last `dist.wait` that an op of the cluster depends on; -1: none.
  int64_t lastWaitOf(const Cluster &cluster) const;

  mlir::Block &block;
  llvm::SmallVector<Cluster> clusters;
  llvm::DenseMap<mlir::Operation *, unsigned> nodes;
  llvm::DenseMap<mlir::Operation *, int64_t> positions;
  llvm::SmallVector<llvm::SmallSetVector<unsigned, 2>> extraPredecessors;
  llvm::DenseMap<unsigned, unsigned> mergedInto; // of nodes that are no more
  /// A topological order that every change keeps valid (Pearce and Kelly, 2006).
  std::unique_ptr<NodeOrder> order;
  /// Per op, by its position, its place in a spanning tree of the ops: merging adds ways
  /// and takes none, so what lies below an op always depends on it.
  llvm::SmallVector<TreeRange> tree;
  std::unique_ptr<Cache> cache;
  /// Library calls and collectives, in program order.
  llvm::SmallVector<mlir::Operation *> heavy;
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_KERNELCLUSTERS_H
